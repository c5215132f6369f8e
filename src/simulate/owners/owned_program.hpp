// SPDX-License-Identifier: BSD-3-Clause
// A program on data with owners, from the insertions that it has recorded (`imbrex simulate ...
// -- PROGRAM`): every rank inserts the whole sequence, runs its tasks, and the library's own
// broadcasts carry the data. Payloads do not exist.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "distributed/data/trees.hpp"
#include "simulate/engine/program.hpp"

namespace imbrex::simulate {

struct OwnedSetup {
  std::string path;             // of the recorded insertions
  int ranks = 1;
  int per_node = 1;
  std::vector<Kernel> kernels;  // of the names of tasks, in their order in the file
  Time elsewhere_ns = 0;        // to insert a task that runs on another rank
  Time combine_ns = 0;          // to combine two copies of a reduction
  distributed::TreeKind tree = distributed::TreeKind::automatic;
};

// Throws Error if the file cannot be read, or is damaged; next() does the same.
[[nodiscard]] std::unique_ptr<Program> make_owned_program(const OwnedSetup& setup);

}  // namespace imbrex::simulate
