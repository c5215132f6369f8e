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
      const bool yielded = origin == Origin::yielded;
      const Entry entry{&task, yielded || origin == Origin::resumed};
      (yielded ? yielded_ : ready_).push_back({entry, place.only});
      if (turn_ == no_worker) wake = draw();
    }
    if (wake != no_worker) wake_(wake_context_, wake);
  }

  // Called by the worker whose turn it is when its task has ended or left it: the turn goes on.
  Entry pop(const int worker) override {
    Entry entry;
    int wake = no_worker;
    {
      const std::lock_guard guard(lock_);
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
  std::int64_t size() const override {
    const std::lock_guard guard(lock_);
    return static_cast<std::int64_t>(ready_.size() + yielded_.size()) + (drawn_ ? 1 : 0);
  }
  bool empty(int) const override { return false; }  // every task goes through a draw
  bool takes_all() const override { return true; }

 private:
  struct Waiting {
    Entry entry;
    int only;
  };

  // Draws the next task and its worker; returns the worker, or no_worker if nothing is ready.
  int draw() {
    std::vector<Waiting>& list = ready_.empty() ? yielded_ : ready_;
    if (list.empty()) {
      turn_ = no_worker;
      return no_worker;
    }
    // Of those that gave way, the first: else one could starve another.
    const std::size_t index = &list == &yielded_ ? 0 : random_() % list.size();
    const Waiting next = list[index];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(index));
    drawn_ = next.entry;
    const int any = static_cast<int>(random_() % static_cast<std::uint64_t>(workers_));
    turn_ = next.only != no_worker ? next.only : any;
    return turn_;
  }

  const int workers_;
  const Wake wake_;
  void* const wake_context_;
  mutable base::SpinLock lock_;  // guards all below
  std::mt19937_64 random_;
  std::vector<Waiting> ready_, yielded_;
  Entry drawn_;            // for turn_, until it fetches it
  int turn_ = 0;           // who runs; worker 0 starts, in the root task
};

}  // namespace

std::unique_ptr<Policy> make_seeded(const PolicySetup& setup, const std::uint64_t seed) {
  return std::make_unique<Seeded>(setup, seed);
}

}  // namespace imbrex::sched
