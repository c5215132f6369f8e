// SPDX-License-Identifier: BSD-3-Clause
// Messages that no receive takes, and messages and values that nobody sends.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "base/text/ranges.hpp"
#include "diagnosis/survey.hpp"

namespace imbrex::diagnosis {

namespace {

bool fits(const int wanted, const int there) noexcept { return wanted == any || wanted == there; }

std::string on(const Communicator& comm) { return comm.name.empty() ? "" : " on " + comm.name; }

}  // namespace

std::optional<Nearest> find_nearest(const Message& message, const std::vector<Wait>& waits) {
  Nearest nearest;
  int best = 0;  // if nothing matches, a wait explains nothing
  for (const Wait& wait : waits) {
    if (!is_receive(wait)) continue;
    const bool comm = is_same(wait.comm, message.comm);
    const bool by_world = wait.peer != none && message.source != none;
    const bool source = by_world ? fits(wait.peer, message.source)
                                 : fits(wait.peer_in_comm, message.source_in_comm);
    const bool tag = fits(wait.tag, message.tag);
    if (comm && source && tag) return std::nullopt;
    const int near = (comm ? 4 : 0) + (source ? 2 : 0) + (tag ? 1 : 0);
    if (near <= best) continue;
    best = near;
    nearest = {&wait, !comm, !source, !tag};
  }
  return nearest;
}

namespace {

// A message that differs in one of the three from a receive.
void add_other_message(const Survey& survey, const RankFacts& facts, const Message& message,
                       const Nearest& nearest, Findings& findings) {
  const Wait& wait = *nearest.wait;
  Finding finding{Cause::other_message, survey.all_stopped(), {}, {}, {facts.rank}};
  if (message.source != none && message.source != facts.rank) {
    finding.ranks.push_back(message.source);
  }
  std::ranges::sort(finding.ranks);
  const std::string waits = fmt::format("rank {} {}", facts.rank, phrase(wait));
  if (nearest.other_tag) {
    finding.sentence = fmt::format(
        "{}, but the message from rank {}{} that has come has tag {}", waits, message.source,
        on(message.comm), message.tag);
    finding.advice = "Give the send and the receive the same tag, or receive this message first";
  } else if (nearest.other_comm) {
    finding.sentence = fmt::format("{}, but the message from rank {} with tag {} has come{}", waits,
                                   message.source, message.tag, on(message.comm));
    finding.advice = "Let the send and the receive name the same communicator";
  } else {
    finding.cause = Cause::other_source;
    finding.is_certain = false;  // another sender's may come first
    finding.sentence = fmt::format("{}, but the message with tag {}{} that has come is from rank "
                                   "{}",
                                   waits, message.tag, on(message.comm), message.source);
    finding.advice = "Receive from the rank that sends, or let the other rank send";
  }
  findings.push_back(std::move(finding));
}

// A lock that one task sleeps in, while another one waits, which perhaps holds it.
void add_lock(const RankFacts& facts, Findings& findings) {
  const auto sleeper = std::ranges::find(facts.waits, WaitKind::lock, &Wait::kind);
  if (sleeper == facts.waits.end()) return;
  const auto holder = std::ranges::find_if(facts.waits, [&](const Wait& wait) {
    switch (wait.kind) {
      case WaitKind::receive:
      case WaitKind::send:
      case WaitKind::probe:
      case WaitKind::request:
      case WaitKind::collective:
      case WaitKind::part:
      case WaitKind::phaser:
      case WaitKind::future:
      case WaitKind::promise: return wait.task == 0 || wait.task != sleeper->task;
      default: return false;
    }
  });
  if (holder == facts.waits.end()) return;
  findings.push_back(
      {Cause::held_lock, false,
       fmt::format("a lock on rank {} is held across a wait: {} sleeps in a lock, or something "
                   "like it, and one of the waiting tasks may hold it: {} {}",
                   facts.rank, sleeper->task_text, holder->task_text,
                   [&] {
                     Wait wait = *holder;
                     wait.task_text.clear();
                     return phrase(wait);
                   }()),
       "Release locks before a wait (MPI, get(), finish()), and order tasks by their accesses "
       "instead (mutexinoutset)",
       {facts.rank}});
}

}  // namespace

void find_messages(const Survey& survey, Findings& findings) {
  for (const RankFacts& facts : survey.all()) {
    add_lock(facts, findings);
    if (!survey.is_stopped(facts.rank)) {
      // A rank that goes on may receive the message later; one that waits with all tasks may not.
      if (!facts.running.empty() || facts.may_continue) continue;
    }
    for (const Message& message : facts.messages) {
      const auto nearest = find_nearest(message, facts.waits);
      if (!nearest || nearest->wait == nullptr) continue;
      const int differences = int{nearest->other_comm} + int{nearest->other_source} +
                              int{nearest->other_tag};
      if (differences == 1) {
        add_other_message(survey, facts, message, *nearest, findings);
        break;  // one for a rank: the next ones mostly follow from it
      }
    }
  }
}

// ---- nobody sends ----------------------------------------------------------------------------

namespace {

// Whether the rank waits for another rank itself: that wait is then nearer to the cause.
bool waits_for_others(const Survey& survey, const int rank) {
  const RankFacts* const facts = survey.find(rank);
  if (facts == nullptr || facts->state != RankState::answers) return false;
  return std::ranges::any_of(facts->waits, [](const Wait& wait) {
    switch (wait.kind) {
      case WaitKind::receive:
      case WaitKind::send:
      case WaitKind::probe:
      case WaitKind::collective: return true;
      case WaitKind::future: return wait.peer >= 0;  // else it is none that has a home
      default: return false;
    }
  });
}

// Whether a message has come that differs from this receive by its tag, or by its communicator:
// that explains the wait.
bool is_explained(const RankFacts& facts, const Wait& wait) {
  return std::ranges::any_of(facts.messages, [&](const Message& message) {
    const auto nearest = find_nearest(message, facts.waits);
    return nearest && nearest->wait == &wait && !nearest->other_source &&
           nearest->other_tag != nearest->other_comm;
  });
}

// Waits for one rank, by that rank.
void add_nobody_there(const Survey& survey, Findings& findings) {
  struct Waiting {
    const Wait* first;
    std::vector<int> ranks;
  };
  std::map<std::pair<int, bool>, Waiting> targets;
  for (const RankFacts& facts : survey.all()) {
    if (!survey.is_stopped(facts.rank)) continue;
    for (const Wait& wait : facts.waits) {
      if (!is_receive(wait) && wait.kind != WaitKind::send) continue;
      if (wait.peer < 0 || is_alternative(wait) || is_explained(facts, wait)) continue;
      const bool to_itself = wait.peer == facts.rank;
      if (!survey.is_stopped(wait.peer) || (!to_itself && waits_for_others(survey, wait.peer))) {
        continue;
      }
      Waiting& waiting =
          targets.try_emplace({wait.peer, is_receive(wait)}, Waiting{&wait, {}}).first->second;
      if (waiting.ranks.empty() || waiting.ranks.back() != facts.rank) {
        waiting.ranks.push_back(facts.rank);
      }
    }
  }
  for (const auto& [target, waiting] : targets) {
    const auto& [peer, receives] = target;
    const bool to_itself = waiting.ranks == std::vector{peer};
    std::string text = fmt::format("rank {} {}, and ", waiting.ranks.front(),
                                   phrase(*waiting.first));
    text += to_itself ? fmt::format("does not {} it itself", receives ? "send" : "receive")
                      : fmt::format("rank {} does not {}: {}", peer,
                                    receives ? "send" : "receive", survey.state_of(peer));
    if (waiting.ranks.size() > 1) {
      text += fmt::format("; {} wait for rank {} in this way", ranks_text(waiting.ranks), peer);
    }
    std::vector<int> ranks = waiting.ranks;
    ranks.push_back(peer);
    std::ranges::sort(ranks);
    ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
    findings.push_back({Cause::nobody_sends, survey.all_stopped(), text + survey.remarks({peer}),
                        survey.advice({peer}, receives ? "Let that rank send the message before it "
                                                         "ends or waits, or receive one less"
                                                       : "Let that rank receive the message before "
                                                         "it ends or waits, or send one less"),
                        ranks});
  }
}

// A receive from any rank, while no rank of its communicator can send.
void add_nobody_at_all(const Survey& survey, Findings& findings) {
  if (!survey.all_stopped()) return;
  for (const RankFacts& facts : survey.all()) {
    for (const Wait& wait : facts.waits) {
      if (!is_receive(wait) || wait.peer != any || is_alternative(wait)) continue;
      std::string others = "it has no other rank";
      const auto other = std::ranges::find_if(wait.comm.members, [&](const int member) {
        return member != facts.rank;
      });
      if (other != wait.comm.members.end()) {
        others = fmt::format("rank {}: {}", *other, survey.state_of(*other));
      }
      findings.push_back(
          {Cause::nobody_sends, true,
           fmt::format("rank {} {}, and no rank sends: every task of all ranks waits ({})",
                       facts.rank, phrase(wait), others),
           "Let a rank send this message before it waits, or receive one less",
           {facts.rank}});
      return;
    }
  }
}

void add_nobody_puts(const Survey& survey, Findings& findings) {
  if (!survey.all_stopped()) return;
  std::map<std::string, std::vector<int>> futures;
  for (const RankFacts& facts : survey.all()) {
    for (const Wait& wait : facts.waits) {
      if (wait.kind != WaitKind::future || wait.object.empty()) continue;
      std::vector<int>& ranks = futures[wait.object];
      if (ranks.empty() || ranks.back() != facts.rank) ranks.push_back(facts.rank);
    }
  }
  for (const auto& [future, ranks] : futures) {
    findings.push_back({Cause::nobody_puts, true,
                        fmt::format("{} await{} {}, and no rank puts it: every task of all ranks "
                                    "waits{}",
                                    ranks_text(ranks), ranks.size() == 1 ? "s" : "", future,
                                    survey.remarks(ranks)),
                        survey.advice(ranks, "Let a rank put this future before it waits"),
                        ranks});
  }
}

// Where no other cause is found, a promise that nobody sets may be one.
void add_nobody_sets(const Survey& survey, Findings& findings) {
  if (!survey.all_stopped() || !findings.empty()) return;
  for (const RankFacts& facts : survey.all()) {
    const auto wait = std::ranges::find(facts.waits, WaitKind::promise, &Wait::kind);
    if (wait == facts.waits.end()) continue;
    findings.push_back({Cause::nobody_puts, true,
                        fmt::format("rank {} {}, and nothing sets it: every task of all ranks "
                                    "waits{}",
                                    facts.rank, phrase(*wait), survey.remarks({facts.rank})),
                        survey.advice({facts.rank}, "Let the task that sets it run before it waits "
                                                    "for others"),
                        {facts.rank}});
    return;
  }
}

}  // namespace

void find_nobody(const Survey& survey, Findings& findings) {
  add_nobody_there(survey, findings);
  add_nobody_at_all(survey, findings);
  add_nobody_puts(survey, findings);
  add_nobody_sets(survey, findings);
}

}  // namespace imbrex::diagnosis
