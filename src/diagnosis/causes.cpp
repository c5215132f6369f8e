// SPDX-License-Identifier: BSD-3-Clause
#include "diagnosis/causes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "diagnosis/survey.hpp"

namespace imbrex::diagnosis {

namespace {

void find_lost_ranks(const Survey& survey, Findings& findings) {
  std::vector<int> silent;
  for (const RankFacts& facts : survey.all()) {
    if (facts.state == RankState::silent) silent.push_back(facts.rank);
    if (facts.state != RankState::dead) continue;
    findings.push_back({Cause::dead_rank, true,
                        fmt::format("the process of rank {} has died ({} on {})", facts.rank,
                                    facts.process, facts.host.empty() ? "a node" : facts.host),
                        "Look at the output of that rank, and at the exit code or signal that the "
                        "launcher names",
                        {facts.rank}});
  }
  if (silent.empty()) return;
  findings.push_back({Cause::silent_rank, false,
                      fmt::format("{} do{} not answer", ranks_text(silent),
                                  silent.size() == 1 ? "es" : ""),
                      "Look whether the process is stopped, or a thread of it stays in a call of "
                      "MPI",
                      silent});
}

}  // namespace

std::vector<Finding> find_causes(const std::vector<RankFacts>& facts) {
  const Survey survey(facts);
  Findings findings;
  find_lost_ranks(survey, findings);
  find_task_circles(survey, findings);
  find_collectives(survey, findings);
  find_window_locks(survey, findings);
  find_messages(survey, findings);
  find_rank_circles(survey, findings);
  find_nobody(survey, findings);
  std::ranges::stable_sort(findings, {}, &Finding::cause);
  return findings;
}

}  // namespace imbrex::diagnosis
