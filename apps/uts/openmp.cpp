// SPDX-License-Identifier: BSD-3-Clause
// MPI and OpenMP, after section IV.B of Chatterjee et al. (IPDPS 2013): one parallel region, whose
// threads have stacks of their own and shelves, from which others of the rank take. A thread
// without work waits at a barrier that is cancelled when there is some; at the barrier one of them
// asks other ranks for work, also while threads of its rank are busy.
#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <mutex>

#include "balance.hpp"
#include "variants.hpp"

namespace uts {
namespace {

// Nodes of one thread that others of the rank may take.
class alignas(64) Shelf {
 public:
  [[nodiscard]] bool looks_empty() const noexcept {
    return size_.load(std::memory_order_relaxed) == 0;  // exact under the lock
  }
  void put(Stack& from, std::size_t count) {
    std::vector<Node> nodes;
    from.give(count, nodes);
    put(nodes);
  }
  void put(std::span<const Node> nodes) {
    const std::lock_guard guard(lock_);
    nodes_.push(nodes);
    size_.store(nodes_.size(), std::memory_order_relaxed);
  }
  // Takes at most `count` of the oldest nodes.
  void take(std::size_t count, std::vector<Node>& out) {
    if (looks_empty()) return;
    const std::lock_guard guard(lock_);
    nodes_.give(std::min(count, nodes_.size()), out);
    size_.store(nodes_.size(), std::memory_order_relaxed);
  }

 private:
  std::mutex lock_;  // guards the stack
  Stack nodes_;
  std::atomic<std::size_t> size_{0};
};

// Data that the threads of a rank share.
struct Team {
  Team(const Run& run, int threads)
      : balance(run.comm, run.settings), shelves(static_cast<std::size_t>(threads)) {}

  std::mutex messages;  // guards `balance`; never waited for while there is work
  Balance balance;
  std::vector<Shelf> shelves;
  // seq_cst: a thread counts itself out before it takes anything, and in when it has nothing.
  std::atomic<std::size_t> waiting{0};
  std::atomic<std::uint64_t> cancels{0};  // of the barrier; grows when a shelf is filled
  std::atomic<bool> ended{false};
};

class Thread {
 public:
  Thread(const Run& run, Team& team, int number)
      : run_(run), team_(team), number_(static_cast<std::size_t>(number)),
        shelf_(team.shelves[number_]), search_(run.tree, run.settings, run.progress) {}

  Tally run(const double start_s) {
    last_s_ = start_s;
    begin();
    lap(tally_.idle_s);
    do {
      work();
    } while (find_work());
    tally_.counts = search_.counts();
    return tally_;
  }

 private:
  void begin() {
    int rank = 0;
    MPI_Comm_rank(run_.comm, &rank);
    if (rank == 0 && number_ == 0) search_.begin(stack_);
  }

  void work() {
    const auto interval = static_cast<std::uint64_t>(run_.settings.interval);
    while (!stack_.empty()) {
      search_.run(stack_, interval);
      lap(tally_.work_s);
      share();
      if (stack_.empty()) take_from(shelf_);
      lap(tally_.overhead_s);
    }
  }

  // The shelf gets what others could need; they are told if they wait.
  void share() {
    const auto chunk = static_cast<std::size_t>(run_.settings.chunk);
    if (stack_.size() >= 2 * chunk && shelf_.looks_empty()) {
      shelf_.put(stack_, chunk);
      if (team_.waiting.load() > 0) team_.cancels.fetch_add(1);
    }
    const std::unique_lock lock(team_.messages, std::try_to_lock);
    if (lock.owns_lock()) answer();
  }

  // Gives another rank nodes of this thread's stack, or of a shelf if the stack is too short.
  void answer() {
    if (team_.balance.is_only_rank()) return;
    team_.balance.answer([this](std::size_t limit, std::vector<Node>& out) {
      stack_.give(team_.balance.share_of(stack_.size(), limit), out);
      for (Shelf& shelf : team_.shelves) {
        if (!out.empty()) break;
        shelf.take(static_cast<std::size_t>(run_.settings.chunk), out);
      }
    });
  }

  bool take_from(Shelf& shelf) {
    std::vector<Node> got;
    shelf.take(static_cast<std::size_t>(run_.settings.chunk), got);
    stack_.push(got);
    return !got.empty();
  }

  // False: all ranks have ended.
  bool find_work() {
    for (;;) {
      for (std::size_t i = 1; i < team_.shelves.size(); ++i) {
        if (take_from(team_.shelves[(number_ + i) % team_.shelves.size()])) {
          lap(tally_.search_s);
          return true;
        }
      }
      wait();
      if (!stack_.empty() || team_.ended.load()) break;
    }
    lap(tally_.search_s);
    return !stack_.empty();
  }

  // The barrier. REQUIRES: nothing on this thread's stack and shelf.
  void wait() {
    const std::uint64_t cancels = team_.cancels.load();
    team_.waiting.fetch_add(1);
    while (!team_.ended.load()) {
      // Nodes that were put on a shelf before this thread counted as waiting cancel nothing.
      const bool cancelled = team_.cancels.load() != cancels ||
                             std::ranges::any_of(team_.shelves, [](const Shelf& shelf) {
                               return !shelf.looks_empty();
                             });
      if (cancelled) break;
      {
        const std::unique_lock lock(team_.messages, std::try_to_lock);
        if (lock.owns_lock() && find_elsewhere()) return;
      }
#pragma omp taskyield
      sched_yield();
    }
    team_.waiting.fetch_sub(1);
  }

  // Returns true if there is a node on the stack; then the thread does not count as waiting any
  // more. The lock is held until then, so that no other thread takes the rank for one without work.
  bool find_elsewhere() {
    Balance& balance = team_.balance;
    if (balance.asking()) {
      std::vector<Node> got;
      if (balance.answered(got) && !got.empty()) {
        stack_.push(got);
        team_.waiting.fetch_sub(1);
        return true;
      }
    } else if (team_.waiting.load() == team_.shelves.size() && balance.ended()) {
      team_.ended.store(true);
    } else if (!balance.is_only_rank() && !team_.ended.load()) {
      balance.ask();
    }
    answer();
    return false;
  }

  void lap(double& sum) {
    const double now = seconds();
    sum += now - last_s_;
    last_s_ = now;
  }

  const Run& run_;
  Team& team_;
  const std::size_t number_;
  Shelf& shelf_;
  Search search_;
  Stack stack_;
  Tally tally_;
  double last_s_ = 0;
};

}  // namespace

// Returns how many threads a region gets, which may be fewer than it asks for.
int openmp_threads() {
  omp_set_dynamic(0);
  int threads = 0;
#pragma omp parallel
#pragma omp single
  threads = omp_get_num_threads();
  return threads;
}

std::vector<Tally> run_openmp(const Run& run) {
  const int threads = openmp_threads();
  const double start_s = seconds();
  std::vector<Tally> tallies(static_cast<std::size_t>(threads));
  Team team(run, threads);
  std::vector<double> ends(tallies.size());
#pragma omp parallel num_threads(threads)
  {
    const int number = omp_get_thread_num();
    Thread thread(run, team, number);
    tallies[static_cast<std::size_t>(number)] = thread.run(start_s);
    ends[static_cast<std::size_t>(number)] = seconds();
  }
  team.balance.close();
  MPI_Barrier(run.comm);
  const double end_s = seconds();
  for (std::size_t i = 0; i < tallies.size(); ++i) tallies[i].idle_s += end_s - ends[i];
  tallies.front().steals = team.balance.steals();
  tallies.front().failed = team.balance.failed();
  return tallies;
}

}  // namespace uts
