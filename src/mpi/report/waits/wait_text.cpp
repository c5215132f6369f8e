// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/report/waits/wait_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "imbrex/detail/distributed/future_names.hpp"

namespace imbrex::mpi::report {

namespace {

std::string number_or_any(const int value) { return value == any ? "any" : std::to_string(value); }

// "s 4, 7" for the values that the first of the group does not have.
std::string others(const std::vector<const Wait*>& group, int Wait::*const field,
                   const char* const one, const char* const several) {
  std::vector<int> numbers;
  for (const Wait* const wait : group) {
    if (wait->*field > any) numbers.push_back(wait->*field);
  }
  const bool same = std::ranges::all_of(
      numbers, [&](const int number) { return number == group.front()->*field; });
  if (numbers.empty() || same) return "";
  return fmt::format(", {} {}", numbers.size() == 1 ? one : several, ranges(std::move(numbers)));
}

std::string describe_group(const std::vector<const Wait*>& group) {
  std::string text = describe(*group.front());
  if (group.size() == 1) return text;
  text += fmt::format(" (and {} more like this", group.size() - 1);
  text += others(group, &Wait::peer, "in all rank", "in all ranks");
  text += others(group, &Wait::tag, "in all tag", "in all tags");
  return text + ")";
}

void limit(Lines& lines, const std::size_t most, const char* const what) {
  if (lines.size() <= most) return;
  const std::size_t left_out = lines.size() - (most - 1);
  lines.resize(most - 1);
  lines.push_back(fmt::format("... and {} more {}", left_out, what));
}

bool fits(const int wanted, const int there) { return wanted == any || wanted == there; }

// How close `message` comes to `wait`; negative if the wait would take it.
int nearness(const Wait& wait, const UnexpectedMessage& message) {
  const bool comm = wait.comm == message.comm;
  const bool source = fits(wait.peer, message.source);
  const bool tag = fits(wait.tag, message.tag);
  if (comm && source && tag) return -1;
  return (comm ? 4 : 0) + (source ? 2 : 0) + (tag ? 1 : 0);
}

std::string describe_wanted(const Wait& wait, const UnexpectedMessage& message, const int rank) {
  std::string text = fmt::format("rank {} waits for tag {} from {}", rank, number_or_any(wait.tag),
                                 number_or_any(wait.peer));
  if (wait.comm != message.comm) text += " on " + wait.comm;
  return text + " in " + wait.task;
}

// A call that all ranks of a communicator must make, in one order.
bool is_collective(const std::string_view call) {
  constexpr std::string_view begins[] = {
      "MPI_Allgather", "MPI_Allreduce", "MPI_Alltoall", "MPI_Barrier", "MPI_Bcast", "MPI_Exscan",
      "MPI_Gather", "MPI_Neighbor_", "MPI_Reduce", "MPI_Scan", "MPI_Scatter"};
  return std::ranges::any_of(begins, [&](const std::string_view begin) {
    return call.starts_with(begin) && !call.starts_with("MPI_Reduce_local");
  });
}

// For each communicator and each collective, the ranks that wait in it.
using Collectives = std::map<std::string, std::map<std::string, std::vector<int>>, std::less<>>;

// Reads a line of describe(), if it is one of a collective.
void take_collective(std::string_view line, const int rank, Collectives& collectives) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view call = line.substr(0, line.find_first_of(" ,:"));
  const std::size_t comm = line.find(", on ");
  const std::size_t end = line.find(": in ");
  if (!is_collective(call) || comm == std::string_view::npos || end < comm) return;
  const std::string name(line.substr(comm + 5, end - comm - 5));
  std::vector<int>& ranks = collectives[name][std::string(call)];
  if (ranks.empty() || ranks.back() != rank) ranks.push_back(rank);
}

}  // namespace

Lines advise(const std::map<int, std::string>& answers) {
  Collectives collectives;
  for (const auto& [rank, answer] : answers) {
    for (std::size_t begin = 0; begin < answer.size();) {
      const std::size_t end = std::min(answer.find('\n', begin), answer.size());
      take_collective(std::string_view(answer).substr(begin, end - begin), rank, collectives);
      begin = end + 1;
    }
  }
  Lines lines;
  for (const auto& [comm, calls] : collectives) {
    if (calls.size() < 2) continue;
    std::string text = fmt::format("on {} ranks wait in different collectives: ", comm);
    for (const auto& [call, ranks] : calls) {
      if (!text.ends_with(": ")) text += "; ";
      text += fmt::format("{} in {}", ranges(ranks), call);
    }
    lines.push_back(text + ". All ranks must begin the collectives of a communicator in the same "
                           "order: let the tasks that call them have an access in common, such as "
                           ".inout(comm), or give each a communicator of its own. IMBREX_CHECK=1 "
                           "finds the first collective that differs");
  }
  return lines;
}

