// SPDX-License-Identifier: BSD-3-Clause
// The waist for scopes that can be told to stop. Used by scope.hpp, task.hpp and C.
#pragma once

#include <source_location>
#include <stop_token>
#include <utility>

#include "imbrex/detail/waist.hpp"

#pragma GCC visibility push(default)

namespace imbrex::detail {

// open_scope() for a scope that stops when the returned source is asked to, when a scope around it
// stops, or, with `on_error`, when it gets its first failure.
[[nodiscard]] std::stop_source open_stoppable_scope(ScopeMemory& memory, bool on_error,
                                                    const std::source_location& where);
// The token of the innermost such scope around the running task; without one, a token that is never
// stopped.
[[nodiscard]] std::stop_token stop_token() noexcept;

// A body that takes the token of its scope.
template <class F>
struct WithStopToken {
  F function;
  decltype(auto) operator()() { return function(stop_token()); }
};

}  // namespace imbrex::detail

#pragma GCC visibility pop
