// SPDX-License-Identifier: BSD-3-Clause
// Collectives in which some ranks of a communicator wait and others do not.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/ranges.hpp"
#include "diagnosis/survey.hpp"

namespace imbrex::diagnosis {

namespace {

// A collective of one communicator, and the ranks that wait in it.
struct Joined {
  const Wait* first;
  std::vector<int> ranks;
};
// The collectives of one communicator.
struct OfCommunicator {
  Communicator comm;
  std::map<std::string, Joined> calls;
  std::set<int> ranks;  // that wait in any of them
};

std::vector<OfCommunicator> collectives_of(const Survey& survey) {
  std::vector<OfCommunicator> all;
  for (const RankFacts& facts : survey.all()) {
    for (const Wait& wait : facts.waits) {
      if (wait.kind != WaitKind::collective || wait.comm.name.empty()) continue;
      auto found = std::ranges::find_if(all, [&](const OfCommunicator& one) {
        return is_same(one.comm, wait.comm);
      });
      if (found == all.end()) found = all.insert(all.end(), {wait.comm, {}, {}});
      Joined& joined = found->calls.try_emplace(wait.call, Joined{&wait, {}}).first->second;
      if (joined.ranks.empty() || joined.ranks.back() != facts.rank) {
        joined.ranks.push_back(facts.rank);
      }
      found->ranks.insert(facts.rank);
    }
  }
  return all;
}

// No rank leaves such a call before all have come to it.
bool synchronises(const std::string_view call) {
  constexpr std::array<std::string_view, 8> begins = {
      "MPI_Barrier", "MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall", "MPI_Reduce_scatter",
      "MPI_Comm_", "MPI_Win_", "a phase of an MpiPhaser"};
  return std::ranges::any_of(begins, [&](const std::string_view begin) {
    return call.starts_with(begin);
  });
}

// "the MPI_Bcast", "the phase of an MpiPhaser"
std::string the(const std::string_view call) {
  return fmt::format("the {}", call.starts_with("a ") ? call.substr(2) : call);
}

// Every rank in such a call needs data of the root.
bool needs_root(const std::string_view call) {
  return call.starts_with("MPI_Bcast") || call.starts_with("MPI_Scatter");
}

// The ranks that do not wait in the collective, and of which that is known.
std::vector<int> missing_of(const Survey& survey, const OfCommunicator& of, const Joined& joined) {
  std::vector<int> missing;
  for (const int rank : of.comm.members) {
    if (std::ranges::find(joined.ranks, rank) != joined.ranks.end()) continue;
    const RankFacts* const facts = survey.find(rank);
    if (facts == nullptr || facts->has_left_out) continue;
    // It may be in this collective under another name of the communicator.
    const bool may_be_in_it = std::ranges::any_of(facts->waits, [&](const Wait& wait) {
      return wait.kind == WaitKind::collective && wait.call == joined.first->call &&
             (!is_certain(of.comm) || !is_certain(wait.comm)) &&
             wait.comm.members == of.comm.members;
    });
    if (!may_be_in_it) missing.push_back(rank);
  }
  return missing;
}

bool is_missing_certain(const Joined& joined, const std::vector<int>& missing) {
  const std::string& call = joined.first->call;
  return synchronises(call) || missing.size() == 1 ||
         (needs_root(call) && std::ranges::find(missing, joined.first->peer) != missing.end());
}

// Where all ranks of the communicator wait in some of its collectives, their order differs. So it
// does where two that nobody leaves early are waited in.
bool has_other_order(const OfCommunicator& of) {
  if (of.calls.size() < 2) return false;
  const bool all_wait = std::ranges::all_of(of.comm.members, [&](const int rank) {
    return of.ranks.contains(rank);
  });
  return all_wait || std::ranges::count_if(of.calls, [](const auto& call) {
    return synchronises(call.first);
  }) >= 2;
}

void add_other_order(const Survey& survey, const OfCommunicator& of, Findings& findings) {
  std::string text;
  for (const auto& [call, joined] : of.calls) {
    text += fmt::format("{}{} in {} ({})", text.empty() ? "" : "; ", ranks_text(joined.ranks), call,
                        joined.first->task_text);
  }
  findings.push_back(
      {Cause::other_order, survey.all_stopped() && is_certain(of.comm),
       fmt::format("on {} ranks wait in different collectives: {}", of.comm.name, text),
       "All ranks must begin the collectives of a communicator in the same order: let the tasks "
       "that call them have an access in common, such as .inout(comm), or give each a communicator "
       "of its own. IMBREX_CHECK=1 finds the first collective that differs",
       std::vector<int>(of.ranks.begin(), of.ranks.end())});
}

void add_missing(const Survey& survey, const OfCommunicator& of, const Joined& joined,
                 Findings& findings) {
  constexpr std::size_t described_max = 2;
  const std::vector<int> missing = missing_of(survey, of, joined);
  if (missing.empty()) return;
  const bool root_is_missing =
      needs_root(joined.first->call) &&
      std::ranges::find(missing, joined.first->peer) != missing.end();
  const std::vector<int> named = root_is_missing ? std::vector{joined.first->peer} : missing;
  std::string text = fmt::format(
      "{} {} not come to {} on {} in which {} wait{}", ranks_text(named),
      named.size() == 1 ? "has" : "have", the(joined.first->call), of.comm.name,
      ranks_text(joined.ranks), joined.ranks.size() == 1 ? "s" : "");
  for (std::size_t i = 0; i < std::min(named.size(), described_max); ++i) {
    text += named.size() == 1 ? ": " : fmt::format("{}rank {}: ", i == 0 ? ": " : "; ", named[i]);
    text += survey.state_of(named[i]);
  }
  if (named.size() > described_max) {
    text += fmt::format("; and {} more", named.size() - described_max);
  }
  std::vector<int> ranks = joined.ranks;
  ranks.insert(ranks.end(), named.begin(), named.end());
  std::ranges::sort(ranks);
  findings.push_back(
      {Cause::missing_rank,
       survey.all_stopped() && is_missing_certain(joined, missing),
       text + survey.remarks(named),
       survey.advice(named, "All ranks of a communicator must begin its collectives: let the "
                            "missing rank begin this one before it waits for other ranks, or use a "
                            "communicator without that rank"),
       ranks});
}

// Communicators, each of which lacks a rank that waits in a collective of the next one; the last
// one lacks a rank that waits in the first.
std::vector<std::size_t> find_crosswise(const Survey& survey,
                                        const std::vector<OfCommunicator>& all) {
  std::vector<std::vector<std::size_t>> edges(all.size());
  for (std::size_t from = 0; from < all.size(); ++from) {
    if (all[from].calls.size() != 1) continue;
    const std::vector<int> missing = missing_of(survey, all[from], all[from].calls.begin()->second);
    for (std::size_t to = 0; to < all.size(); ++to) {
      const bool waits_there = std::ranges::any_of(missing, [&](const int rank) {
        return all[to].ranks.contains(rank);
      });
      if (to != from && all[to].calls.size() == 1 && waits_there) edges[from].push_back(to);
    }
  }
  return find_circle(edges);
}

void add_crosswise(const Survey& survey, const std::vector<OfCommunicator>& all,
                   const std::vector<std::size_t>& circle, Findings& findings) {
  std::string text;
  std::set<int> ranks;
  bool is_sure = survey.all_stopped();
  for (const std::size_t place : circle) {
    const OfCommunicator& of = all[place];
    const Joined& joined = of.calls.begin()->second;
    text += fmt::format("{}{} in {} on {} ({})", text.empty() ? "" : "; ", ranks_text(joined.ranks),
                        joined.first->call, of.comm.name, joined.first->task_text);
    ranks.insert(of.ranks.begin(), of.ranks.end());
    is_sure = is_sure && is_certain(of.comm) && synchronises(joined.first->call);
  }
  findings.push_back(
      {Cause::other_order, is_sure,
       "ranks begin collectives of several communicators in different orders: " + text,
       "Let all ranks begin them in one order, or let independent tasks call them, so that none "
       "waits for another",
       std::vector<int>(ranks.begin(), ranks.end())});
}

}  // namespace

void find_collectives(const Survey& survey, Findings& findings) {
  const std::vector<OfCommunicator> all = collectives_of(survey);
  const std::vector<std::size_t> circle = find_crosswise(survey, all);
  if (!circle.empty()) add_crosswise(survey, all, circle, findings);
  for (std::size_t place = 0; place < all.size(); ++place) {
    if (std::ranges::find(circle, place) != circle.end()) continue;
    const OfCommunicator& of = all[place];
    if (has_other_order(of)) {
      add_other_order(survey, of, findings);
      continue;
    }
    for (const auto& [call, joined] : of.calls) add_missing(survey, of, joined, findings);
  }
}

}  // namespace imbrex::diagnosis
