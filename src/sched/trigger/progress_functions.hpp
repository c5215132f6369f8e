// SPDX-License-Identifier: BSD-3-Clause
// Progress functions, and what the end of a finish scope means for them and for its names. Used by
// the waist; a poller to the workers.
//
// Thread safety: every function, any thread, but add() and close() for one scope: its owner.
// Invariants:
//   (1) a function is called by the one thread that has set `busy`.
//   (2) that thread alone takes it off the list, and fires `ended`, its last touch; the scope's
//       owner waits for that, and destroys it.
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

  // The tasks of `finish`, null for all that belong to none, are complete. Suspends until its
  // progress functions have ended; then its names are forgotten. Null, or what was wrong.
  [[nodiscard]] std::exception_ptr close(task::Scope* finish);

  // True while functions are to be called: then no task may keep a worker for a wait of its own.
  [[nodiscard]] bool active() const noexcept {
    return outstanding_.load(std::memory_order_relaxed) != 0;
  }

 private:
  struct Region {  // of a finish
    std::vector<std::unique_ptr<ProgressFunction>> functions;
    std::exception_ptr failure;  // of one that threw: its names will not be triggered
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
  bool polled_ IMBREX_GUARDED_BY(lock_) = false;  // poller_ is the runtime's
  std::vector<ProgressFunction*> functions_ IMBREX_GUARDED_BY(lock_);  // that are called
  std::unordered_map<const task::Scope*, Region> regions_ IMBREX_GUARDED_BY(lock_);
  std::atomic<std::uint64_t> next_look_{0};    // ticks; who sets it looks
  std::uint64_t looked_at_ = 0;                // tasks begun; who looks, so do the next two
  std::uint64_t looked_since_ns_ = 0;
  bool reported_ = false;
};

// Closes `scope`, or the program if it is null, for names and progress functions: waits for the
// functions of the scope, and ends every wait for its events; events that nobody has named are
// reported. Suspends.
[[gnu::noinline]] void close_region(task::Scope* scope);

}  // namespace imbrex::sched
