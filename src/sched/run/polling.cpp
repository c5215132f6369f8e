// SPDX-License-Identifier: BSD-3-Clause
#include "sched/run/polling.hpp"

#include <algorithm>
#include <mutex>
#include <thread>

#include "trace/races.hpp"

namespace imbrex::sched {

namespace {

Polling polling_of(const detail::Poller& poller) noexcept {
  if (!poller.by_workers || poller.outstanding->load(std::memory_order_relaxed) == 0) {
    return Polling::none;
  }
  const bool noticed =
      poller.noticed != nullptr && poller.noticed->load(std::memory_order_relaxed);
  return noticed ? Polling::noticed : Polling::wanted;
}

// While it lives, `worker` may read the list of pollers: remove_poller() waits for its end.
class InPoller {
 public:
  explicit InPoller(Worker& worker) noexcept
      : worker_(worker), before_(worker.in_poller.load(std::memory_order_relaxed)) {
    worker_.in_poller.store(true, std::memory_order_relaxed);
    base::light_fence();  // pairs with the heavy one of remove_poller()
  }
  ~InPoller() { worker_.in_poller.store(before_, std::memory_order_release); }
  InPoller(const InPoller&) = delete;
  InPoller& operator=(const InPoller&) = delete;

 private:
  Worker& worker_;
  const bool before_;
};

// A busy worker may spend a 50th of its time on polls that find nothing. The assumed cost of a poll
// is the least one of late, because a longer poll has moved data, which is no overhead. The value
// rises slowly, so that it follows the number of outstanding operations. Racing workers may undo
// each other's step; the next one makes it again.
void judge_poll(RuntimeState& runtime, const std::uint64_t spent) noexcept {
  const std::uint64_t cost = runtime.poll_gap.load(std::memory_order_relaxed) / polls_share;
  const std::uint64_t now = std::max(std::min(spent, cost + cost / 16 + 1), runtime.poll_cost_min);
  if (now != cost) runtime.poll_gap.store(now * polls_share, std::memory_order_relaxed);
}

// An own worker that sleeps has been woken for the ready tasks, and takes its processor back.
[[gnu::noinline]] void look_for_processors(RuntimeState& runtime) noexcept {
  const std::int64_t ready = runtime.parking.may_be_asleep() ? 0 : runtime.groups.ready();
  runtime.lending->look(ready, runtime.begun());
}

}  // namespace

[[gnu::noinline]] int poll(Worker& worker, const bool often) noexcept {
  RuntimeState& runtime = *worker.runtime;
  if (runtime.pollers.load(std::memory_order_relaxed) == nullptr) return nothing_to_poll;
  const std::uint64_t before = worker.recorder.polls.get();
  const bool judged = !often || before % 16 == 0;
  const std::uint64_t begin = judged ? base::ticks() : 0;
  int completed = 0;
  {
    const InPoller guard(worker);
    const trace::races::Outside of_the_task;
    for (detail::Poller* poller = runtime.pollers.load(std::memory_order_acquire);
         poller != nullptr; poller = poller->next) {
      if (polling_of(*poller) == Polling::none) continue;
      worker.recorder.polls.add(1);
      completed += poller->poll(poller->context);
    }
  }
  if (worker.recorder.polls.get() == before) return nothing_to_poll;
  if (judged && completed == 0) judge_poll(runtime, base::ticks() - begin);
  return completed;
}

bool seek(Worker& worker) noexcept {
  RuntimeState& runtime = *worker.runtime;
  if (runtime.pollers.load(std::memory_order_relaxed) == nullptr || worker.some_ready()) {
    return false;
  }
  const InPoller guard(worker);
  const trace::races::Outside of_the_task;
  for (detail::Poller* poller = runtime.pollers.load(std::memory_order_acquire);
       poller != nullptr; poller = poller->next) {
    if (poller->seek != nullptr && poller->seek(poller->context)) return true;
  }
  return false;
}

bool RuntimeState::watched_elsewhere(Worker& reader) const noexcept {
  if (pollers.load(std::memory_order_relaxed) == nullptr) return false;
  const InPoller guard(reader);
  for (const detail::Poller* poller = pollers.load(std::memory_order_acquire); poller != nullptr;
       poller = poller->next) {
    if (poller->outstanding->load(std::memory_order_relaxed) != 0 ||
        (poller->watched != nullptr && poller->watched->load(std::memory_order_relaxed) != 0)) {
      return true;
    }
  }
  return false;
}

Polling RuntimeState::polling(Worker& reader) const noexcept {
  Polling most = Polling::none;
  if (pollers.load(std::memory_order_relaxed) == nullptr) return most;
  const InPoller guard(reader);
  for (const detail::Poller* poller = pollers.load(std::memory_order_acquire); poller != nullptr;
       poller = poller->next) {
    most = std::max(most, polling_of(*poller));
  }
  return most;
}

// Without MPI and without lending, this costs one read: where ranks lend processors, start.cpp
// adds a poller that never has anything outstanding.
Polling RuntimeState::polling_between_tasks(Worker& reader) noexcept {
  if (pollers.load(std::memory_order_relaxed) == nullptr) return Polling::none;
  if (lending != nullptr && lending->is_look_due()) [[unlikely]] look_for_processors(*this);
  return polling(reader);
}

Polling RuntimeState::ring(Worker& reader) const noexcept {
  Polling most = Polling::none;
  if (pollers.load(std::memory_order_relaxed) == nullptr) return most;
  const InPoller guard(reader);
  for (const detail::Poller* poller = pollers.load(std::memory_order_acquire); poller != nullptr;
       poller = poller->next) {
    if (poller->wake != nullptr && poller->outstanding->load(std::memory_order_relaxed) != 0) {
      poller->wake(poller->context);
    }
    most = std::max(most, polling_of(*poller));
  }
  return most;
}

std::uint64_t RuntimeState::begun() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& worker : workers) {
    sum += worker->recorder.tasks.get() + worker->recorder.suspensions.get();
  }
  return sum;
}