Lines list_awaiting(const std::map<int, std::string>& answers, const std::size_t most) {
  std::map<std::string_view, std::vector<int>> futures;
  for (const auto& [rank, answer] : answers) {
    const std::string_view text = answer;
    for (std::size_t home = text.find(detail::home_begins); home != std::string_view::npos;
         home = text.find(detail::home_begins, home + 1)) {
      const std::size_t space = text.rfind(detail::space_begins, home);
      if (space == std::string_view::npos) continue;
      const std::size_t begin = text.rfind(detail::future_begins, space);
      const std::size_t end =
          text.find_first_not_of("0123456789", home + detail::home_begins.size());
      if (begin == std::string_view::npos) continue;
      futures[text.substr(begin, end - begin)].push_back(rank);
    }
  }
  Lines lines;
  for (const auto& [future, ranks] : futures) {
    if (ranks.front() == ranks.back()) continue;  // it is in the answer of that rank
    lines.push_back(fmt::format("ranks {} await {}", ranges(ranks), future));
  }
  limit(lines, most, "futures that several ranks await");
  return lines;
}

namespace {
constexpr std::string_view messages_prefix = "active messages: ";
constexpr std::string_view messages_middle = " sent from here, ";
}  // namespace

std::string describe_messages(const std::uint64_t sent, const std::uint64_t handled) {
  return fmt::format("{}{}{}{} handled here", messages_prefix, sent, messages_middle, handled);
}

Lines sum_messages(const std::map<int, std::string>& answers, const int ranks) {
  std::uint64_t sent = 0;
  std::uint64_t handled = 0;
  int telling = 0;
  for (const auto& [rank, answer] : answers) {
    const std::size_t place = answer.find(messages_prefix);
    if (place == std::string::npos) continue;
    const std::string numbers = answer.substr(place + messages_prefix.size());
    const std::size_t middle = numbers.find(messages_middle);
    if (middle == std::string::npos) continue;
    sent += std::strtoull(numbers.c_str(), nullptr, 10);
    handled += std::strtoull(numbers.c_str() + middle + messages_middle.size(), nullptr, 10);
    ++telling;
  }
  if (telling != ranks) return {};
  if (sent == handled) {
    return {"every active message that was sent has been handled: no active message can end a "
            "wait"};
  }
  return {fmt::format("active messages: {} sent by all ranks, {} handled: some are in flight",
                      sent, handled)};
}

std::string describe(const Wait& wait) {
  std::string text = wait.call;
  if (wait.peer != none) {
    text += (wait.receives ? " from " : " to ") + number_or_any(wait.peer);
  }
  if (wait.tag != none) text += ", tag " + number_or_any(wait.tag);
  if (wait.sized) text += fmt::format(", {} bytes", wait.bytes);
  if (!wait.comm.empty()) text += ", on " + wait.comm;
  return text + ": in " + wait.task;
}

std::string ranges(std::vector<int> numbers) {
  constexpr int ranges_max = 6;
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
  std::string text;
  int written = 0;
  for (std::size_t first = 0; first < numbers.size(); ++written) {
    if (written == ranges_max) return fmt::format("{} and {} more", text, numbers.size() - first);
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(numbers[first]);
    if (last != first) text += (last == first + 1 ? ", " : "-") + std::to_string(numbers[last]);
    first = last + 1;
  }
  return text;
}

Lines fold(const std::vector<Wait>& waits, const std::size_t most) {
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> places;
  std::vector<std::vector<const Wait*>> groups;
  for (const Wait& wait : waits) {
    const auto [place, is_new] = places.try_emplace({wait.call, wait.comm, wait.task},
                                                    groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(&wait);
  }
  std::ranges::stable_sort(groups, {}, [](const auto& group) { return group.size(); });
  Lines lines;
  for (const auto& group : groups) lines.push_back(describe_group(group));
  limit(lines, most, "kinds of waits");
  return lines;
}

Lines explain(const std::vector<UnexpectedMessage>& messages, const std::vector<Wait>& waits,
              const int rank, const std::size_t most) {
  Lines lines;
  for (const UnexpectedMessage& message : messages) {
    const Wait* nearest = nullptr;
    int best = 0;  // if nothing matches, a wait explains nothing
    bool taken = false;
    for (const Wait& wait : waits) {
      if (!wait.receives) continue;
      const int near = nearness(wait, message);
      taken = taken || near < 0;
      if (near > best) {
        best = near;
        nearest = &wait;
      }
    }
    if (taken) continue;
    lines.push_back(
        fmt::format("a message from {} with tag {}, {} bytes, on {} has arrived and no receive "
                    "takes it",
                    message.source, message.tag, message.bytes, message.comm));
    if (nearest != nullptr) lines.back() += "; " + describe_wanted(*nearest, message, rank);
  }
  limit(lines, most, "messages that no receive takes");
  return lines;
}

Lines unite(const Lines& lines, const std::size_t most) {
  std::map<std::string, std::size_t> places;
  std::vector<std::pair<std::string, std::size_t>> counted;
  for (const std::string& line : lines) {
    const auto [place, is_new] = places.try_emplace(line, counted.size());
    if (is_new) counted.emplace_back(line, 0);
    ++counted[place->second].second;
  }
  Lines united;
  for (const auto& [line, count] : counted) {
    united.push_back(line);
    if (count > 1) united.back() += fmt::format(" (and {} more like this)", count - 1);
  }
  limit(united, most, "kinds of tasks");
  return united;
}

}  // namespace imbrex::mpi::report
