// SPDX-License-Identifier: BSD-3-Clause
// The seldom used parts of the stealing policies; the frequent ones are inline, in the header.
#include "sched/policy/stealing.hpp"

#include <algorithm>
#include <bit>
#include <mutex>

namespace imbrex::sched {

void ForeignQueue::push(const Entry& entry) {
  Fifo& fifo = entry.resumed ? resumed_ : new_;
  const std::lock_guard guard(fifo.lock);
  fifo.tasks.push_back(entry.task);
  fifo.size.fetch_add(1, std::memory_order_release);
}

Entry ForeignQueue::pop(Fifo& fifo) noexcept {
  if (fifo.size.load(std::memory_order_acquire) == 0) return {};
  const std::lock_guard guard(fifo.lock);
  if (fifo.tasks.empty()) return {};
  const Entry entry{fifo.tasks.front(), &fifo == &resumed_};
  fifo.tasks.pop_front();
  fifo.size.fetch_sub(1, std::memory_order_relaxed);
  return entry;
}

std::size_t ForeignQueue::extract(const void* const kind, const std::span<Task*> to) {
  if (!has_new()) return 0;
  std::size_t count = 0;
  const std::lock_guard guard(new_.lock);
  std::erase_if(new_.tasks, [&](Task* const task) {
    if (count == to.size() || !is_of(*task, kind)) return false;
    to[count++] = task;
    return true;
  });
  new_.size.fetch_sub(static_cast<std::int64_t>(count), std::memory_order_relaxed);
  return count;
}

Stealing::Stealing(const PolicySetup& setup, const bool graph_order)
    : nearest_(setup.nearest),
      within_(setup.within),
      marks_(base::zeros<std::atomic<std::uint64_t>>(static_cast<std::size_t>(setup.workers) / 64 +
                                                     1)),
      queues_(new LocalQueues[static_cast<std::size_t>(setup.workers)]),
      workers_(setup.workers) {
  for (int worker = 0; worker < workers_; ++worker) {
    LocalQueues& queues = queues_[worker];
    queues.graph_order = graph_order;
    if (setup.one_thread) queues.lock.use_one_thread();
    queues.patience = std::max(1, foreign_patience / workers_);
    queues.elsewhere = &elsewhere_;
    queues.foreign = &foreign_;
    queues.marks = &marks_[static_cast<std::size_t>(worker) / 64];
    queues.mark = std::uint64_t{1} << (worker % 64);
    for (base::Ring<Task>* const ring :
         {&queues.resumed, &queues.newest_first, &queues.oldest_first}) {
      ring->announce(*queues.marks, queues.mark);
    }
  }
}

void Stealing::push(Task& task, const Place place, const Origin origin) {
  const bool resumed = origin == Origin::resumed;
  if (const int level = task.priority.load(std::memory_order_relaxed); level > 0) {
    push_urgent(task, {level, resumed, task.id}, resumed);
  } else if (level < 0) {
    last_.push(task, {level, resumed, task.id}, resumed);
  } else if (place.worker == no_worker || !queues_[place.worker].push(task, origin)) {
    foreign_.push({&task, resumed});
    elsewhere_.fetch_add(1, std::memory_order_release);
  }
}

void Stealing::push_urgent(Task& task, const OrderedQueue::Key& key, const bool resumed) {
  urgent_.push(task, key, resumed);
  elsewhere_.fetch_add(1, std::memory_order_release);
}

Entry Stealing::counted(const Entry& entry) noexcept {
  if (entry) elsewhere_.fetch_sub(1, std::memory_order_relaxed);
  return entry;
}

Entry Stealing::pop(const int worker) {
  LocalQueues& own = queues_[worker];
  if (const Entry entry = pop_elsewhere(own)) return entry;
  if (const Entry entry = own.pop_own()) return entry;
  return counted(foreign_.pop_new());
}

Entry Stealing::pop_elsewhere(LocalQueues& own) noexcept {
  if (elsewhere_.load(std::memory_order_acquire) == 0) return {};
  if (const Entry entry = counted(urgent_.pop())) return entry;
  if (const Entry entry = counted(foreign_.pop_resumed())) return entry;
  if (!own.new_foreign_is_due()) return {};
  own.waited = 0;
  return counted(foreign_.pop_new());
}

Entry Stealing::steal(const int worker, const bool eager) {
  const std::size_t distances =
      within_.empty() ? 1 : within_[static_cast<std::size_t>(worker)].size();
  bool busy = false;
  for (std::size_t distance = 0; distance < distances && (distance == 0 || !busy); ++distance) {
    if (const Entry entry = steal_at(worker, eager, static_cast<int>(distance), busy)) return entry;
  }
  return busy && distances > 1 ? Entry{} : last_.pop();
}

Entry Stealing::steal_at(const int worker, const bool eager, const int distance, bool& busy) {
  const auto self = static_cast<std::size_t>(worker);
  const auto at = static_cast<std::size_t>(distance);
  if (at >= (within_.empty() ? 1 : within_[self].size())) return last_.pop();
  // A single task, as in a chain, is likely to be run at once by its owner; a theft would move its
  // data to and fro. It is taken only if nothing else turns up for a while.
  const std::int64_t least = eager ? 1 : 2;
  Entry entry;
  const auto look = [&](LocalQueues& victim) {
    entry = steal_from(victim, queues_[worker], least);
    busy = busy || (!entry && victim.size() != 0);
    return static_cast<bool>(entry);
  };
  if (nearest_.empty()) {
    (void)visit_marked_behind(worker, look);
    return entry;
  }
  std::span<const int> nearest(nearest_[self]);
  const auto begin = static_cast<std::size_t>(at == 0 ? 0 : within_[self][at - 1]);
  if (!within_.empty()) {
    nearest = nearest.subspan(begin, static_cast<std::size_t>(within_[self][at]) - begin);
  }
  if (visit_marked(nearest, look) && begin != 0) {
    far_steals_.fetch_add(1, std::memory_order_relaxed);
  }
  return entry;
}

template <class Visit>
bool Stealing::visit_marked(const std::span<const int> nearest, Visit visit) {
  return std::ranges::any_of(nearest, [&](const int worker) {
    LocalQueues& queues = queues_[worker];
    const auto word = static_cast<std::size_t>(worker) / 64;
    const std::uint64_t mark = std::uint64_t{1} << (worker % 64);
    return (marks_[word].load(std::memory_order_relaxed) & mark) != 0 && visit(queues);
  });
}

template <class Visit>
bool Stealing::visit_marked_behind(const int self, Visit visit) {
  const int words = workers_ / 64 + 1;
  const int own = self / 64;
  // in the word of the worker itself
  const std::uint64_t behind = ~std::uint64_t{0} << (self % 64) << 1;
  for (int step = 0; step <= words; ++step) {
    const int word = (own + step) % words;
    std::uint64_t marks = marks_[static_cast<std::size_t>(word)].load(std::memory_order_relaxed);
    if (step == 0) marks &= behind;
    if (step == words) marks &= ~behind & ~(std::uint64_t{1} << (self % 64));
    for (; marks != 0; marks &= marks - 1) {
      if (visit(queues_[word * 64 + std::countr_zero(marks)])) return true;
    }
  }
  return false;
}

namespace {

constexpr int batch_max = 15;
constexpr std::int64_t recursion = 32;  // forked tasks that a recursion may leave waiting

// Takes the oldest task of `from`, and up to half of the rest, which go to `more`, because the
// thief would mostly come again: in a graph always, and from forked tasks if there are more than a
// recursion leaves behind.
Task* steal_oldest(base::Ring<Task>& from, const std::int64_t kept, Task* more[], int& count) {
  Task* const oldest = from.pop_front();
  const std::int64_t half = (from.size() - kept) / 2;
  while (count < std::min<std::int64_t>(half, batch_max)) more[count++] = from.pop_front();
  return oldest;
}

}  // namespace

// Takes one task of `victim`; further stolen tasks go to `own`.
Entry Stealing::steal_from(LocalQueues& victim, LocalQueues& own, const std::int64_t least) {
  if (!victim.has_ring_of(least)) return {};  // without the lock
  if (!victim.lock.try_lock()) return {};
  Entry entry;
  Task* more[batch_max];
  int count = 0;
  base::Ring<Task>* to = &own.oldest_first;
  if (victim.resumed.size() >= least) {
    entry = {victim.resumed.pop_front(), true};
  } else if (victim.newest_first.size() >= least) {
    entry = {steal_oldest(victim.newest_first, recursion, more, count), false};
    to = &own.newest_first;
  } else if (victim.oldest_first.size() >= least) {
    entry = {steal_oldest(victim.oldest_first, 0, more, count), false};
  }
  victim.lock.unlock();
  if (count != 0) {
    own.lock.enter();
    for (int i = 0; i < count; ++i) to->push_back(more[i]);
    own.lock.leave();
  }
  return entry;
}

std::size_t Stealing::extract(const int worker, const void* const kind,
                              const std::span<Task*> to) {
  std::size_t count = last_.extract(kind, to);
  for (int each = 0; each < workers_ && count != to.size(); ++each) {
    LocalQueues& queues = queues_[each];
    if (queues.size() == 0) continue;
    if (each == worker) {
      queues.lock.enter();
      count += queues.extract(kind, to.subspan(count));
      queues.lock.leave();
    } else if (queues.lock.try_lock()) {
      count += queues.extract(kind, to.subspan(count));
      queues.lock.unlock();
    }
  }
  const std::size_t foreign = foreign_.extract(kind, to.subspan(count));
  const std::size_t urgent = urgent_.extract(kind, to.subspan(count + foreign));
  elsewhere_.fetch_sub(static_cast<std::int64_t>(foreign + urgent), std::memory_order_relaxed);
  return count + foreign + urgent;
}

void Stealing::raise(Task& task, const int priority) {
  if (priority <= 0) return;
  task::add_reference(task);
  push_urgent(task, {priority, false, task.id}, false);
}

std::int64_t Stealing::size() const {
  std::int64_t sum = urgent_.size() + last_.size() + foreign_.size();
  for (int word = 0; word <= workers_ / 64; ++word) {
    std::uint64_t marks = marks_[static_cast<std::size_t>(word)].load(std::memory_order_relaxed);
    for (; marks != 0; marks &= marks - 1) {
      sum += queues_[word * 64 + std::countr_zero(marks)].size();
    }
  }
  return sum;
}

std::unique_ptr<Policy> make_stealing(const PolicySetup& setup, const bool graph_order) {
  return std::make_unique<Stealing>(setup, graph_order);
}

}  // namespace imbrex::sched
