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
  constexpr std::array<std::string_view, 7> begins = {
      "MPI_Barrier", "MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall", "MPI_Reduce_scatter",
      "MPI_Comm_", "MPI_Win_"};
  return std::ranges::any_of(begins, [&](const std::string_view begin) {
    return call.starts_with(begin);
  });
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
      "{} {} not come to the {} on {} in which {} wait{}", ranks_text(named),
      named.size() == 1 ? "has" : "have", joined.first->call, of.comm.name,
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

}  // namespace

void find_collectives(const Survey& survey, Findings& findings) {
  for (const OfCommunicator& of : collectives_of(survey)) {
    if (has_other_order(of)) {
      add_other_order(survey, of, findings);
      continue;
    }
    for (const auto& [call, joined] : of.calls) add_missing(survey, of, joined, findings);
  }
}

}  // namespace imbrex::diagnosis
