// SPDX-License-Identifier: BSD-3-Clause
// The facts of all ranks, indexed, with the texts that findings share; and the searches for one
// kind of causes each. Used by causes.cpp.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "diagnosis/causes.hpp"
#include "diagnosis/facts.hpp"

namespace imbrex::diagnosis {

class Survey {
 public:
  explicit Survey(const std::vector<RankFacts>& facts);

  [[nodiscard]] const std::vector<RankFacts>& all() const noexcept { return facts_; }
  // Null: nothing is known of the rank.
  [[nodiscard]] const RankFacts* find(int rank) const noexcept;
  // Whether every rank is at a stop.
  [[nodiscard]] bool all_stopped() const noexcept { return all_stopped_; }
  // Whether nothing on this rank goes on by itself.
  [[nodiscard]] bool is_stopped(int rank) const noexcept;

  // "it waits in MPI_Recv from 3, tag 5, on halo in "main"", or "it is in MPI_Finalize".
  [[nodiscard]] std::string state_of(int rank) const;
  // What a reader must know of these ranks beside their waits: a failure, else a task that has not
  // begun. Begins with a semicolon, or is empty.
  [[nodiscard]] std::string remarks(const std::vector<int>& ranks) const;
  // What to do: to look at a failure, if remarks() names one.
  [[nodiscard]] std::string advice(const std::vector<int>& ranks,
                                   const std::string& otherwise) const;

 private:
  const std::vector<RankFacts>& facts_;
  std::map<int, const RankFacts*> by_rank_;
  bool all_stopped_ = false;
};

// "waits in MPI_Recv from 3, tag 5, on halo in "main"".
[[nodiscard]] std::string phrase(const Wait& wait);
// "rank 3" or "ranks 0, 1".
[[nodiscard]] std::string ranks_text(const std::vector<int>& ranks);
[[nodiscard]] bool is_receive(const Wait& wait) noexcept;
// Whether the call returns when another of its requests is complete (MPI_Waitany, MPI_Waitsome).
[[nodiscard]] bool is_alternative(const Wait& wait) noexcept;
// Whether two ranks mean one communicator; and whether they do so for certain.
[[nodiscard]] bool is_same(const Communicator& one, const Communicator& other) noexcept;
[[nodiscard]] bool is_certain(const Communicator& comm) noexcept;

// The shortest circle that a search finds: nodes, each of which has an edge to the next one, and
// the last one to the first. Empty: there is none.
[[nodiscard]] std::vector<std::size_t> find_circle(
    const std::vector<std::vector<std::size_t>>& edges);

using Findings = std::vector<Finding>;
void find_task_circles(const Survey& survey, Findings& findings);
void find_rank_circles(const Survey& survey, Findings& findings);
void find_collectives(const Survey& survey, Findings& findings);
void find_window_locks(const Survey& survey, Findings& findings);
void find_messages(const Survey& survey, Findings& findings);
void find_nobody(const Survey& survey, Findings& findings);

}  // namespace imbrex::diagnosis
