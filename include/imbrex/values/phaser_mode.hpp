// SPDX-License-Identifier: BSD-3-Clause
// The modes of registration on a phaser. Included by phaser.hpp.
#pragma once

#include <cstdint>

namespace imbrex {

/// The role of a task that is registered on a phaser. A task hands on its own mode or a weaker one:
/// `single` may hand on all modes, `signal_wait` the last three, the last two only themselves.
enum class PhaserMode : std::uint8_t {
  single,       // signal_wait whose next() may name a function that one of the tasks runs
  signal_wait,  // the other tasks wait for its signal, and it waits for theirs
  signal_only,  // the task never waits, and may run ahead
  wait_only     // no task waits for it
};

}  // namespace imbrex
