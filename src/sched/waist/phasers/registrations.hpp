// SPDX-License-Identifier: BSD-3-Clause
// The registrations of the running task, and the errors of misuse: with task, phaser, mode, phase
// and both places. Used by the functions of imbrex/detail/phasers.hpp.
#pragma once

#include <string>

#include "imbrex/detail/phasers.hpp"
#include "sched/waist/caller.hpp"
#include "task/phases.hpp"

namespace imbrex::detail {

using task::Phases;
using task::PhaseWait;
using task::Registration;

[[nodiscard]] const char* text_of(PhaserMode mode) noexcept;
[[nodiscard]] std::string text_of(const PhaserState& phaser);
// How the running task is registered.
[[nodiscard]] std::string text_of(const Registration& mine);

// Throws Error: the running task cannot do `what` on `phaser`, for the reason `rest`.
[[noreturn, gnu::cold, gnu::noinline]] void refuse_at(const char* what, const PhaserState& phaser,
                                                      const std::string& rest);
// refuse_at() for a task that is not registered.
[[noreturn, gnu::cold, gnu::noinline]] void refuse_stranger(const char* what,
                                                            const PhaserState& phaser);

[[nodiscard]] inline Registration* first_registration(const Task& task) noexcept {
  return task.family == nullptr ? nullptr : task.family->registrations;
}
[[nodiscard]] inline Registration* find_registration(const Task& task,
                                                     const PhaserState& phaser) noexcept {
  Registration* one = first_registration(task);
  while (one != nullptr && one->phases != &phaser) one = one->following;
  return one;
}
// The registration of the running task. Throws Error if it has none there.
[[nodiscard]] inline Registration& registration_on(const Worker& worker, const PhaserState& phaser,
                                                   const char* const what) {
  Registration* const found = find_registration(*worker.task, phaser);
  if (found == nullptr) refuse_stranger(what, phaser);
  return *found;
}

}  // namespace imbrex::detail
