// SPDX-License-Identifier: BSD-3-Clause
// The affinity that a thread prints if OMP_DISPLAY_AFFINITY or the program asks for it.
#pragma once

#include "omp/region/context.hpp"

namespace imbrex::omp {

// Prints the affinity of the calling thread, in the format that the program has set.
void display_affinity();

}  // namespace imbrex::omp
