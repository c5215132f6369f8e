// SPDX-License-Identifier: BSD-3-Clause
// A program whose kernels sleep, so that ranks may share processors: it sends as many bytes as the
// real one, and computes nothing.
#pragma once

#include <string>
#include <vector>

#include "../../tiled/sleep.hpp"
#include "program.hpp"

namespace mapreduce {

// The kernels of --kernel-us: a map of one chunk; the reduction of all tuples of that map.
inline const std::vector<std::string> kernel_names{"map", "reduce"};

struct ChunkCost {
  double map_s = 0;
  double reduce_s = 0;
  std::size_t bytes = 0;  // of its tuples, for all ranks together
};

class Timed : public Program {
 public:
  Timed(const ChunkCost& cost, int ranks)
      : cost_(cost), ranks_(static_cast<std::size_t>(ranks)) {}

  void map(const Chunks chunks, Output& output) override {
    const int count = chunks.end - chunks.first;
    tiled::sleep_precisely(count * cost_.map_s);
    for (Bytes& bytes : output) {
      bytes.resize(bytes.size() + static_cast<std::size_t>(count) * (cost_.bytes / ranks_));
    }
  }
  void reduce(const std::span<const std::byte> tuples) override {
    const auto chunks = static_cast<double>(tuples.size()) / static_cast<double>(cost_.bytes);
    tiled::sleep_precisely(chunks * cost_.reduce_s);
  }
  [[nodiscard]] std::size_t piece_bytes_max() const override { return cost_.bytes / ranks_; }

 private:
  ChunkCost cost_;
  std::size_t ranks_;
};

}  // namespace mapreduce
