// SPDX-License-Identifier: BSD-3-Clause
// For builds without OpenMP; else openmp.cpp.
#include "variants.hpp"

namespace uts {

int openmp_threads() {
  throw InputError("--variant openmp: this program was built without OpenMP, as it is by compilers "
                   "other than GCC and for sanitizers");
}

std::vector<Tally> run_openmp(const Run&) { return {}; }

}  // namespace uts
