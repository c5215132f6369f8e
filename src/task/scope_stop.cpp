// SPDX-License-Identifier: BSD-3-Clause
#include "task/scope_stop.hpp"

#include <fmt/format.h>

#include <exception>

#include "imbrex/error.hpp"

namespace imbrex::task {

Stop::Stop(const Scope& its_scope, Stop* const outer, const bool stops_on_error)
    : scope_(its_scope),
      on_error_(stops_on_error),
      failure_(failure_of_nobody(std::make_exception_ptr(Cancelled(
          fmt::format("imbrex: the task has not run, since {} was told to stop",
                      describe(its_scope)))))) {
  if (outer != nullptr) {
    with_outer_.emplace(outer->source_.get_token(), [this] { source_.request_stop(); });
  }
  open_.fetch_add(1, std::memory_order_relaxed);
}

Stop::~Stop() {
  open_.fetch_sub(1, std::memory_order_relaxed);
  drop(failure_);
}

}  // namespace imbrex::task
