// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/report/waits/wait_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text/ranges.hpp"
#include "diagnosis/causes.hpp"
#include "imbrex/detail/distributed/future_names.hpp"

namespace imbrex::mpi::report {

using base::text::ranges;

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

std::string describe_wanted(const diagnosis::Wait& wait, const diagnosis::Message& message,
                            const int rank) {
  const auto text_of = [](const int value) {
    return value == diagnosis::any ? std::string("any") : std::to_string(value);
  };
  std::string text = fmt::format("rank {} waits for tag {} from {}", rank, text_of(wait.tag),
                                 text_of(wait.peer_in_comm));
  if (wait.comm.name != message.comm.name) text += " on " + wait.comm.name;
  return text + " in " + wait.task_text;
}

// The place of the first future's name at or behind `from`, and its length; 0: there is none.
std::pair<std::size_t, std::size_t> find_future(const std::string_view text,
                                                const std::size_t from) {
  for (std::size_t home = text.find(detail::home_begins, from); home != std::string_view::npos;
       home = text.find(detail::home_begins, home + 1)) {
    const std::size_t space = text.rfind(detail::space_begins, home);
    if (space == std::string_view::npos) continue;
    const std::size_t begin = text.rfind(detail::future_begins, space);
    if (begin == std::string_view::npos) continue;
    const std::size_t end = std::min(
        text.find_first_not_of("0123456789", home + detail::home_begins.size()), text.size());
    return {begin, end - begin};
  }
  return {0, 0};
}

}  // namespace

std::string_view future_in(const std::string_view text) {
  const auto [begin, length] = find_future(text, 0);
  return text.substr(begin, length);
}

int home_in(const std::string_view future) noexcept {
  const std::size_t home = future.rfind(detail::home_begins);
  if (home == std::string_view::npos) return diagnosis::none;
  return std::atoi(future.data() + home + detail::home_begins.size());
}

Lines list_awaiting(const std::map<int, std::string>& answers, const std::size_t most) {
  std::map<std::string_view, std::vector<int>> futures;
  for (const auto& [rank, answer] : answers) {
    const std::string_view text = answer;
    std::size_t from = 0;
    for (;;) {
      const auto [begin, length] = find_future(text, from);
      if (length == 0) break;
      futures[text.substr(begin, length)].push_back(rank);
      from = begin + length;
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

Lines explain(const diagnosis::RankFacts& facts, const std::size_t most) {
  Lines lines;
  for (const diagnosis::Message& message : facts.messages) {
    const std::optional<diagnosis::Nearest> nearest =
        diagnosis::find_nearest(message, facts.waits);
    if (!nearest) continue;
    lines.push_back(
        fmt::format("a message from {} with tag {}, {} bytes, on {} has arrived and no receive "
                    "takes it",
                    message.source_in_comm, message.tag, message.bytes, message.comm.name));
    if (nearest->wait != nullptr) {
      lines.back() += "; " + describe_wanted(*nearest->wait, message, facts.rank);
    }
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
