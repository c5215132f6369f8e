// SPDX-License-Identifier: BSD-3-Clause
// Compares the collectives that the ranks of one communicator report; one rank does it. Knows no
// MPI. docs/design/ordered.md says what is compared, and why nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mpi/check/ranks/begun_collective.hpp"

namespace imbrex::mpi::check {

// Thread safety: one thread at a time.
// Invariants:
//   (1) a round is kept until all ranks have begun that collective, and then for `rounds_kept`
//       more.
//   (2) there is one finding at most: later rounds are shifted.
class Comparison {
 public:
  // The number of collectives that a rank has begun, when it begins no more.
  struct End {
    std::uint64_t total = 0;
    bool freed = false;  // else it is in MPI_Finalize
  };

  explicit Comparison(int size) : ends_(static_cast<std::size_t>(size)), size_(size) {}

  // Each returns a finding, or an empty text. Letters of one rank may come in any order.
  [[nodiscard]] std::string begin(int rank, const Begun& begun);
  [[nodiscard]] std::string set_unordered(std::uint64_t number);
  [[nodiscard]] std::string end(int rank, const End& end);
  // All letters have come: a rank without an end has begun none.
  [[nodiscard]] std::string end_others();

  // True if all ranks have ended, and none of their letters is missing.
  [[nodiscard]] bool is_over() const noexcept;

 private:
  struct One {
    int rank;
    Begun begun;
  };
  struct Round {
    bool unordered = false;
    std::vector<One> all;  // in the order of their arrival
  };
  struct Report : End {
    bool is_known = false;
    std::uint64_t begun = 0;  // number of letters
  };
  static constexpr std::size_t rounds_kept = 128;

  [[nodiscard]] std::string compare(const Round& round, std::size_t first);
  [[nodiscard]] std::string look_for_end();
  void forget_old_rounds();
  std::string keep_finding(std::string finding);

  std::map<std::uint64_t, Round> rounds_;  // by number; no bound: a rank may be far ahead
  std::uint64_t first_kept_ = 1;
  std::vector<Report> ends_;  // by rank
  int size_;
  bool has_finding_ = false;
};

}  // namespace imbrex::mpi::check
