// SPDX-License-Identifier: BSD-3-Clause
// Scope: counts tasks until those spawned in it are complete. Each task with children has one for
// them; finish() opens another.
//
// How it counts without a shared count of spawned tasks: the task that owns the scope counts what
// it spawned in a plain field; each task that ends adds to `finished`. To wait, the owner subtracts
// what it spawned: from then on the field is minus the number outstanding, and whoever brings it
// to zero was the last. Before, it is positive after every addition: never zero. `finished` holds
// two such fields: complete tasks (taskwait) below, those whose descendants are complete too
// (finish) above; so does what the owner counts. Before a field is full, the owner subtracts what
// is finished from both: thousands of millions of tasks may be spawned without a wait.
//
// Thread safety: count_finished and fail by any thread; the rest by the owner.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <source_location>
#include <string>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "task/descriptor.hpp"
#include "task/failure.hpp"

namespace imbrex::task {

struct Registration;  // phases.hpp

enum class Await : std::uint8_t {
  nothing,      // the owner runs
  children,     // it waits until the tasks spawned here are complete
  descendants,  // ... and theirs
  life          // it has ended, and its life ends with its descendants'
};

struct Scope {
  static constexpr std::uint64_t one_complete = 1;
  static constexpr std::uint64_t one_deep = std::uint64_t{1} << 32;
  static constexpr std::uint64_t half_full = (one_complete | one_deep) << 30;

  std::atomic<std::uint64_t> finished{0};  // see above
  std::uint64_t spawned = 0;       // owner: not yet subtracted
  Task* owner = nullptr;
  Scope* outer = nullptr;          // owner: the scope that this one's close returns to
  Await awaiting = Await::nothing; // written by the owner before it subtracts
  bool owns = false;               // owner: something was handed over; written before that
  detail::ScopeKind kind = detail::ScopeKind::finish;  // written before anybody else knows it
  std::atomic<bool> has_region{false};  // sched/trigger/: names or progress functions belong to it
  base::SpinLock lock;
  // Owned; null if nothing has failed, which may be asked without the lock where all that the scope
  // counts has ended.
  FailureLog* failures IMBREX_PT_GUARDED_BY(lock) = nullptr;
  std::source_location where;
  // This one if finish() opened it, else the next one around, or null: ancestors may be gone, so
  // nobody could look for it later. Written before anybody else knows the scope.
  Scope* finish = nullptr;

  [[nodiscard]] static std::int32_t complete_part(const std::uint64_t word) noexcept {
    return static_cast<std::int32_t>(word);
  }
  [[nodiscard]] static std::int32_t deep_part(const std::uint64_t word) noexcept {
    // The lower field is signed: without it the upper one is exact.
    return static_cast<std::int32_t>(
        (word - static_cast<std::uint64_t>(std::int64_t{complete_part(word)})) >> 32);
  }

  // The owner spawns one more.
  void count_spawned() noexcept {
    spawned += one_complete | one_deep;
    if ((spawned & half_full) != 0) [[unlikely]] forget_finished();
  }

  // Adds `amount`, a sum of one_complete and one_deep. True if that was what the owner waits for.
  [[nodiscard]] bool count_finished(const std::uint64_t amount) noexcept {
    // acq_rel: the owner sees what every counted task did.
    const std::uint64_t word = finished.fetch_add(amount, std::memory_order_acq_rel) + amount;
    return (complete_part(amount) != 0 && complete_part(word) == 0) ||
           ((amount >= one_deep) && deep_part(word) == 0);
  }

  // The owner begins to wait; true if there is nothing to wait for (then it has ended already).
  [[nodiscard]] bool begin_wait(const Await what) noexcept {
    awaiting = what;
    if (what == Await::children) {
      const std::uint64_t amount = static_cast<std::uint32_t>(spawned);
      spawned -= amount;
      return complete_part(finished.fetch_sub(amount, std::memory_order_acq_rel) - amount) == 0;
    }
    const std::uint64_t amount = spawned & ~std::uint64_t{UINT32_MAX};
    spawned -= amount;
    return deep_part(finished.fetch_sub(amount, std::memory_order_acq_rel) - amount) == 0;
  }

  // True if the owner need not wait, as far as can be seen; false proves nothing. Changes nothing.
  [[nodiscard]] bool finished_all(const Await what) const noexcept {
    const std::uint64_t word = finished.load(std::memory_order_relaxed);
    return what == Await::children ? complete_part(word) == complete_part(spawned)
                                   : deep_part(word) == deep_part(spawned);
  }

