// SPDX-License-Identifier: BSD-3-Clause
// ordered(n) loops whose iterations wait for each other by name.
//
// Thread safety: constant, except `posted`.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace imbrex::omp {

struct Doacross {
  std::vector<std::uint64_t> counts;  // iterations of each loop, the outermost first
  // For each iteration of the outermost loop, the number of its finished inner iterations. Release:
  // a waiting thread sees their effects.
  std::unique_ptr<std::atomic<std::uint64_t>[]> posted;
};

}  // namespace imbrex::omp
