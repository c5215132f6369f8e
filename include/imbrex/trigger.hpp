// SPDX-License-Identifier: BSD-3-Clause
// Named events, triggers, and progress functions (Capra et al.): a task names what it waits for
// before anybody knows the request; a function that the runtime calls finds out, and triggers.
#pragma once

#include "imbrex/detail/language.hpp"

#include <concepts>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>

#include "imbrex/detail/waist.hpp"
#include "imbrex/future.hpp"

namespace imbrex {

/// The event called `name` and `number`: a future that is ready once trigger() was called with the
/// same. Tasks take it by .in(): they start then, and cost no stack until then. The trigger may
/// come first.
///
/// A name means one event, in the whole process, from its first use on until the end of the
/// finish() in which it was named first; from then on it means another one. So an iteration that is
/// a finish() of its own uses the same names again; iterations that overlap give their number.
/// Outside of any finish() a name is used once.
///
/// Throws Error in a progress function or another callback. Thread safety: any thread.
[[nodiscard]] inline Future<void> named(
    std::string_view name, std::int64_t number = 0,
    const std::source_location& where = std::source_location::current()) {
  return detail::future_of(detail::name_event({name, number}, where));
}

/// The event has happened: lets go what waits for it. Throws Error if it has happened before. If
/// nobody has named the event by the end of the finish() that stands around the caller, or around
/// the registration of the progress function that calls, that finish() throws Error.
/// Thread safety: any thread, also one that imbrex does not know, and any callback.
inline void trigger(std::string_view name, std::int64_t number = 0) {
  detail::trigger({name, number});
}

/// Registers `function` for the innermost finish() of the running task: workers that idle, and
/// those that have ended or left a task, call it, as long as it does not return 0; one thread at a
/// time. It may test requests and call trigger(). It may not wait nor create tasks: both throw
/// Error.
///
/// The finish() ends when its tasks are complete and the function has returned 0. If it does not do
/// so within IMBREX_STALL_S seconds after the last task, finish() throws Error. If it throws, it is
/// not called any more; tasks of the scope that wait for names which nobody has triggered do not
/// run; and finish() throws what it threw.
/// Throws Error if the running task has no finish() open.
template <class F>
  requires std::is_invocable_r_v<int, std::decay_t<F>&>
void progress(F&& function, const std::source_location& where = std::source_location::current()) {
  using Function = std::decay_t<F>;
  auto owned = std::make_unique<Function>(std::forward<F>(function));
  detail::add_progress({
      .call = [](void* argument) -> int { return (*static_cast<Function*>(argument))(); },
      .argument = owned.get(),
      .destroy = [](void* argument) noexcept {
        try {
          delete static_cast<Function*>(argument);
        } catch (...) {  // from its destructor
          detail::note_destructor();
        }
      },
      .where = where,
  });
  static_cast<void>(owned.release());  // the scope's now
}

/// `function` does, blocking, what the program's progress functions would do, where there is no
/// runtime that calls them. Here it is not called; with IMBREX_SERIAL defined it is.
template <std::invocable F>
void noprogress(F&&) {}

}  // namespace imbrex