namespace {

void set_pollers(RuntimeState& runtime, detail::Poller* const first)
    IMBREX_REQUIRES(runtime.pollers_lock) {
  bool in_place = true;
  for (const detail::Poller* poller = first; poller != nullptr; poller = poller->next) {
    in_place = in_place && poller->by_workers;
  }
  runtime.in_place.store(in_place, std::memory_order_relaxed);
  runtime.pollers.store(first, std::memory_order_release);
}

}  // namespace

void add_poller(RuntimeState& runtime, detail::Poller& poller) {
  const std::lock_guard guard(runtime.pollers_lock);
  poller.next = runtime.pollers.load(std::memory_order_relaxed);
  set_pollers(runtime, &poller);
}

void remove_poller(RuntimeState& runtime, detail::Poller& poller) {
  {
    const std::lock_guard guard(runtime.pollers_lock);
    detail::Poller* first = runtime.pollers.load(std::memory_order_relaxed);
    for (detail::Poller** link = &first; *link != nullptr; link = &(*link)->next) {
      if (*link == &poller) {
        *link = poller.next;
        break;
      }
    }
    set_pollers(runtime, first);
  }
  base::heavy_fence();  // pairs with poll(): an earlier caller is seen, a later caller does not see
                        // the poller
  const auto wait_for = [](const Worker& worker) {
    while (worker.in_poller.load(std::memory_order_acquire)) std::this_thread::yield();
  };
  for (const auto& worker : runtime.workers) wait_for(*worker);
  const std::lock_guard guard(runtime.foreign_lock);  // held for one poll at most
  for (const Worker* const worker : runtime.foreign) wait_for(*worker);
}

void wake_poller(Worker& worker) noexcept {
  worker.runtime->ring(worker);
  wake_watch(*worker.runtime);
}

void wake_watch(RuntimeState& runtime) noexcept {
  if (!runtime.watched.load(std::memory_order_relaxed)) runtime.parking.wake_one();
}

}  // namespace imbrex::sched
