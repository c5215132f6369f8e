// SPDX-License-Identifier: BSD-3-Clause
// The variants with one thread a rank: sequential, and the reference strategy in plain MPI.
#include <sched.h>

#include "balance.hpp"
#include "variants.hpp"

namespace uts {

std::vector<Tally> run_sequential(const Run& run) {
  Tally tally;
  const double start = seconds();
  Search search(run.tree, run.settings, run.progress);
  Stack stack;
  search.begin(stack);
  while (!stack.empty()) search.run(stack, 1 << 20);
  tally.counts = search.counts();
  tally.work_s = seconds() - start;
  return {tally};
}

namespace {

// A rank, which works or looks for work.
class Rank {
 public:
  explicit Rank(const Run& run)
      : run_(run), balance_(run.comm, run.settings), search_(run.tree, run.settings, run.progress) {
  }

  Tally run() {
    last_s_ = seconds();
    begin();
    lap(tally_.idle_s);
    do {
      work();
    } while (find_work());
    balance_.close();
    MPI_Barrier(run_.comm);
    lap(tally_.idle_s);
    tally_.counts = search_.counts();
    tally_.steals = balance_.steals();
    tally_.failed = balance_.failed();
    return tally_;
  }

 private:
  void begin() {
    int rank = 0;
    MPI_Comm_rank(run_.comm, &rank);
    if (rank == 0) search_.begin(stack_);
  }

  void work() {
    const auto interval = static_cast<std::uint64_t>(run_.settings.interval);
    while (!stack_.empty()) {
      search_.run(stack_, balance_.is_only_rank() ? UINT64_MAX : interval);
      lap(tally_.work_s);
      if (balance_.is_only_rank()) continue;
      answer();
      lap(tally_.overhead_s);
    }
  }

  // False: there is none any more.
  bool find_work() {
    std::vector<Node> got;
    bool found = false;
    for (bool ended = false; !found && !ended;) {
      if (balance_.asking()) {
        found = balance_.answered(got) && !got.empty();
      } else {
        ended = balance_.ended();
        if (!ended) balance_.ask();
      }
      if (!balance_.is_only_rank()) answer();
      if (!found && !ended) sched_yield();  // for the others, if ranks share a processor
    }
    stack_.push(got);
    lap(tally_.search_s);
    return found;
  }

  void answer() {
    balance_.answer([this](std::size_t limit, std::vector<Node>& out) {
      stack_.give(balance_.share_of(stack_.size(), limit), out);
    });
  }

  void lap(double& sum) {
    const double now = seconds();
    sum += now - last_s_;
    last_s_ = now;
  }

  const Run& run_;
  Balance balance_;
  Search search_;
  Stack stack_;
  Tally tally_;
  double last_s_ = 0;
};

}  // namespace

std::vector<Tally> run_mpi(const Run& run) { return {Rank(run).run()}; }

}  // namespace uts
