// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/ranks/findings.hpp"

#include <cstddef>
#include <cstdio>
#include <functional>
#include <mutex>
#include <set>

#include "base/guarded.hpp"

namespace imbrex::mpi::check {

namespace {

constexpr std::size_t findings_max = 20;  // number that is printed

struct Findings {
  std::mutex lock;
  std::set<std::size_t> known IMBREX_GUARDED_BY(lock);  // hashes of the texts
};
// Never destroyed: tasks may end after static objects are destroyed.
Findings& findings() noexcept {
  static Findings* const the_findings = new Findings;
  return *the_findings;
}

}  // namespace

std::string describe(report::Wait wait, const detail::TaskLabel& task) {
  wait.task = detail::describe(task);
  return report::describe(wait);
}

void report_finding(const std::string& finding) {
  if (finding.empty()) return;
  Findings& all = findings();
  const std::lock_guard guard(all.lock);
  if (!all.known.insert(std::hash<std::string>{}(finding)).second) return;
  if (all.known.size() > findings_max) return;
  const bool last = all.known.size() == findings_max;
  std::fprintf(stderr, "imbrex: IMBREX_CHECK: %s.%s\n", finding.c_str(),
               last ? " (imbrex counts further findings at the end.)" : "");
}

void count_findings() noexcept {
  Findings& all = findings();
  const std::lock_guard guard(all.lock);
  if (all.known.size() <= findings_max) return;
  std::fprintf(stderr, "imbrex: IMBREX_CHECK: ... and %zu more\n",
               all.known.size() - findings_max);
}

}  // namespace imbrex::mpi::check
