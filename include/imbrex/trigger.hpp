// SPDX-License-Identifier: BSD-3-Clause
// Named events, triggers, and progress functions (Capra et al.): a task names the event that it
// waits for before the request exists; a function that the runtime calls finds the completion, and
// triggers the event.
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

/// Returns the event called `name` and `number`: a future that is ready once trigger() was called
/// with this name and number. Tasks take it by .in(): they start then, and cost no stack until
/// then. The trigger may come first. Never suspends.
///
/// A name means one event, in the whole process, from its first use until the end of the finish()
/// in which it was named first; afterwards it means another event. An iteration that is a finish()
/// of its own therefore uses the names again; iterations that overlap give their number. Outside of
/// any finish() a name is used once.
///
/// Throws Error in a progress function or another callback. Thread safety: any thread.
[[nodiscard]] inline Future<void> named(
    std::string_view name, std::int64_t number = 0,
    const std::source_location& where = std::source_location::current()) {
  return detail::future_of(detail::name_event({name, number}, where));
}

/// Fires the event: the tasks that wait for it become ready. Throws Error if the event has fired
/// before. If no task has named the event by the end of the finish() around the caller, or around
/// the registration of the calling progress function, that finish() throws Error. Never suspends.
/// Thread safety: any thread, also a thread that imbrex does not know, and any callback.
inline void trigger(std::string_view name, std::int64_t number = 0) {
  detail::trigger({name, number});
}

/// Registers `function` for the innermost finish() of the running task: idle workers, and workers
/// between two tasks, call it until it returns 0, one thread at a time. It may test requests and
/// call trigger(). It must not wait nor create tasks: both throw Error. Never suspends.
///
/// The finish() ends when its tasks are complete and the function has returned 0. If the function
/// does not return 0 within IMBREX_STALL_S seconds after the last task, finish() throws Error. If
/// the function throws, it is not called again, tasks of the scope that wait for untriggered names
/// do not run, and finish() throws its exception. Throws Error if the running task has no finish()
/// open.
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
        } catch (...) {  // an exception of its destructor
          detail::note_destructor();
        }
      },
      .where = where,
  });
  static_cast<void>(owned.release());  // the scope owns it now
}

/// Calls `function` only with IMBREX_SERIAL defined, where no runtime calls progress functions: it
/// blocks for the work of the program's progress functions. Here it is not called. Never suspends.
template <std::invocable F>
void noprogress(F&&) {}

}  // namespace imbrex
