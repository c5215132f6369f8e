// SPDX-License-Identifier: BSD-3-Clause
// The text of reports: operations that tasks wait for, equal ones folded, and messages that nobody
// receives, each beside the wait that was perhaps meant for it. Knows neither MPI nor tasks.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace imbrex::mpi::report {

// Values of a rank or a tag that are none.
inline constexpr int none = INT_MIN;  // the call has no such argument
inline constexpr int any = INT_MIN + 1;

struct Wait {
  std::string call;
  std::string comm = {};    // its name; empty: the call names none
  int peer = none;
  int tag = none;
  bool sized = false;       // `bytes` is known
  std::uint64_t bytes = 0;
  bool receives = false;    // peer and tag choose the message
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

// One line for each group of waits of the same call, communicator and task: its first in full, of
// the others their number, ranks and tags. The smallest groups come first: where a thousand wait,
// the odd one out tells more. At most `most` lines.
[[nodiscard]] Lines fold(const std::vector<Wait>& waits, std::size_t most);

// One line for each message that no wait would take, with the wait of `rank` that comes closest to
// it. At most `most` lines.
[[nodiscard]] Lines explain(const std::vector<UnexpectedMessage>& messages,
                            const std::vector<Wait>& waits, int rank, std::size_t most);

// Gives equal lines once, with their number, in order of their first; at most `most`.
[[nodiscard]] Lines unite(const Lines& lines, std::size_t most);

// Says what to do where ranks wait in different collectives of one communicator, in one line for
// each communicator. `answers` are those of all ranks, and contain lines of describe(). Ranks that
// wait in the same collective give no line.
[[nodiscard]] Lines advise(const std::map<int, std::string>& answers);

// Says which ranks await a distributed future that more than one awaits; at most `most` lines.
[[nodiscard]] Lines list_awaiting(const std::map<int, std::string>& answers, std::size_t most);

// A line about active messages: how many this rank has sent and handled.
[[nodiscard]] std::string describe_messages(std::uint64_t sent, std::uint64_t handled);
// Says how many are under way between the ranks, in one line; none if an answer of `ranks` is
// missing, or tells of none.
[[nodiscard]] Lines sum_messages(const std::map<int, std::string>& answers, int ranks);

// 1, 2, 3, 7 as "1-3, 7".
[[nodiscard]] std::string ranges(std::vector<int> numbers);

}  // namespace imbrex::mpi::report
