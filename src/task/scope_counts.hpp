// SPDX-License-Identifier: BSD-3-Clause
// Scope: counts tasks until all tasks spawned in it are complete. Each task with children has one
// for them; finish() opens another.
//
// How it counts without a shared count of spawned tasks: the owner of the scope counts its spawned
// tasks in a plain field; each task that ends adds to `finished`. To wait, the owner subtracts the
// number of spawned tasks: from then on the field is minus the number outstanding, and the thread
// that brings it to zero was the last. Before, it is positive after every addition, never zero.
// `finished` holds two such fields: complete tasks (taskwait) below, and above them tasks whose
// descendants are complete, too (finish); so does the owner's count. Before a field is full, the
// owner subtracts the finished tasks from both: thousands of millions of tasks may be spawned
// without a wait.
//
// Thread safety: any thread calls count_finished and fail; only the owner calls the rest.
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
class Stop;           // stop.hpp

enum class Await : std::uint8_t {
  nothing,      // the owner runs
  children,     // the owner waits until the tasks spawned here are complete
  descendants,  // the owner waits for the descendants, too
  life          // the owner has ended, and its life ends with its descendants'
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
  detail::ScopeKind kind = detail::ScopeKind::finish;  // written before any other thread knows the
                                                       // scope
  std::atomic<bool> has_region{false};  // sched/trigger/: names or progress functions belong to it
  base::SpinLock lock;
  // Owned; null if nothing has failed. It may be read without the lock where all tasks that the
  // scope counts have ended.
  FailureLog* failures IMBREX_PT_GUARDED_BY(lock) = nullptr;
  std::source_location where;
  // This scope if finish() opened it, else the next finish() around, or null. Ancestors may be
  // gone, so it could not be found later. Written before any other thread knows the scope.
  Scope* finish = nullptr;
  // What may stop the tasks of this scope; made by it, or by one around it. Null: nothing. Written
  // before any other thread knows the scope.
  Stop* stop = nullptr;

  [[nodiscard]] static std::int32_t complete_part(const std::uint64_t word) noexcept {
    return static_cast<std::int32_t>(word);
  }
  [[nodiscard]] static std::int32_t deep_part(const std::uint64_t word) noexcept {
    // The lower field is signed: the upper one is exact without it.
    return static_cast<std::int32_t>(
        (word - static_cast<std::uint64_t>(std::int64_t{complete_part(word)})) >> 32);
  }

  // Counts one more spawned task.
  void count_spawned() noexcept {
    spawned += one_complete | one_deep;
    if ((spawned & half_full) != 0) [[unlikely]] forget_finished();
  }

  // Adds `amount`, a sum of one_complete and one_deep. True if the owner's wait ends.
  [[nodiscard]] bool count_finished(const std::uint64_t amount) noexcept {
    // acq_rel: the owner sees what every counted task did.
    const std::uint64_t word = finished.fetch_add(amount, std::memory_order_acq_rel) + amount;
    return (complete_part(amount) != 0 && complete_part(word) == 0) ||
           ((amount >= one_deep) && deep_part(word) == 0);
  }

  // The owner begins to wait; true if there is nothing to wait for (the wait has then ended
  // already).
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

  // True if the owner need not wait, as far as can be seen; false proves nothing. No side effect.
  [[nodiscard]] bool finished_all(const Await what) const noexcept {
    const std::uint64_t word = finished.load(std::memory_order_relaxed);
    return what == Await::children ? complete_part(word) == complete_part(spawned)
                                   : deep_part(word) == deep_part(spawned);
  }

  // The number of spawned tasks that are not complete: exact for tasks that were complete at the
  // call.
  [[nodiscard]] std::uint32_t outstanding() const noexcept {
    return static_cast<std::uint32_t>(spawned - finished.load(std::memory_order_relaxed));
  }

  // The number of spawned tasks that are not complete with all their descendants. Called by the
  // owner, or by code that the owner waits for before it spawns or begins to wait here: `spawned`
  // is then constant. acquire: a caller that sees 0 sees the effects of the tasks.
  [[nodiscard]] std::uint32_t live() const noexcept {
    const std::uint64_t word = finished.load(std::memory_order_acquire);
    return static_cast<std::uint32_t>(deep_part(spawned) - deep_part(word));
  }

  // The owner subtracts the finished tasks from both counts.
  [[gnu::cold, gnu::noinline]] void forget_finished() noexcept;

  Scope() = default;
  ~Scope() {
    if (failures != nullptr) [[unlikely]] end_log();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // A failure in the code of a thread, outside of any finish(), goes to the scope of that code. One
  // by a stop, once the scope stops, is none.
  void fail(Failure& failure) noexcept;
  // fail() for all failures in `inner`. REQUIRES: all tasks that are counted there have ended.
  void fail_with(const Scope& inner) noexcept;
  // Forgets all failures. No other code may destroy `failures`: code that ends the program asks
  // each scope that has failures. REQUIRES: there are `failures`, and all counted tasks have ended.
  void end_log() noexcept;
  // FailureLog::take(). REQUIRES: all counted tasks have ended.
  [[nodiscard]] std::exception_ptr take_error() noexcept;
  [[nodiscard]] Untold take_untold() noexcept;
  // The unreported failures of all live scopes, for the end of the program. Any thread.
  [[nodiscard]] static Untold take_all_untold() noexcept;
  // In a child of fork: the parent reports the failures of its scopes.
  static void forget_all() noexcept;

 private:
  // Whether the stop of this scope is the cause of `failure`.
  [[nodiscard]] bool is_by_stop(Failure& failure) const noexcept;
  // Without the lock, as in fail_with().
  [[nodiscard]] const FailureLog& last_log() const noexcept IMBREX_LOCKS_NOT_SEEN {
    return *failures;
  }
  [[nodiscard]] Scope& for_failures() noexcept;
  // count() for failures that found no room, by the log of the finish() around. REQUIRES: the lock
  // is free.
  void count(const FailureLog::Left& left) noexcept;
  // Returns with the scope locked. Code that ends the program finds the log from then on.
  FailureLog& lock_log() noexcept IMBREX_ACQUIRE(lock) IMBREX_LOCKS_NOT_SEEN;
};
static_assert(sizeof(Scope) <= sizeof(detail::ScopeMemory));

// The construct of the program that opened `scope`: "the finish() at stencil.cpp:54".
[[nodiscard]] std::string describe(const Scope& scope);

// An event that delays the completion of a task, or the end of an access or of a scope.
struct Hold : Waiter {
  Hold* following = nullptr;             // of the same task
  detail::Completion* source = nullptr;  // the owner of the event, if any: if it fails, the held
                                         // object fails; has a reference
  Scope* scope = nullptr;                // the scope of the task, which waits; null: the completion
                                         // waits
  const void* address = nullptr;         // address of the access; null: no access is held
  std::size_t bytes = 0;                 // size of the access, if it is a range
};

// The thread that runs a task writes it; the end of the runtime reads it meanwhile.
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
  CurrentScope current;            // the scope in which it spawns now
  DependTable* table = nullptr;    // the accesses of its children; made by the first child
  Hold* holds = nullptr;           // owned
  Registration* registrations = nullptr;  // on phasers; owned; its spawner writes it before it runs
  std::uint32_t unchecked = 0;     // number spawned since the last check whether it is too far
                                   // ahead
};

// True for a hold of a finish(), false for a hold of a task or an access.
[[nodiscard]] inline bool is_owned(const Hold& hold) noexcept {
  return hold.scope != nullptr && hold.address == nullptr;
}

}  // namespace imbrex::task
