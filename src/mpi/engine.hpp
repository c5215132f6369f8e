// SPDX-License-Identifier: BSD-3-Clause
// The completion engine: finds out which MPI operations are complete, while the tasks that wait for
// them are suspended. Used by wait.cpp and request.cpp; knows no task: what happens at completion
// is a function in the operation.
#pragma once

#include <mpi.h>
#include <pthread.h>

#include <atomic>
#include <string>
#include <vector>

#include "abi/asked.hpp"
#include "imbrex/detail/waist.hpp"

namespace imbrex::mpi {

// What an operation carries out, for reports, traces and errors.
struct Call {
  const char* name;                       // a literal
  MPI_Comm comm = MPI_COMM_NULL;          // null if the call names none
  int peer = -1;                          // -1: none, or any
  int tag = -1;
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;  // null: size unknown
  bool throws = false;                    // of C++: its MpiError is the report
};

// While it lives, this thread stands in no task: MPI may call functions of the user's while it
// makes progress, and they cannot suspend.
class Callback {
 public:
  Callback() noexcept { detail::enter_callback(); }
  ~Callback() { detail::leave_callback(); }
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
};

// An error handler of the user's that MPI called while the engine asked it. The engine holds its
// lock then and runs as no task, so it keeps the call for the task whose operation failed.
struct DeferredHandler {
  MPI_Comm_errhandler_function* function = nullptr;
  MPI_Comm comm = MPI_COMM_NULL;
  int code = MPI_SUCCESS;
};

// One MPI operation that is under way. It lives where its owner put it (mostly on the waiting
// task's stack) until `complete` has been called, and is not moved.
struct Operation {
  // REQUIRES: set by the owner before Engine::add().
  Call call;
  void (*complete)(Operation& self) noexcept;  // called once, without a lock; may end `self`
  MPI_Request request = MPI_REQUEST_NULL;      // asked for together with others, unless `ask`:
  // Asks MPI; true once complete, and `code` and `handler_ran` are set.
  bool (*ask)(Operation& self) = nullptr;

  // Set by the engine, to be read from `complete` on.
  int code = MPI_SUCCESS;
  MPI_Status status = {};
  bool handler_ran = false;  // MPI has called the error handler, or `handler` holds the call
  DeferredHandler handler = {};

  Operation* next = nullptr;  // the engine's
};

// Thread safety: every member, any thread.
// Invariants: (1) an operation is in exactly one of intake, singles, groups, or done; (2) only the
// thread that holds `locked_` touches what stands below it; (3) `outstanding_` counts an operation
// until its `complete` has returned, so that what it wakes is seen before the count is zero.
class Engine {
 public:
  void add(Operation& operation) noexcept;
  // Asks MPI once for everything that is under way, unless another thread does so now. Returns how
  // many operations it completed. Never suspends.
  int poll() noexcept;
  [[nodiscard]] const std::atomic<int>& outstanding() const noexcept { return outstanding_; }

  // True if this thread is in poll(): then the caller is called by MPI.
  [[nodiscard]] bool polling_here() const noexcept;
  void defer(const DeferredHandler& handler) noexcept { deferred_ = handler; }

  // One line for each operation under way, 20 at most. Waits for the lock.
  [[nodiscard]] std::string describe_open();

 private:
  // Operations that are complete, in order.
  struct Done {
    Operation* first = nullptr;
    Operation** end = &first;
    void push(Operation& operation) noexcept;
  };

  [[nodiscard]] bool try_lock() noexcept;
  void unlock() noexcept { locked_.store(false, std::memory_order_release); }
  void take_intake();
  void ask_singles(Done& done);
  void ask_each(int first, int count, Done& done);
  void settle_errors(int first, int count, int found, bool owed, Done& done);
  void finish(int place, const MPI_Status& status, int code, Done& done);
  void forget_finished(int first, int count);
  void ask_groups(Done& done);

  std::atomic<int> outstanding_{0};            // any thread; see (3)
  std::atomic<Operation*> intake_{nullptr};    // pushed by any thread, emptied under the lock
  std::atomic<bool> locked_{false};            // the try-lock
  std::atomic<pthread_t> poller_{};            // who holds it; only compared with oneself

  // Under the lock (2). No bound: one entry for each suspended task or pending future.
  std::vector<MPI_Request> requests_;   // singles, compact
  std::vector<Operation*> singles_;     // same positions; null: finished in this round
  std::vector<Operation*> groups_;
  std::vector<int> indices_;
  std::vector<MPI_Status> statuses_;
  int next_single_ = 0;                 // where the next round begins
  std::size_t next_group_ = 0;
  DeferredHandler deferred_;            // by the question that is being asked
};

// The one of this process. Never destroyed: workers may poll while static destructors run.
[[nodiscard]] Engine& engine() noexcept;

}  // namespace imbrex::mpi
