// SPDX-License-Identifier: BSD-3-Clause
// seeded: one worker runs at a time; a seed draws the worker and its ready task, so that a failing
// schedule can be repeated. A seed gives one order as long as only tasks make tasks ready (no
// foreign thread, no message), and no task blocks its thread for long. A task that gave way has its
// turn after the number of other tasks that it asked for; a task that a foreign thread made ready,
// after a bounded number. A worker whose thread is blocked in code of the program is absent: it has
// no turn, so that other workers may run the code that unblocks it.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <random>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "sched/policy/policy.hpp"

namespace imbrex::sched {

namespace {

class Seeded final : public Policy {
 public:
  Seeded(const PolicySetup& setup, const std::uint64_t seed)
      : workers_(setup.workers),
        wake_(setup.wake),
        wake_context_(setup.wake_context),
        random_(seed),
        absent_(static_cast<std::size_t>(setup.workers), false) {}

  void push(Task& task, const Place place, const Origin origin) override {
    int wake = no_worker;
    {
      const std::lock_guard guard(lock_);
      const bool yielded = origin == Origin::yielded;
      const Entry entry{&task, yielded || origin == Origin::resumed};
      if (yielded) {
        yielded_.push_back({entry, place.only, draws_ + place.before});
      } else if (place.worker == no_worker) {
        foreign_.push_back({entry, place.only, draws_ + foreign_patience});
      } else {
        ready_.push_back({entry, place.only, 0});
      }
      if (turn_ == no_worker) wake = draw();
    }
    if (wake != no_worker) wake_(wake_context_, wake);
  }

  // Called by the worker with the turn when its task has ended or left it: passes the turn on.
  Entry pop(const int worker) override {
    Entry entry;
    int wake = no_worker;
    {
      const std::lock_guard guard(lock_);
      const bool was_absent = return_from_absence(worker);
      if (was_absent && turn_ == no_worker) wake = draw();  // perhaps only this worker may run it
      if (turn_ != worker) return {};
      if (!drawn_) wake = draw();
      if (turn_ == worker) std::swap(entry, drawn_);
    }
    if (wake != no_worker && wake != worker) wake_(wake_context_, wake);
    return entry;
  }

  Entry steal(int, bool) override { return {}; }
  bool take(int, Task&) override { return false; }
  void raise(Task&, int) override {}
  std::size_t extract(int, const void* const kind, const std::span<Task*> to) override {
    const std::lock_guard guard(lock_);
    std::size_t count = 0;
    const auto leaves = [&](const Waiting& waiting) {
      if (count == to.size() || waiting.entry.resumed || !is_of(*waiting.entry.task, kind)) {
        return false;
      }
      to[count++] = waiting.entry.task;
      return true;
    };
    std::erase_if(ready_, leaves);
    std::erase_if(foreign_, leaves);
    return count;
  }
  std::int64_t size() const override {
    const std::lock_guard guard(lock_);
    return static_cast<std::int64_t>(ready_.size() + foreign_.size() + yielded_.size()) +
           (drawn_ ? 1 : 0);
  }
  bool empty(int) const override { return false; }  // every task goes through a draw
  bool takes_all() const override { return true; }
  int turn() const override {
    const std::lock_guard guard(lock_);
    return turn_;
  }
  void pass_over(const int worker) override {
    int wake = no_worker;
    {
      const std::lock_guard guard(lock_);
      if (turn_ != worker || drawn_) return;  // the worker has asked for a task meanwhile
      absent_[static_cast<std::size_t>(worker)] = true;
      ++absent_count_;
      wake = draw();
    }
    if (wake != no_worker) wake_(wake_context_, wake);
  }
  void confine(const std::uint16_t group, const std::vector<int>& workers) override {
    if (confined_.size() <= group) confined_.resize(group + std::size_t{1});
    confined_[group] = workers;
  }

 private:
  struct Waiting {
    Entry entry;
    int only;
    std::uint64_t due;  // by draws_: it goes first from then on
  };
  using Fifo = std::deque<Waiting>;

  // The number of draws that pass over tasks of foreign threads, and over other tasks for them.
  static constexpr std::uint64_t foreign_patience = 256;

  // Draws the next task and its worker; returns the worker, or no_worker if no worker has a ready
  // task that it may run.
  int draw() IMBREX_REQUIRES(lock_) {
    const Lines kept = absent_count_ == 0 ? Lines{} : set_aside();
    turn_ = no_worker;
    if (!ready_.empty() || !foreign_.empty() || !yielded_.empty()) {
      const Waiting next = take();
      ++draws_;
      drawn_ = next.entry;
      const std::uint64_t number = random_();  // drawn for a tied task, too
      turn_ = next.only != no_worker ? next.only : any_for(*drawn_.task, number);
    }
    if (absent_count_ != 0) put_back(kept);
    return turn_;
  }

