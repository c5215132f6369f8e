// SPDX-License-Identifier: BSD-3-Clause
// The files of a job's ranks, taken together, and what is found in them.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/causes.hpp"
#include "explain/recording.hpp"

namespace imbrex::explain {

struct Gathered {
  std::vector<Recording> all;              // by rank
  std::vector<diagnosis::RankFacts> facts;
  std::vector<diagnosis::Finding> findings;
  std::vector<int> missing;                // ranks without a file
  std::vector<std::string> left_out;       // files that could not be read, and why
};

// Reads the newest job in these files: a folder may hold files of several. Throws Error if none can
// be read.
[[nodiscard]] Gathered gather(const std::vector<std::string>& files);

[[nodiscard]] std::string text_of(const Gathered& gathered);
[[nodiscard]] std::string json_of(const Gathered& gathered);

// "MPI_Recv from 1, tag 7, 64 bytes, on MPI_COMM_WORLD".
[[nodiscard]] std::string text_of(const ShownWait& wait);

}  // namespace imbrex::explain
