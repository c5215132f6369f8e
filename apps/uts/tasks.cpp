// SPDX-License-Identifier: BSD-3-Clause
// The variant with imbrex's work between ranks.
#include "variants.hpp"

namespace uts {

std::vector<Tally> run_imbrex(const Run&) {
  throw InputError("--variant imbrex: not yet; take --variant mpi, openmp or sequential");
}

}  // namespace uts
