// SPDX-License-Identifier: BSD-3-Clause
// The text of reports: operations that tasks wait for, equal ones folded, and unexpected messages,
// each beside the wait that was perhaps meant for it. Knows neither MPI nor tasks.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

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

// A message that has arrived, and that no receive has taken.
struct UnexpectedMessage {
  std::string comm;
  int source;
  int tag;
  std::uint64_t bytes;
};

using Lines = std::vector<std::string>;

// Call, rank, tag, bytes, communicator and task.
[[nodiscard]] std::string describe(const Wait& wait);

// One line for each group of waits with one call, communicator and task: its first wait completely,
// for the others their number, ranks and tags. The smallest groups come first, because a single
// different wait tells more than a thousand equal ones. At most `most` lines.
[[nodiscard]] Lines fold(const std::vector<Wait>& waits, std::size_t most);

// One line for each message that no wait would take, with the wait of `rank` that comes closest to
// it. At most `most` lines.
[[nodiscard]] Lines explain(const std::vector<UnexpectedMessage>& messages,
                            const std::vector<Wait>& waits, int rank, std::size_t most);

// Merges equal lines, with their number, in the order of the first of them; at most `most`.
[[nodiscard]] Lines unite(const Lines& lines, std::size_t most);

// Says what to do where ranks wait in different collectives of one communicator, in one line for
// each communicator. `answers` come from all ranks, and contain lines of describe(). Ranks that
// wait in one collective give no line.
[[nodiscard]] Lines advise(const std::map<int, std::string>& answers);

// The ranks that await a distributed future that several ranks await; at most `most` lines.
[[nodiscard]] Lines list_awaiting(const std::map<int, std::string>& answers, std::size_t most);

// A line about active messages: the numbers that this rank has sent and handled.
[[nodiscard]] std::string describe_messages(std::uint64_t sent, std::uint64_t handled);
// The number of active messages in flight between the ranks, in one line; none if the answer of a
// rank is missing, or the number is zero.
[[nodiscard]] Lines sum_messages(const std::map<int, std::string>& answers, int ranks);

// 1, 2, 3, 7 as "1-3, 7".
[[nodiscard]] std::string ranges(std::vector<int> numbers);

}  // namespace imbrex::mpi::report
