// SPDX-License-Identifier: BSD-3-Clause
// The text of reports: operations that tasks wait for, equal ones folded, and unexpected messages,
// each beside the wait that was perhaps meant for it. Knows neither MPI nor tasks. The cause of a
// hang is found by src/diagnosis.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/facts.hpp"

namespace imbrex::mpi::report {

// Values that are no rank or tag.
inline constexpr int none = INT_MIN;  // the call has no such argument
inline constexpr int any = INT_MIN + 1;

struct Wait {
  std::string call;
  std::string comm = {};    // its name; empty: the call names none
  int peer = none;
  int tag = none;
  bool sized = false;       // `bytes` is known
  std::uint64_t bytes = 0;
  bool receives = false;    // peer and tag select the message
  std::string task;         // name and place
};

using Lines = std::vector<std::string>;

// Call, rank, tag, bytes, communicator and task.
[[nodiscard]] std::string describe(const Wait& wait);

// One line for each group of waits with one call, communicator and task: its first wait completely,
// for the others their number, ranks and tags. The smallest groups come first, because a single
// different wait tells more than a thousand equal ones. At most `most` lines.
[[nodiscard]] Lines fold(const std::vector<Wait>& waits, std::size_t most);

// One line for each message of the rank that no wait would take, with the wait that comes closest
// to it. At most `most` lines.
[[nodiscard]] Lines explain(const diagnosis::RankFacts& facts, std::size_t most);

// Merges equal lines, with their number, in the order of the first of them; at most `most`.
[[nodiscard]] Lines unite(const Lines& lines, std::size_t most);

// The name of the first distributed future in `text`, up to its home; empty if there is none.
[[nodiscard]] std::string_view future_in(std::string_view text);
// The home in such a name; diagnosis::none if there is no name.
[[nodiscard]] int home_in(std::string_view future) noexcept;
// The ranks that await a distributed future that several ranks await; at most `most` lines.
[[nodiscard]] Lines list_awaiting(const std::map<int, std::string>& answers, std::size_t most);

// A line about active messages: the numbers that this rank has sent and handled.
[[nodiscard]] std::string describe_messages(std::uint64_t sent, std::uint64_t handled);
// The number of active messages in flight between the ranks, in one line; none if the answer of a
// rank is missing, or the number is zero.
[[nodiscard]] Lines sum_messages(const std::map<int, std::string>& answers, int ranks);

}  // namespace imbrex::mpi::report
