// SPDX-License-Identifier: BSD-3-Clause
// The vector kernel for every processor: the compiler splits its vectors as far as it must.
#include "lanes.hpp"

namespace smith_waterman {

Score compute_block_portably(const Scoring& scoring, const Block& block,
                             bool want_bound) noexcept {
  return compute_by_lanes(scoring, block, want_bound);
}

}  // namespace smith_waterman
