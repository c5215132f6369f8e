// SPDX-License-Identifier: BSD-3-Clause
// ordered(n) loops whose iterations wait for each other by name.
//
// Thread safety: constant but for `posted`.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace imbrex::omp {

struct Doacross {
  std::vector<std::uint64_t> counts;  // iterations of each loop, the outermost first
  // For each iteration of the outermost loop, how many of its inner ones are done. Release: whoever
  // waits sees what they did.
  std::unique_ptr<std::atomic<std::uint64_t>[]> posted;
};

}  // namespace imbrex::omp
