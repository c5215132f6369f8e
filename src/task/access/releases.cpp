// SPDX-License-Identifier: BSD-3-Clause
#include "task/access/releases.hpp"

#include <utility>

#include "task/access/conflicts.hpp"
#include "task/access/inheritance.hpp"
#include "task/access/mutexes.hpp"
#include "task/lineage.hpp"

namespace imbrex::task {

namespace {

constexpr std::size_t few = 16;  // up to this number, a linear search finds an access

[[nodiscard]] Waiter* pop(Waiter*& list) noexcept {
  Waiter* const first = list;
  list = first->next;
  return first;
}
void push(Waiter& waiter, Waiter*& list) noexcept {
  waiter.next = list;
  list = &waiter;
}

}  // namespace

Rare::~Rare() { delete releases.load(std::memory_order_relaxed); }

Rare& rare_of(AccessBlock& block) noexcept {
  Rare* present = block.rare.load(std::memory_order_acquire);
  if (present != nullptr) return *present;
  auto rare = std::make_unique<Rare>();
  if (block.rare.compare_exchange_strong(present, rare.get(), std::memory_order_acq_rel)) {
    return *rare.release();
  }
  return *present;
}

Releases* releases_of(const AccessBlock& block) noexcept {
  const Rare* const rare = block.rare.load(std::memory_order_acquire);
  return rare == nullptr ? nullptr : rare->releases.load(std::memory_order_acquire);
}

void take_waiters(Task& task, Outcome& outcome) noexcept {
  releases_of(*task.accesses)->take_waiters(outcome);
}

Waiter* fire_apart(Task& task, Waiter* const first) noexcept {
  return releases_of(*task.accesses)->fire(first);
}

Releases::Releases(Task& task) : task_(task) {
  const std::span<Access> accesses = task.accesses->accesses();
  first_listed_.resize(accesses.size());
  if (accesses.size() > few) {
    by_address_.reserve(accesses.size());
    same_address_.resize(accesses.size());
  }
  for (std::uint32_t position = 0; position < accesses.size(); ++position) {
    const Access& access = accesses[position];
    if (access.kind == AccessKind::everything) everything_.push_back(position);
    if (!names_memory(access.kind) || accesses.size() <= few) continue;
    same_address_[position] = std::exchange(by_address_[access.address], position + 1);
  }
}

Releases::~Releases() {
  if (std::atomic<Failure*>* const failures = failures_.load(std::memory_order_relaxed)) {
    delete[] failures;  // forget_inherited() has dropped them
  }
}

// Calls visit(position) for each access whose memory begins at `address`.
template <class Visit>
void Releases::each_at(const void* const address, Visit visit) noexcept {
  const std::span<Access> accesses = task_.accesses->accesses();
  if (accesses.size() > few) {
    const auto found = by_address_.find(address);
    std::uint32_t next = found == by_address_.end() ? 0 : found->second;
    for (; next != 0; next = same_address_[next - 1]) visit(next - 1);
    return;
  }
  for (std::uint32_t position = 0; position < accesses.size(); ++position) {
    const Access& access = accesses[position];
    if (access.address == address && names_memory(access.kind)) visit(position);
  }
}

// Calls visit(position) for each access at `address` that was named in this way: as an object, or
// with `bytes` as that very range.
template <class Visit>
bool Releases::each_named(const void* const address, const std::size_t bytes,
                          Visit visit) noexcept {
  bool found = false;
  each_at(address, [&](const std::uint32_t position) IMBREX_REQUIRES(lock_) {
    Access& access = task_.accesses->accesses()[position];
    if (is_range(access) != (bytes != 0)) return;
    const Interval covered = interval_of(access);
    if (bytes != 0 && covered.end - covered.begin != bytes) return;
    found = true;
    visit(access, position);
  });
  return found;
}

bool Releases::is_open(const Access& access) const noexcept {
  if (!orders_siblings(access.kind)) return false;
  const End end = access.end.load(std::memory_order_relaxed);  // the lock orders it
  return end == End::by_event || (end == End::with_task && !fired_);
}

void Releases::list_under(const std::uint32_t position) noexcept {
  listed_.push_back({static_cast<std::uint32_t>(waiting_.size() - 1), first_listed_[position]});
  first_listed_[position] = static_cast<std::uint32_t>(listed_.size());
  ++waiting_.back().accesses;
}

void Releases::list_by_range(const Access& other) noexcept {
  const std::span<Access> accesses = task_.accesses->accesses();
  if (same_interval_.empty()) {
    same_interval_.resize(accesses.size());
    for (std::uint32_t position = 0; position < accesses.size(); ++position) {
      if (!names_memory(accesses[position].kind)) continue;
      std::uint32_t& first = by_interval_.at(interval_of(accesses[position]));
      same_interval_[position] = std::exchange(first, position + 1);
    }
  }
  // The visit runs at once, in a function that does not know the lock.
  const auto visit = [&](const Interval&, std::uint32_t next) IMBREX_LOCKS_NOT_SEEN {
    for (; next != 0; next = same_interval_[next - 1]) {
      const Access& mine = accesses[next - 1];
      if (is_open(mine) && conflict_by_range(mine, other, other.version())) list_under(next - 1);
    }
  };
  by_interval_.each_overlapping(interval_of(other), visit);
}

bool Releases::list(Waiter& waiter) noexcept {
  AccessBlock& block = *waiter.task->accesses;
  const std::span<Access> accesses = task_.accesses->accesses();
  waiting_.push_back({&waiter, 0});
  for (const Access& other : block.accesses()) {
    if (!orders_siblings(other.kind)) continue;
    for (const std::uint32_t position : everything_) {
      if (is_open(accesses[position])) list_under(position);
    }
    if (other.kind == AccessKind::everything) {
      for (std::uint32_t position = 0; position < accesses.size(); ++position) {
        if (is_open(accesses[position])) list_under(position);
      }
    } else if (block.linked_at != 0) {
      list_by_range(other);
    } else {
      each_at(other.address, [&](const std::uint32_t position) IMBREX_REQUIRES(lock_) {
        const Access& mine = accesses[position];
        if (is_open(mine) && conflict(mine.kind, other.kind)) list_under(position);
      });
    }
  }
  if (waiting_.back().accesses != 0) return true;
  waiting_.pop_back();
  return false;
}

void Releases::list_all(Waiter* first, Waiter*& free) noexcept {
  while (first != nullptr) {
    Waiter& waiter = *pop(first);
    if (!waiter.by_address() || !list(waiter)) push(waiter, free);
  }
}

void Releases::end(const std::uint32_t position, Waiter*& free) noexcept {
  for (std::uint32_t next = std::exchange(first_listed_[position], 0); next != 0;) {
    Waiting& waiting = waiting_[listed_[next - 1].waiting];
    if (--waiting.accesses == 0) push(*waiting.waiter, free);
    next = listed_[next - 1].next;
  }
}

// Releases the waiters that no access keeps any more. Called without the lock.
void Releases::let_go(Waiter* const free, const bool fired, Outcome& outcome) noexcept {
  const bool failed = task_.accesses->is_failed();
  for (Waiter* waiter = free; waiter != nullptr; waiter = waiter->next) {
    if (failed) [[unlikely]] pass_on(task_, *waiter->task, fired);
    if (task_.reach == Reach::flow) forget_edge(*waiter);
  }
  event::let_go_all(free, outcome);
}

void Releases::take_waiters(Outcome& outcome) noexcept {
  Waiter* free = nullptr;
  bool fired = false;
  {
    const std::lock_guard guard(lock_);
    list_all(event::take_by_address(task_.event), free);
    fired = fired_;
  }
  let_go(free, fired, outcome);
}

bool Releases::release(const void* const address, const std::size_t bytes,
                       Outcome& outcome) noexcept {
  Waiter* free = nullptr;
  bool found = false;
  {
    const std::lock_guard guard(lock_);
    found = each_named(address, bytes, [&](Access& access, const std::uint32_t position)
                                   IMBREX_REQUIRES(lock_) {
      // The access has ended before, or an event ends it.
      if (access.end.load(std::memory_order_relaxed) != End::with_task) return;
      access.end.store(End::early, std::memory_order_release);  // pairs with Access::has_ended()
      end(position, free);
      if (access.mutex() != nullptr) give_back(access, outcome.ready);
    });
  }
  let_go(free, false, outcome);
  return found;
}

bool Releases::hold(const void* const address, const std::size_t bytes) noexcept {
  const std::lock_guard guard(lock_);
  if (holds_.empty()) holds_.resize(task_.accesses->count);
  bool held = false;
  (void)each_named(address, bytes, [&](Access& access, const std::uint32_t position)
                                   IMBREX_REQUIRES(lock_) {
    if (access.end.load(std::memory_order_relaxed) == End::early) return;
    access.end.store(End::by_event, std::memory_order_release);
    ++holds_[position];
    held = true;
  });
  return held;
}

void Releases::fail(const std::uint32_t position, Failure& failure) noexcept {
  std::atomic<Failure*>* all = failures_.load(std::memory_order_relaxed);
  if (all == nullptr) {
    all = new std::atomic<Failure*>[task_.accesses->count]{};
    failures_.store(all, std::memory_order_release);
  }
  if (all[position].load(std::memory_order_relaxed) == nullptr) {
    all[position].store(&share(failure), std::memory_order_release);
  }
  task_.accesses->mark(AccessBlock::failed);
}

void Releases::end_hold(const void* const address, const std::size_t bytes, Failure* const failure,
                        Outcome& outcome) noexcept {
  Waiter* free = nullptr;
  bool fired = false;
  {
    const std::lock_guard guard(lock_);
    fired = fired_;
    (void)each_named(address, bytes, [&](Access& access, const std::uint32_t position)
                                   IMBREX_REQUIRES(lock_) {
      if (access.end.load(std::memory_order_relaxed) != End::by_event) return;
      if (failure != nullptr) fail(position, *failure);
      if (--holds_[position] != 0) return;
      access.end.store(fired ? End::late : End::early, std::memory_order_release);
      end(position, free);
      if (access.mutex() != nullptr) give_back(access, outcome.ready);
    });
  }
  let_go(free, fired, outcome);
}

Waiter* Releases::fire(Waiter* const first) noexcept {
  Waiter* free = nullptr;
  const std::lock_guard guard(lock_);
  fired_ = true;
  const std::span<Access> accesses = task_.accesses->accesses();
  for (std::uint32_t position = 0; position < accesses.size(); ++position) {
    if (first_listed_[position] != 0 && !is_open(accesses[position])) end(position, free);
  }
  list_all(first, free);
  return free;
}

bool Releases::add(Waiter& waiter) noexcept {
  const std::lock_guard guard(lock_);
  return list(waiter);
}

Failure* Releases::failure_of(const Access& access) const noexcept {
  const std::atomic<Failure*>* const all = failures_.load(std::memory_order_acquire);
  return all == nullptr ? nullptr
                        : all[position_of(access)].load(std::memory_order_acquire);
}

void Releases::forget_failures() noexcept {
  std::atomic<Failure*>* const all = failures_.load(std::memory_order_acquire);
  if (all == nullptr) return;
  for (std::uint32_t position = 0; position < task_.accesses->count; ++position) {
    Failure* const failure = all[position].exchange(nullptr, std::memory_order_acq_rel);
    if (failure != nullptr) drop(*failure);
  }
}

}  // namespace imbrex::task
