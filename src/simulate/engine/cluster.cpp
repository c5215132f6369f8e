// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/engine/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "imbrex/error.hpp"

namespace imbrex::simulate {

namespace {

using Ranks = std::vector<std::unique_ptr<Rank>>;

class Hosting final : public Host {
 public:
  Hosting(EventQueue& events, Links& links, const Ranks& ranks) noexcept
      : events_(events), links_(links), ranks_(ranks) {}
  [[nodiscard]] EventQueue& events() noexcept override { return events_; }
  [[nodiscard]] Links& links() noexcept override { return links_; }
  void complete(const int rank, Task& task) override { at(rank).complete_protocol(task); }
  void resume_creator(const int rank) override { at(rank).resume_creator(); }
  void arrived(const int rank) override { at(rank).arrived(); }
  [[nodiscard]] detail::SendWorth worth_of_sending(const int rank, const int to) const override {
    return at(rank).worth_of_sending_to(to);
  }

 private:
  [[nodiscard]] Rank& at(const int rank) const { return *ranks_[static_cast<std::size_t>(rank)]; }

  EventQueue& events_;
  Links& links_;
  const Ranks& ranks_;
};

[[noreturn]] void fail_stuck(const Ranks& ranks, const PointToPoint& mpi) {
  constexpr std::size_t lines_most = 10;
  std::string text = "the program ends in a deadlock: ";
  std::size_t lines = 0;
  for (std::size_t rank = 0; rank < ranks.size() && lines < lines_most; ++rank) {
    if (ranks[rank]->is_done()) continue;
    const std::vector<std::string> waiting = mpi.describe_waiting(static_cast<int>(rank));
    if (waiting.empty()) {
      text += fmt::format("\n  rank {} has {} tasks that never become ready", rank,
                          ranks[rank]->sums().created - ranks[rank]->sums().ended);
      ++lines;
    }
    for (const std::string& line : waiting) {
      if (++lines > lines_most) break;
      text += "\n  " + line;
    }
  }
  throw Error("imbrex simulate: " + text);
}

[[nodiscard]] RankSetup rank_setup(const ClusterSetup& setup, const int number, Nodes& nodes) {
  RankSetup rank = setup.rank;
  rank.node = nodes.of(number);
  if (number == setup.slow_rank) rank.slowness = setup.slowness;
  rank.overhead_ns = static_cast<Time>(setup.network.overhead_ns);
  rank.copy_ns_per_byte = setup.network.copy_ns_per_byte;
  rank.eager_bytes = setup.network.eager_bytes;
  return rank;
}

void add(Rank::Sums& all, const Rank::Sums& one) noexcept {
  all.in_task_ns += one.in_task_ns;
  all.overhead_ns += one.overhead_ns;
  all.tasks += one.tasks;
  all.created += one.created;
  all.ended += one.ended;
  all.live_most += one.live_most;
  all.end = std::max(all.end, one.end);
  all.borrowed_ns += one.borrowed_ns;
}

}  // namespace

Outcome simulate(Program& program, const ClusterSetup& setup) {
  constexpr std::uint64_t events_between_looks = 1 << 20;
  if (setup.rank.policy.starts_with("seeded")) {
    throw Error("imbrex simulate: policy seeded runs one worker at a time, to repeat a schedule, "
                "so its times mean nothing: choose another policy");
  }
  EventQueue events;
  Links links(events, setup.network, setup.ranks, setup.per_node, setup.seed);
  PointToPoint mpi(events, links, setup.ranks);
  Nodes nodes(setup.lends, setup.ranks, setup.per_node, setup.rank.workers);
  Ranks ranks;
  for (int rank = 0; rank < setup.ranks; ++rank) {
    ranks.push_back(std::make_unique<Rank>(events, mpi, program, rank,
                                           rank_setup(setup, rank, nodes), setup.observer));
  }
  for (const auto& rank : ranks) rank->meet(ranks);
  Hosting host(events, links, ranks);
  program.start(host);
  for (const auto& rank : ranks) rank->start();
  for (std::uint64_t steps = 1; events.step(); ++steps) {
    if (setup.progress == nullptr || steps % events_between_looks != 0) continue;
    std::int64_t ended = 0;
    for (const auto& rank : ranks) ended += rank->sums().ended;
    setup.progress(ended, events.now());
  }
  if (!std::ranges::all_of(ranks, &Rank::is_done)) fail_stuck(ranks, mpi);
  Outcome outcome;
  for (const auto& rank : ranks) add(outcome.sums, rank->sums());
  outcome.time_ns = outcome.sums.end;
  outcome.messages = mpi.messages();
  outcome.messages_received = mpi.messages_received();
  outcome.bytes = links.bytes_sent();
  outcome.bytes_received = links.bytes_arrived();
  outcome.events = events.count();
  program.add_to(outcome);
  return outcome;
}

}  // namespace imbrex::simulate
