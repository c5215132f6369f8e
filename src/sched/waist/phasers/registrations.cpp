// SPDX-License-Identifier: BSD-3-Clause
#include "sched/waist/phasers/registrations.hpp"

#include <fmt/format.h>

#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"

namespace imbrex::detail {

const char* text_of(const PhaserMode mode) noexcept {
  switch (mode) {
    case PhaserMode::single: return "single";
    case PhaserMode::signal_wait: return "signal_wait";
    case PhaserMode::signal_only: return "signal_only";
    case PhaserMode::wait_only: return "wait_only";
  }
  return "?";
}

std::string text_of(const PhaserState& phaser) {
  return fmt::format("phaser \"{}\" ({})", phaser.name, text_of(phaser.where));
}
std::string text_of(const Registration& mine) {
  return fmt::format("this task was registered at {} as {}, and is in phase {}",
                     text_of(mine.where), text_of(mine.mode),
                     mine.waited.load(std::memory_order_relaxed));
}

void refuse_at(const char* const what, const PhaserState& phaser, const std::string& rest) {
  throw Error(fmt::format("imbrex: {} by {} on {}: {}", what, describe_current_task(),
                          text_of(phaser), rest));
}
void refuse_stranger(const char* const what, const PhaserState& phaser) {
  refuse_at(what, phaser,
            fmt::format("this task is not registered on the phaser, or has dropped it (the phaser "
                        "is in phase {}); spawn the task with .phased()",
                        phaser.phase.load(std::memory_order_relaxed)));
}

}  // namespace imbrex::detail
