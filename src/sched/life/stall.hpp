// SPDX-License-Identifier: BSD-3-Clause
// The watch that finds out that nothing can ever run again.
#pragma once

namespace imbrex::sched {

struct RuntimeState;

// Called by worker 0 where it has found nothing for a while, again and again. Prints who waits for
// what, and aborts, if nothing can ever run again.
[[gnu::cold, gnu::noinline]] void watch_for_stall(RuntimeState& runtime) noexcept;

}  // namespace imbrex::sched
