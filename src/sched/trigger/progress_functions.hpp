// SPDX-License-Identifier: BSD-3-Clause
// Progress functions, and the effect of the end of a finish scope on them and on its names. Used by
// the waist; a poller for the workers.
//
// Thread safety: any thread calls every function, except add() and close(): the owner of the scope.
// Invariants:
//   (1) a function is called only by the one thread that has set `busy`.
//   (2) only that thread takes it off the list, and fires `ended`, its last access; the scope's
//       owner waits for that, and destroys the function.
//   (3) a function on the list keeps its scope open.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "sched/trigger/names.hpp"
#include "task/scope_counts.hpp"

namespace imbrex::sched {

struct RuntimeState;
struct Worker;

struct ProgressFunction {
  detail::ProgressSpec spec;
  task::Scope* finish;
  bool busy = false;                            // (1); under the lock
  std::atomic<std::uint64_t> closing_since{0};  // ns; 0: the scope has unfinished tasks
  detail::EventWord ended;                      // (2)
};

class Triggers {
 public:
  explicit Triggers(RuntimeState& runtime) noexcept;
  ~Triggers();
  Triggers(const Triggers&) = delete;
  Triggers& operator=(const Triggers&) = delete;

  [[nodiscard]] detail::Completion* name(Worker& worker, const detail::EventName& name,
                                         const std::source_location& where);
  void trigger(Worker& worker, const detail::EventName& name);
  void add(task::Scope& finish, const detail::ProgressSpec& spec);

  // The tasks of `finish` (null: all tasks of no scope) are complete. Suspends until its progress
  // functions have ended; then its names are forgotten. Returns null, or the error.
  [[nodiscard]] std::exception_ptr close(task::Scope* finish);

  // True while functions are to be called: no task may then keep a worker for a wait of its own.
  [[nodiscard]] bool active() const noexcept {
    return outstanding_.load(std::memory_order_relaxed) != 0;
  }

 private:
  struct Region {  // the part that belongs to one finish
    std::vector<std::unique_ptr<ProgressFunction>> functions;
    std::exception_ptr failure;  // of a function that threw: its names will not be triggered
  };

  [[nodiscard]] int poll() noexcept;
  [[nodiscard]] bool call(Worker& worker, ProgressFunction& function) noexcept;
  [[nodiscard]] bool overdue(const ProgressFunction& function) const noexcept;
  void end(Worker& worker, ProgressFunction& function, std::exception_ptr error) noexcept;
  [[nodiscard]] std::exception_ptr failure_around(task::Scope* finish);
  void await_functions(task::Scope& finish);
  void watch() noexcept;

  RuntimeState& runtime_;
  Names names_;
  std::atomic<int> outstanding_{0};            // functions; any thread
  std::atomic<std::uint64_t> triggered_{0};    // any thread
  detail::Poller poller_;
  base::SpinLock lock_;
  bool polled_ IMBREX_GUARDED_BY(lock_) = false;  // the runtime calls poller_
  // the functions that are called
  std::vector<ProgressFunction*> functions_ IMBREX_GUARDED_BY(lock_);
  std::unordered_map<const task::Scope*, Region> regions_ IMBREX_GUARDED_BY(lock_);
  std::atomic<std::uint64_t> next_look_{0};    // ticks; the thread that sets it checks
  std::uint64_t looked_at_ = 0;                // number of begun tasks; only the checking thread
                                               // uses it and the next two
  std::uint64_t looked_since_ns_ = 0;
  bool reported_ = false;
};

// Closes `scope` (null: the program) for names and progress functions: waits for the functions of
// the scope, ends every wait for its events, and reports events that no task has named. Suspends.
[[gnu::noinline]] void close_region(task::Scope* scope);

}  // namespace imbrex::sched
