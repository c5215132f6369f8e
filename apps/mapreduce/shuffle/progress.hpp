// SPDX-License-Identifier: BSD-3-Clause
// A program that also says, now and then, how far it is.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <mutex>

#include "program.hpp"

namespace mapreduce {

class Progress : public Program {
 public:
  // Prints after so many seconds, and so on; 0: never. `program` outlives it.
  Progress(Program& program, double every_s, int chunks)
      : program_(program), every_(every_s), chunks_(chunks) {}

  void begin() override {
    begin_ = printed_ = Clock::now();
    mapped_ = 0;
    reduced_bytes_ = 0;
    program_.begin();
  }
  void map(const Chunks chunks, Output& output) override {
    program_.map(chunks, output);
    note(chunks.end - chunks.first, 0);
  }
  void reduce(const std::span<const std::byte> tuples) override {
    program_.reduce(tuples);
    note(0, tuples.size());
  }
  [[nodiscard]] std::size_t piece_bytes_max() const override {
    return program_.piece_bytes_max();
  }
  void end() override { program_.end(); }

 private:
  using Clock = std::chrono::steady_clock;

  void note(const int chunks, const std::size_t bytes) {
    const std::lock_guard guard(lock_);
    mapped_ += chunks;
    reduced_bytes_ += bytes;
    const auto now = Clock::now();
    if (every_.count() == 0 || now - printed_ < every_) return;
    printed_ = now;
    fmt::print("        {:.0f} s: rank 0 has mapped {} of {} chunks and reduced {:.1f} MB\n",
               std::chrono::duration<double>(now - begin_).count(), mapped_, chunks_,
               1e-6 * static_cast<double>(reduced_bytes_));
    std::fflush(stdout);
  }

  Program& program_;
  const std::chrono::duration<double> every_;
  const int chunks_;
  std::mutex lock_;  // guards what follows
  Clock::time_point begin_;
  Clock::time_point printed_;
  int mapped_ = 0;
  std::size_t reduced_bytes_ = 0;
};

}  // namespace mapreduce
