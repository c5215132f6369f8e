// SPDX-License-Identifier: BSD-3-Clause
// What the variants run: a program of map and reduce, and the tuples between them as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace mapreduce {

using Bytes = std::vector<std::byte>;
// The output of a map: tuples for each rank. The hash of a key selects the rank.
using Output = std::vector<Bytes>;

// Neighbouring chunks of a rank's input, as one.
struct Chunks {
  int first = 0;
  int end = 0;
};

// Thread safety: map() and reduce() may be called by any number of threads at once. Neither
// suspends a task.
class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  virtual ~Program() = default;

  virtual void begin() {}  // forgets what was reduced; before a run
  // Appends to `output`, which has an element for each rank.
  virtual void map(Chunks chunks, Output& output) = 0;
  // Reduces `tuples`, whole ones, which maps of one rank have made for this rank.
  virtual void reduce(std::span<const std::byte> tuples) = 0;
  // The largest number of bytes that the map of one chunk, on any rank, makes for one rank.
  [[nodiscard]] virtual std::size_t piece_bytes_max() const = 0;
  virtual void end() {}  // brings together what several threads have reduced
};

// Results of reductions that run at once: each takes one for itself alone, so there are never more
// than threads. A reduction does not suspend, and holds no lock while it works.
template <class Result>
class Results {
 public:
  // Calls use(Result&) for a result that no other task holds. If all are held, make() gives a new
  // one.
  template <class Make, class Use>
  void with_one(Make&& make, Use&& use) {
    std::unique_ptr<Result> mine;
    {
      const std::lock_guard guard(lock_);
      if (!free_.empty()) {
        mine = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!mine) mine = make();
    use(*mine);
    const std::lock_guard guard(lock_);
    free_.push_back(std::move(mine));
  }
  // REQUIRES: no task is inside with_one().
  [[nodiscard]] std::vector<std::unique_ptr<Result>>& all() noexcept { return free_; }

 private:
  std::mutex lock_;
  std::vector<std::unique_ptr<Result>> free_;
};

// Values are written one after the other, without regard to alignment.
template <class Value>
void append(Bytes& bytes, const Value* values, std::size_t count) {
  const auto* const from = reinterpret_cast<const std::byte*>(values);
  bytes.insert(bytes.end(), from, from + count * sizeof(Value));
}
template <class Value>
void read(const std::byte*& from, Value* values, std::size_t count) {
  std::memcpy(values, from, count * sizeof(Value));
  from += count * sizeof(Value);
}

}  // namespace mapreduce