  [[nodiscard]] const std::vector<int>* confined(const Task& task) const {
    const bool is = task.group < confined_.size() && !confined_[task.group].empty();
    return is ? &confined_[task.group] : nullptr;
  }
  // REQUIRES: a worker that may run the task is not absent.
  [[nodiscard]] int any_for(const Task& task, std::uint64_t number) const IMBREX_REQUIRES(lock_) {
    const std::vector<int>* const some = confined(task);
    const std::uint64_t count =
        some != nullptr ? some->size() : static_cast<std::uint64_t>(workers_);
    for (;; ++number) {
      const std::uint64_t index = number % count;
      const int worker = some != nullptr ? (*some)[index] : static_cast<int>(index);
      if (!absent_[static_cast<std::size_t>(worker)]) return worker;
    }
  }

  // ---- absence ----

  struct Lines {
    Fifo ready, foreign, yielded;
  };

  [[nodiscard]] bool return_from_absence(const int worker) IMBREX_REQUIRES(lock_) {
    if (absent_count_ == 0 || !absent_[static_cast<std::size_t>(worker)]) return false;
    absent_[static_cast<std::size_t>(worker)] = false;
    --absent_count_;
    return true;
  }
  // Whether all workers that may run the task are absent.
  [[nodiscard]] bool must_wait(const Waiting& waiting) const IMBREX_REQUIRES(lock_) {
    const auto is_absent = [this](const int worker) IMBREX_REQUIRES(lock_) -> bool {
      return absent_[static_cast<std::size_t>(worker)];
    };
    if (waiting.only != no_worker) return is_absent(waiting.only);
    const std::vector<int>* const some = confined(*waiting.entry.task);
    return some == nullptr ? absent_count_ == workers_ : std::ranges::all_of(*some, is_absent);
  }
  // Takes out the tasks that must wait for an absent worker.
  [[nodiscard]] Lines set_aside() IMBREX_REQUIRES(lock_) {
    Lines kept;
    const auto move = [this](auto& from, Fifo& to) IMBREX_REQUIRES(lock_) {
      std::erase_if(from, [&](const Waiting& waiting) IMBREX_REQUIRES(lock_) {
        const bool waits = must_wait(waiting);
        if (waits) to.push_back(waiting);
        return waits;
      });
    };
    move(ready_, kept.ready);
    move(foreign_, kept.foreign);
    move(yielded_, kept.yielded);
    return kept;
  }
  // These tasks are older than the others, about.
  void put_back(const Lines& kept) IMBREX_REQUIRES(lock_) {
    ready_.insert(ready_.end(), kept.ready.begin(), kept.ready.end());
    foreign_.insert(foreign_.begin(), kept.foreign.begin(), kept.foreign.end());
    yielded_.insert(yielded_.begin(), kept.yielded.begin(), kept.yielded.end());
  }

  // REQUIRES: a task is ready.
  Waiting take() IMBREX_REQUIRES(lock_) {
    const std::size_t others = ready_.size() + foreign_.size();
    // The first task that gave way resumes; otherwise one task could starve another.
    if (others == 0 || is_due(yielded_)) return take_first(yielded_);
    if (is_due(foreign_) && draws_ >= foreign_again_) {
      foreign_again_ = draws_ + foreign_patience;
      return take_first(foreign_);
    }
    const std::size_t index = random_() % others;
    if (index >= ready_.size()) return take_first(foreign_);
    std::swap(ready_[index], ready_.back());
    const Waiting next = ready_.back();
    ready_.pop_back();
    return next;
  }
  [[nodiscard]] bool is_due(const Fifo& fifo) const IMBREX_REQUIRES(lock_) {
    return !fifo.empty() && fifo.front().due <= draws_;
  }
  static Waiting take_first(Fifo& fifo) {
    const Waiting first = fifo.front();
    fifo.pop_front();
    return first;
  }

  const int workers_;
  const Wake wake_;
  void* const wake_context_;
  std::vector<std::vector<int>> confined_;  // by group; constant once tasks are pushed
  mutable base::SpinLock lock_;
  std::mt19937_64 random_ IMBREX_GUARDED_BY(lock_);
  std::vector<Waiting> ready_ IMBREX_GUARDED_BY(lock_);
  Fifo foreign_ IMBREX_GUARDED_BY(lock_);  // oldest first, as the next one
  Fifo yielded_ IMBREX_GUARDED_BY(lock_);
  std::uint64_t draws_ IMBREX_GUARDED_BY(lock_) = 0;
  // A value of draws_: no foreign task goes first before it.
  std::uint64_t foreign_again_ IMBREX_GUARDED_BY(lock_) = 0;
  Entry drawn_ IMBREX_GUARDED_BY(lock_);  // for turn_, until it fetches it
  // The worker that runs; worker 0 starts, in the root task.
  int turn_ IMBREX_GUARDED_BY(lock_) = 0;
  std::vector<bool> absent_ IMBREX_GUARDED_BY(lock_);  // by worker
  int absent_count_ IMBREX_GUARDED_BY(lock_) = 0;
};

}  // namespace

std::unique_ptr<Policy> make_seeded(const PolicySetup& setup, const std::uint64_t seed) {
  return std::make_unique<Seeded>(setup, seed);
}

}  // namespace imbrex::sched