  // How many spawned tasks are not complete: exact for those that were when it was called.
  [[nodiscard]] std::uint32_t outstanding() const noexcept {
    return static_cast<std::uint32_t>(spawned - finished.load(std::memory_order_relaxed));
  }

  // How many spawned tasks are not complete with all their descendants. The owner asks, or somebody
  // for whom it waits before it spawns or begins to wait here: then `spawned` is constant. acquire:
  // whoever sees 0 sees what the tasks did.
  [[nodiscard]] std::uint32_t live() const noexcept {
    const std::uint64_t word = finished.load(std::memory_order_acquire);
    return static_cast<std::uint32_t>(deep_part(spawned) - deep_part(word));
  }

  // The owner takes what is finished out of both counts.
  [[gnu::cold, gnu::noinline]] void forget_finished() noexcept;

  Scope() = default;
  ~Scope() {
    if (failures != nullptr) [[unlikely]] end_log();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // A failure in the code of a thread, outside of any finish(), goes to the scope of that code.
  void fail(Failure& failure) noexcept;
  // The same for all that has failed in `inner`. REQUIRES: all that is counted there has ended.
  void fail_with(const Scope& inner) noexcept;
  // Forgets all failures. Nothing else may destroy `failures`: whoever ends the program asks each
  // scope that has them. REQUIRES: there are `failures`, and nothing that is counted here is left.
  void end_log() noexcept;
  // As FailureLog has them. REQUIRES: all that is counted here is finished.
  [[nodiscard]] std::exception_ptr take_error() noexcept;
  [[nodiscard]] Untold take_untold() noexcept;
  // The same of all scopes that live: the program ends, and nobody will ask them. Any thread.
  [[nodiscard]] static Untold take_all_untold() noexcept;

 private:
  // Without the lock, as fail_with() may.
  [[nodiscard]] const FailureLog& last_log() const noexcept IMBREX_LOCKS_NOT_SEEN {
    return *failures;
  }
  [[nodiscard]] Scope& for_failures() noexcept;
  // What a log had no room for, by the log of the finish() around. REQUIRES: the lock is free.
  void count(const FailureLog::Left& left) noexcept;
  // Returns with the scope locked. Who ends the program finds it from then on.
  FailureLog& lock_log() noexcept IMBREX_ACQUIRE(lock) IMBREX_LOCKS_NOT_SEEN;
};
static_assert(sizeof(Scope) <= sizeof(detail::ScopeMemory));

// What the program has written to open `scope`: "the finish() at stencil.cpp:54".
[[nodiscard]] std::string describe(const Scope& scope);

// An event that a task's completion waits for, or the end of one of its accesses, or of a scope.
struct Hold : Waiter {
  Hold* following = nullptr;             // of the same task
  detail::Completion* source = nullptr;  // whose event it is, if anyone's: if that fails, so does
                                         // what is held; has a reference
  Scope* scope = nullptr;                // of the task, which waits; null: it holds the completion
  const void* address = nullptr;         // of the access; null: it holds none
  std::size_t bytes = 0;                 // of the access, if that is a range
};

// The thread that runs a task writes it, and the end of the runtime looks at it meanwhile.
class CurrentScope {
 public:
  CurrentScope& operator=(Scope* scope) noexcept {
    scope_.store(scope, std::memory_order_relaxed);
    return *this;
  }
  operator Scope*() const noexcept { return scope_.load(std::memory_order_relaxed); }
  Scope* operator->() const noexcept { return *this; }

 private:
  std::atomic<Scope*> scope_{nullptr};
};

// The part of a task that it needs once it has children, or once its completion waits for events.
struct Family {
  Scope children;
  CurrentScope current;            // where it spawns now
  DependTable* table = nullptr;    // of its children's accesses; made by the first
  Hold* holds = nullptr;           // owned
  Registration* registrations = nullptr;  // on phasers; owned; its spawner writes it before it runs
  std::uint32_t unchecked = 0;     // spawned since it last looked whether it runs too far ahead
};

// True for what a finish() was given, false for what holds a task or an access.
[[nodiscard]] inline bool is_owned(const Hold& hold) noexcept {
  return hold.scope != nullptr && hold.address == nullptr;
}

}  // namespace imbrex::task
