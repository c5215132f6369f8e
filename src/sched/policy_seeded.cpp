// SPDX-License-Identifier: BSD-3-Clause
// seeded: one worker runs at a time; which one, and which ready task, is drawn from a seed, so that
// a schedule that fails can be run again. The same seed gives the same order as long as only tasks
// make tasks ready (no foreign thread, no message).
#include <fmt/format.h>

#include <mutex>
#include <random>

#include "base/spin_lock.hpp"
#include "sched/policy.hpp"

namespace imbrex::sched {

namespace {

class Seeded final : public Policy {
 public:
  Seeded(const PolicySetup& setup, const std::uint64_t seed)
      : workers_(setup.workers),
        wake_(setup.wake),
        wake_context_(setup.wake_context),
        random_(seed) {}

  void push(Task& task, const Place place, const Origin origin) override {
    int wake = no_worker;
    {
      const std::lock_guard guard(lock_);
      (origin == Origin::yielded ? yielded_ : ready_).push_back({&task, place.only});
      if (turn_ == no_worker) wake = draw();
    }
    if (wake != no_worker) wake_(wake_context_, wake);
  }

  // Called by the worker whose turn it is when its task has ended or left it: the turn goes on.
  Task* pop(const int worker) override {
    Task* task = nullptr;
    int wake = no_worker;
    {
      const std::lock_guard guard(lock_);
      if (turn_ != worker) return nullptr;
      if (drawn_ == nullptr) wake = draw();
      if (turn_ == worker) std::swap(task, drawn_);
    }
    if (wake != no_worker && wake != worker) wake_(wake_context_, wake);
    return task;
  }

  Task* steal(int, bool) override { return nullptr; }
  bool take(int, Task&) override { return false; }
  void raise(Task&, int) override {}
  std::int64_t size() const override {
    const std::lock_guard guard(lock_);
    return static_cast<std::int64_t>(ready_.size() + yielded_.size()) + (drawn_ != nullptr);
  }
  bool empty(int) const override { return false; }  // every task goes through a draw
  bool takes_all() const override { return true; }

 private:
  struct Entry {
    Task* task;
    int only;
  };

  // Draws the next task and its worker; returns the worker, or no_worker if nothing is ready.
  int draw() {
    std::vector<Entry>& list = ready_.empty() ? yielded_ : ready_;
    if (list.empty()) {
      turn_ = no_worker;
      return no_worker;
    }
    const std::size_t index = random_() % list.size();
    const Entry entry = list[index];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(index));
    drawn_ = entry.task;
    const int any = static_cast<int>(random_() % static_cast<std::uint64_t>(workers_));
    turn_ = entry.only != no_worker ? entry.only : any;
    return turn_;
  }

  const int workers_;
  const Wake wake_;
  void* const wake_context_;
  mutable base::SpinLock lock_;  // guards all below
  std::mt19937_64 random_;
  std::vector<Entry> ready_, yielded_;
  Task* drawn_ = nullptr;  // for turn_, until it fetches it
  int turn_ = 0;           // who runs; worker 0 starts, in the root task
};

}  // namespace

std::unique_ptr<Policy> make_seeded(const PolicySetup& setup, const std::uint64_t seed) {
  return std::make_unique<Seeded>(setup, seed);
}

}  // namespace imbrex::sched
