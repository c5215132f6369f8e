// SPDX-License-Identifier: BSD-3-Clause
// A program that also says, now and then, how many of its chunks are mapped.
#pragma once

#include "../../harness/progress.hpp"
#include "program.hpp"

namespace mapreduce {

class Progress : public Program {
 public:
  // Prints after so many seconds, and so on; 0: never. `program` outlives it.
  Progress(Program& program, double every_s, int chunks)
      : program_(program), progress_(chunks, "chunks", every_s) {}

  void begin() override {
    progress_.begin("map");
    program_.begin();
  }
  void map(const Chunks chunks, Output& output) override {
    program_.map(chunks, output);
    progress_.add(chunks.end - chunks.first);
  }
  void reduce(const std::span<const std::byte> tuples) override { program_.reduce(tuples); }
  [[nodiscard]] std::size_t piece_bytes_max() const override {
    return program_.piece_bytes_max();
  }
  void end() override { program_.end(); }

 private:
  Program& program_;
  apps::Progress progress_;
};

}  // namespace mapreduce
