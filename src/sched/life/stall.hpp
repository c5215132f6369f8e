// SPDX-License-Identifier: BSD-3-Clause
// The watch that detects that no task can ever run again.
#pragma once

namespace imbrex::sched {

struct RuntimeState;

// Worker 0 calls it, again and again, when it has found nothing for a while. Prints the waits of
// all tasks, and aborts, if no task can ever run again.
[[gnu::cold, gnu::noinline]] void watch_for_stall(RuntimeState& runtime) noexcept;

}  // namespace imbrex::sched
