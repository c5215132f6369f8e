// SPDX-License-Identifier: BSD-3-Clause
#include "diagnosis/survey.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/text/ranges.hpp"

namespace imbrex::diagnosis {

namespace {

constexpr std::int64_t still_ms_min = 500;

bool stands(const RankFacts& facts) noexcept {
  switch (facts.state) {
    case RankState::silent: return false;
    case RankState::dead:
    case RankState::ended: return true;
    case RankState::answers:
    case RankState::finalizes: break;
  }
  return facts.running.empty() && !facts.may_continue && facts.still_ms >= still_ms_min;
}

// The wait of a rank that tells most.
int interest(const Wait& wait) noexcept {
  switch (wait.kind) {
    case WaitKind::lock: return 0;
    case WaitKind::receive:
    case WaitKind::send:
    case WaitKind::probe:
    case WaitKind::collective: return 1;
    case WaitKind::request:
    case WaitKind::window:
    case WaitKind::future: return 2;
    case WaitKind::part:
    case WaitKind::phaser: return 3;
    case WaitKind::promise:
    case WaitKind::asks: return 4;
    case WaitKind::dependency:
    case WaitKind::other: return 5;
    case WaitKind::finish: return 6;
    case WaitKind::finalize: return 7;
  }
  return 8;
}

std::string peer_text(const int peer) {
  return peer == any ? "any rank" : fmt::format("{}", peer);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

Survey::Survey(const std::vector<RankFacts>& facts) : facts_(facts) {
  for (const RankFacts& one : facts) by_rank_[one.rank] = &one;
  all_stopped_ = !facts.empty() && std::ssize(by_rank_) == facts.front().ranks &&
                 std::ranges::all_of(facts, stands);
}

const RankFacts* Survey::find(const int rank) const noexcept {
  const auto found = by_rank_.find(rank);
  return found == by_rank_.end() ? nullptr : found->second;
}

bool Survey::is_stopped(const int rank) const noexcept {
  const RankFacts* const facts = find(rank);
  return facts != nullptr && stands(*facts);
}

std::string Survey::state_of(const int rank) const {
  const RankFacts* const facts = find(rank);
  if (facts == nullptr || facts->state == RankState::silent) return "it does not answer";
  switch (facts->state) {
    case RankState::dead: return "its process has died";
    case RankState::finalizes: return "it is in MPI_Finalize";
    case RankState::ended: return "it has ended";
    case RankState::answers:
    case RankState::silent: break;
  }
  if (!facts->running.empty()) return "it runs " + facts->running.front();
  const auto best = std::ranges::min_element(facts->waits, {}, interest);
  if (best != facts->waits.end()) return "it " + phrase(*best);
  return facts->may_continue ? "it runs code outside of tasks" : "no task of it is left";
}

std::string Survey::remarks(const std::vector<int>& ranks) const {
  constexpr std::string_view unbegun = "dependency on ";
  for (const int rank : ranks) {
    const RankFacts* const facts = find(rank);
    if (facts == nullptr || facts->failures.empty()) continue;
    return fmt::format("; on rank {} {}", rank, first_line(facts->failures.front()));
  }
  for (const int rank : ranks) {
    const RankFacts* const facts = find(rank);
    if (facts == nullptr) continue;
    const auto waits = std::ranges::find_if(facts->waits, [&](const Wait& wait) {
      return wait.kind == WaitKind::dependency && wait.call.starts_with(unbegun);
    });
    if (waits == facts->waits.end()) continue;
    return fmt::format("; on rank {} {} has not begun, since it follows {}", rank,
                       waits->task_text, waits->call.substr(unbegun.size()));
  }
  return {};
}

std::string Survey::advice(const std::vector<int>& ranks, const std::string& otherwise) const {
  const bool failed = std::ranges::any_of(ranks, [this](const int rank) {
    const RankFacts* const facts = find(rank);
    return facts != nullptr && !facts->failures.empty();
  });
  return failed ? "Look first at what has failed: a task that did not run may be the one that "
                  "others wait for"
                : otherwise;
}

std::string phrase(const Wait& wait) {
  std::string text;
  switch (wait.kind) {
    case WaitKind::lock: return fmt::format("has {} asleep in a lock", wait.task_text);
    case WaitKind::finalize: return "is in MPI_Finalize";
    case WaitKind::part: return "waits: " + wait.call;  // a sentence of its own
    case WaitKind::asks:
      text = (wait.call.find(" repeatedly") == std::string::npos ? "waits in " : "calls ") +
             wait.call;
      break;
    case WaitKind::receive:
    case WaitKind::send:
    case WaitKind::probe:
    case WaitKind::request:
    case WaitKind::collective:
    case WaitKind::window: text = "waits in " + wait.call; break;
    case WaitKind::future:
      text = "waits for " + (wait.object.empty() ? wait.call : wait.object);
      break;
    default: text = (wait.call.starts_with("MPI_") ? "waits in " : "waits for ") + wait.call; break;
  }
  if (is_receive(wait) && wait.peer != none) text += " from " + peer_text(wait.peer);
  if (wait.kind == WaitKind::send && wait.peer != none) text += " to " + peer_text(wait.peer);
  if (wait.tag != none) text += wait.tag == any ? ", any tag" : fmt::format(", tag {}", wait.tag);
  if (wait.kind == WaitKind::send && wait.bytes >= 0) {
    text += fmt::format(", {} bytes", wait.bytes);
  }
  if (!wait.comm.name.empty()) text += ", on " + wait.comm.name;
  if (!wait.task_text.empty()) text += ", in " + wait.task_text;
  return text;
}

std::string ranks_text(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + base::text::ranges(ranks);
}

bool is_receive(const Wait& wait) noexcept {
  return wait.kind == WaitKind::receive || wait.kind == WaitKind::probe;
}

bool is_alternative(const Wait& wait) noexcept {
  return wait.call.starts_with("MPI_Waitany") || wait.call.starts_with("MPI_Waitsome");
}

bool is_same(const Communicator& one, const Communicator& other) noexcept {
  if (one.id != 0 && other.id != 0) return one.id == other.id;
  return one.name == other.name && one.members == other.members;
}

bool is_certain(const Communicator& comm) noexcept { return comm.id != 0 || comm.is_named; }

}  // namespace imbrex::diagnosis
