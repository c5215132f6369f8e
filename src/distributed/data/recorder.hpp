// SPDX-License-Identifier: BSD-3-Clause
// Writes the insertions of this process to a file instead of running them, for `imbrex simulate`:
// the process stands for all ranks, since every rank inserts the same sequence. Used by DataSpace,
// which gives numbers and keeps its records of data. Knows no message.
//
// Thread safety: one thread at a time, as the spaces of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "distributed/data/recorded.hpp"
#include "imbrex/detail/distributed/data_space.hpp"

namespace imbrex::distributed {

class Recorder {
 public:
  // The recorder of this process; null unless `imbrex simulate` has started the process. Throws
  // Error if the file cannot be written.
  [[nodiscard]] static Recorder* of_process();
  // How many ranks the process stands for; 0 without a recorder.
  [[nodiscard]] static int ranks();

  struct Access {
    std::uint64_t datum;
    detail::DataMode mode;
    const detail::DataReduction* reduction;
  };
  struct Task {
    const char* name;
    int executor;
    int priority;
  };

  // Throw Error if the file cannot be written. open() returns the number of the space.
  [[nodiscard]] std::uint64_t open(std::uint64_t window);
  void datum(std::uint64_t space, int owner, std::size_t bytes);
  void task(std::uint64_t space, const Task& task, std::span<const Access> accesses);
  // A step of one datum; `owner` counts for Operation::move only.
  void movement(recorded::Operation operation, std::uint64_t space, std::uint64_t datum, int owner);
  void finish(std::uint64_t space);
  void close(std::uint64_t space);
  // The program has made a mistake, or ends a space early: there will be no summary.
  void abandon() noexcept { abandoned_ = true; }

  // The program has looked at a value that a task would have written. A later insertion might
  // depend on the value, so task() is not called any more, and the summary names the datum.
  void viewed(const std::string& datum) {
    if (viewed_.empty()) viewed_ = datum;
  }
  [[nodiscard]] const std::string& first_viewed() const noexcept { return viewed_; }
  // Memory of at least `bytes` for a value that nobody has computed: zeros, of which no page exists
  // until it is written.
  [[nodiscard]] void* zeros(std::size_t bytes);

 private:
  Recorder(std::string path, int ranks);
  void put(std::uint64_t number);
  void put(recorded::Operation operation, std::uint64_t space);
  void put(std::string_view bytes);
  [[nodiscard]] std::uint64_t number_of(const char* name);
  [[nodiscard]] std::uint64_t number_of(const detail::DataReduction& reduction);
  void flush();
  void write_summary();

  const std::string path_;
  const int ranks_;
  std::FILE* file_ = nullptr;
  std::vector<char> buffer_;
  bool abandoned_ = false;
  std::string viewed_;
  std::unordered_map<const void*, std::uint64_t> by_address_;  // of a name
  std::unordered_map<std::string, std::uint64_t> by_text_;
  std::unordered_map<const detail::DataReduction*, std::uint64_t> reductions_;
  std::vector<std::string> names_;
  std::vector<std::uint64_t> counts_;  // of each name: its tasks
  std::uint64_t spaces_ = 0;
  std::uint64_t open_spaces_ = 0;
  std::uint64_t data_ = 0;
  std::uint64_t accesses_ = 0;
};

}  // namespace imbrex::distributed
