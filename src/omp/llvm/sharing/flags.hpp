// SPDX-License-Identifier: BSD-3-Clause
// The flags of the iterations of an ordered(n) loop, one bit each. Used by doacross.cpp.
//
// Thread safety: constant, except the atomics.
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
