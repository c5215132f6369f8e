// SPDX-License-Identifier: BSD-3-Clause
// Whether the program was linked with imbrex.
#pragma once

namespace imbrex::mpi {

// True if the program, or a library in it, was linked with imbrex: then it has tasks. False if this
// library is there only because it was preloaded.
[[nodiscard]] bool linked_with_imbrex();

}  // namespace imbrex::mpi
