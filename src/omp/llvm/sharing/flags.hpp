// SPDX-License-Identifier: BSD-3-Clause
// The flags of the iterations of an ordered(n) loop, one bit each. Used by doacross.cpp.
//
// Thread safety: constant once published (Share::following), except the atomics. Why no lock is
// needed:
// (1) An iteration's bit is set once, by the member that executed it, with release. A member that
// reads the bit set, with acquire, sees what the iteration wrote. Bits of one word are set by
// fetch_or, so members that post neighbours do not lose each other's; and the later additions to a
// word continue the release of the earlier ones, so the acquire pairs with each of them.
// (2) Each member reads the pointer from the construct's share before it leaves the share, and
// subtracts itself from `members` when it has ended the loop. The last one frees the flags: all
// others have posted, waited and woken before (acq_rel), and read nothing here afterwards.
// Stress test: tests/omp/by_hand.c.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace imbrex::omp {

struct IterationFlags {
  struct Loop {
    std::int64_t lower, upper, step;
    std::uint64_t count;
  };
  std::vector<Loop> loops;  // the outermost first
  // A bit for each iteration that has been posted. release: a waiting task sees its effects.
  std::unique_ptr<std::atomic<std::uint32_t>[]> words;
  std::atomic<int> members{0};  // number of members that have not ended the loop
};

}  // namespace imbrex::omp
