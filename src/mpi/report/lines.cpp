// SPDX-License-Identifier: BSD-3-Clause
#include "report/lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace imbrex::mpi::report {

namespace {

std::string number_or_any(const int value) { return value == any ? "any" : std::to_string(value); }

// "s 4, 7" of those that the first of the group does not have.
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

// How much of what `wait` wants the message has; negative: it would take it.
int nearness(const Wait& wait, const Message& message) {
  const bool comm = wait.comm == message.comm;
  const bool source = fits(wait.peer, message.source);
  const bool tag = fits(wait.tag, message.tag);
  if (comm && source && tag) return -1;
  return (comm ? 4 : 0) + (source ? 2 : 0) + (tag ? 1 : 0);
}

std::string describe_wanted(const Wait& wait, const Message& message, const int rank) {
  std::string text = fmt::format("rank {} waits for tag {} from {}", rank, number_or_any(wait.tag),
                                 number_or_any(wait.peer));
  if (wait.comm != message.comm) text += " on " + wait.comm;
  return text + " in " + wait.task;
}

}  // namespace

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
    if (written == ranges_max) return text + ", ...";
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

Lines explain(const std::vector<Message>& messages, const std::vector<Wait>& waits, const int rank,
              const std::size_t most) {
  Lines lines;
  for (const Message& message : messages) {
    const Wait* nearest = nullptr;
    int best = 0;  // with nothing in common, a wait explains nothing
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
        fmt::format("a message from {} with tag {}, {} bytes, on {} is there and nobody receives "
                    "it",
                    message.source, message.tag, message.bytes, message.comm));
    if (nearest != nullptr) lines.back() += "; " + describe_wanted(*nearest, message, rank);
  }
  limit(lines, most, "messages that nobody receives");
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
