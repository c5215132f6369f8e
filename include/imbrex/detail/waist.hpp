// SPDX-License-Identifier: BSD-3-Clause
// The narrow waist: the plain functions that the public headers reduce to, and that the plug-ins
// (mpi/, omp/) use, too: tasks, and waiting. Three more headers are for plug-ins only, and no
// public header includes them: plug_ins.hpp, groups.hpp, observation.hpp. Plug-ins see nothing else
// of the runtime.
//
// Thread safety: unless a function says otherwise, any thread may call it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "imbrex/detail/completion.hpp"

#pragma GCC visibility push(default)

namespace imbrex::detail {

// ---- tasks -----------------------------------------------------------------------------------

enum class AccessKind : std::uint8_t {
  in,             // reads
  out,            // writes; ordered like inout, as in OpenMP
  inout,          // reads and writes
  mutexinoutset,  // any order among neighbours of this kind, one at a time
  inoutset,       // any order among neighbours of this kind, together
  after,          // `address` is a Completion that must be complete
  everything,     // excludes all siblings with accesses, before and after; no address
  object_end,     // no access: `address` is the end of the object that the entry before names
  range_end       // no access: `address` is the end of the range of the entry before, which
                  // conflicts with all overlapping accesses
};

struct AccessSpec {
  // A larger object has an entry of kind object_end after its own.
  static constexpr std::size_t bytes_max = UINT16_MAX;
  const void* address;
  AccessKind kind;
  std::uint16_t bytes;  // bytes of the object; 0: the next entry has its end

  AccessSpec() = default;  // leaves the fields uninitialised
  constexpr AccessSpec(const void* its_address, AccessKind its_kind,
                       std::uint16_t its_bytes = 1) noexcept
      : address(its_address), kind(its_kind), bytes(its_bytes) {}
};

struct TaskSpec {
  const char* name;  // not copied: a string literal, or from keep_text()
  std::source_location where;
  int priority = 0;
  bool tied = false;
  std::span<const AccessSpec> accesses = {};
  bool distinct = false;  // the caller knows that no address is given twice
  bool after_failure = false;  // runs although a task that it depends on has failed
  bool decides = false;        // iterate.hpp
};

// Throw Error. `what` is the function whose argument is wrong.
[[noreturn]] void throw_null_access(const char* what);
[[noreturn]] void throw_long_range();

// How the closure of a task in the graph of a loop (iterate.hpp) runs once in each iteration.
struct RepeatOps {
  void (*run)(void* closure);  // runs the body, and keeps it; may throw
  // What the body has captured, if it can be compared byte by byte; clears what lies between its
  // members.
  std::span<const std::byte> (*captured)(void* closure) noexcept;
};

// The functions that the runtime calls for memory from create().
struct BodyOps {
  void (*run)(void* closure);               // runs the body, then destroys it; may throw
  void (*drop)(void* closure) noexcept;     // destroys a body that never ran
  void (*destroy)(void* closure) noexcept;  // destroys the result; null if the result needs none
  // Returns the code that run() calls, where many kinds of tasks share one run(). Policies that
  // learn by kind call it.
  const void* (*code)(const void* closure) noexcept = nullptr;
  // Marks tasks that a plug-in may take out of the queues (take_ready()); null: none.
  const void* kind = nullptr;
  const RepeatOps* repeat = nullptr;  // null: the task cannot be part of such a graph
};

// Returns the memory of a task: `bytes` for its closure, aligned to 64. The caller constructs the
// closure there, then calls submit(), or discard() if the construction failed. Suspends if the
// caller is IMBREX_TASKS_AHEAD tasks ahead: other tasks then run first. Throws Error after
// shutdown. create() takes a `spec` without accesses. create_with_accesses() takes one with
// accesses, and throws Error if it names one address with two kinds.
[[nodiscard]] void* create(const TaskSpec& spec, const BodyOps& ops, std::size_t bytes);
[[nodiscard]] void* create_with_accesses(const TaskSpec& spec, const BodyOps& ops,
                                         std::size_t bytes);
void discard(void* closure) noexcept;

// Gives the task, from the matching function above, to the scheduler. With `keep`, returns a
// reference that the caller owns; otherwise the result must not be used.
Completion* submit(void* closure, bool keep) noexcept;
Completion* submit_with_accesses(void* closure, bool keep);

void retain(Completion& completion) noexcept;
void release(Completion& completion) noexcept;

// ---- waiting ---------------------------------------------------------------------------------

// The kinds of waits of a suspended task. The kind says which code can end the wait: where none
// can, the program is told at once (IMBREX_STALL_S is for the other kinds).
enum class WaitKind : std::uint8_t {
  event,       // an event: any task, or a thread that is no worker, fires it
  completion,  // a completion: its task or promise completes it
  children,    // the end of the task's children
  finish,      // the end of the tasks of a finish()
  end,         // the end of the tasks that are left at the end of the program
  members,     // the arrival of other tasks, at a phaser say: only tasks can do that
  turn,        // no event: other tasks go first
  mpi          // an operation of MPI
};
// The word that reports use where there is no better one; events and calls have their own names.
[[nodiscard]] constexpr const char* text_of(const WaitKind kind) noexcept {
  switch (kind) {
    case WaitKind::event: return "event";
    case WaitKind::completion: return "future";
    case WaitKind::children: return "taskwait";
    case WaitKind::finish: return "finish";
    case WaitKind::end: return "end of the program";
    case WaitKind::members: return "other tasks to come";
    case WaitKind::turn: return "yield";
    case WaitKind::mpi: return "MPI";
  }
  return "?";
}
// The reason of a suspension, for reports. Lives on the waiting stack. `what` is a literal.
struct WaitReason {
  WaitKind kind;
  const char* what = text_of(kind);
  const Completion* completion = nullptr;  // for kind completion
  int peer = -1;                           // for kind mpi, where the call has it; so are the next
                                           // fields
  int tag = -1;
  std::size_t bytes = 0;
  std::uint64_t communicator = 0;          // its handle, as a number
};

// True if this thread runs a task (main included) and a wait would suspend that task.
[[nodiscard]] bool in_task() noexcept;

// True if the running task was spawned: it is not main, nor the code of another thread.
[[nodiscard]] bool in_spawned_task() noexcept;

// Suspends the running task until `event` fires. REQUIRES: in_task(), else throws Error. A thread
// of the program that is no worker blocks.
void await(EventWord& event, const WaitReason& reason);

// await(completion.event); but a task that has not begun may run in place.
void await(Completion& completion);
// A trace records each wait for a completion, also for one that is complete. Written before other
// threads run.
extern std::atomic<bool> records_waits;

// Fires the event; the waiters become ready. REQUIRES: not fired before.
void fire(EventWord& event) noexcept;
// fire() for an event of the program: throws Error if it has fired before.
void fire_once(EventWord& event);

// The running task, once its body has ended, is complete only after `event` has fired.
// REQUIRES: in_spawned_task(); the event lives until it has fired.
void release_after(EventWord& event);
// release_after() for a completion, which may fail: the task then fails with the same error.
void release_after(Completion& completion);
// Ends the running task's access to `address`: tasks that wait only for it become ready. With
// `bytes`: to the range that was named with exactly these bounds.
void release_access(const void* address, std::size_t bytes = 0);
// Ends that access when `event` fires, perhaps long after the task. The task itself is complete,
// and its future ready, at the end of its body; a finish() around the task waits for both. Throws
// Error if the task did not declare the access, or has released it. REQUIRES: the event lives until
// it has fired.
void release_access_after(EventWord& event, const void* address, std::size_t bytes = 0);
// release_access_after() for a completion, which may fail: tasks that begin from the access then
// fail, too.
void release_access_after(Completion& completion, const void* address, std::size_t bytes = 0);

// True if a finish() is open in the running task, or around it.
[[nodiscard]] bool in_finish() noexcept;
// The innermost open finish() ends only after `completion` has completed, even if the running task
// ends long before. If `completion` fails, the finish() rethrows the failure. Throws Error if no
// finish() is open.
void hold_finish(Completion& completion);

void yield();          // Suspends.
void wait_children();  // Suspends. Children, not their descendants; rethrows nothing.

// A finish scope on the stack of the running task. Opaque: the memory of a task::Scope.
struct alignas(64) ScopeMemory {
  std::byte bytes[128];
};
void open_scope(ScopeMemory& memory, const std::source_location& where);
// Suspends until all tasks of the scope and their descendants are complete; then returns their
// first exception, or null. All their failures count as taken.
[[nodiscard]] std::exception_ptr close_scope(ScopeMemory& memory) noexcept;
// Closes a scope whose body has thrown `error`, if that is not null, and throws it. Failures of
// tasks that no get() has rethrown are printed.
void abandon_scope(ScopeMemory& memory, const std::exception_ptr& error) noexcept;
// The innermost open scope of the running task, which close_scope() must close first; null if there
// is none.
[[nodiscard]] ScopeMemory* innermost_scope() noexcept;

// ---- completions that are no tasks -----------------------------------------------------------

// join_all() makes a completion that completes when all `parts` have; its failure is their first.
// join_any() makes one that completes when a part has a value or all have failed. The caller owns
// the reference. join_any() throws Error if `parts` is empty.
[[nodiscard]] Completion* join_all(std::span<Completion* const> parts);
[[nodiscard]] Completion* join_any(std::span<Completion* const> parts);
// The value of such a completion, once it has fired: the position of the first part with a value; 0
// if all have failed.
[[nodiscard]] Slot<std::size_t>& joint_index(Completion& joint) noexcept;

// The reason why `completion`, which has fired, has no value; it counts as taken from now on. Null:
// it has a value.
[[nodiscard]] std::exception_ptr take_failure(const Completion& completion) noexcept;
[[noreturn]] void rethrow_failure(const Completion& completion);  // REQUIRES: it has failed
// Whether the caller's future may move the value of the fired `completion` out: it is the only
// future, and no other can be made. The value then counts as taken out. Throws Error if it was
// taken out before, and where another future holds a value that is not `copyable`.
[[nodiscard]] bool take_value(const Completion& completion, FutureCount<true>& futures,
                              bool copyable);
// Throws Error if take_value() has returned true before.
[[noreturn]] void throw_taken_out(const Completion& completion, const FutureCount<true>& futures);
inline void check_not_taken(const Completion& completion, const FutureCount<true>& futures) {
  if (futures.is_taken_out()) [[unlikely]] throw_taken_out(completion, futures);
}

// Promises are allocated by the public header. `destroy` is called at reference count zero.
struct PromiseState : Completion {
  std::atomic<std::uint32_t> holders{1};          // number of promises; at zero and not set: broken
  std::atomic<bool> taken{false};                 // a thread has begun to set it
  bool plain = true;  // destroy() runs no destructor of the program
  void (*destroy)(PromiseState& state) noexcept;  // deletes the complete object
  const char* name;
  std::source_location where;
};
// A completion of kind `remote`. `describe` appends its description for reports.
struct RemoteState : PromiseState {
  void (*describe)(const RemoteState& state, std::string& text);
};
// True once; the caller then stores the value or calls fail(), and then complete().
[[nodiscard]] bool take(PromiseState& state) noexcept;
void fail(PromiseState& state, std::exception_ptr error) noexcept;
void complete(PromiseState& state) noexcept;
[[noreturn]] void throw_set_twice(const PromiseState& state);
[[noreturn]] void throw_no_exception(const PromiseState& state, const char* call);
void drop_holder(PromiseState& state) noexcept;

// ---- named events ----------------------------------------------------------------------------

struct EventName {
  std::string_view text;
  std::int64_t number = 0;
};
// The event that the name means now (trigger.hpp), marked as waited for. The caller owns the
// reference. Throws Error in a callback.
[[nodiscard]] Completion* name_event(const EventName& name, const std::source_location& where);
// Throws Error if that event has been triggered before.
void trigger(const EventName& name);

// An address that no object has can stand for a named event, where tasks name their accesses by
// address (OpenMP's depend). REQUIRES: name.number is below 2^36, and at most 2^16 texts are used.
inline constexpr std::uintptr_t name_address_mark = 0x1b4;  // its upper 12 bits
[[nodiscard]] const void* address_of(const EventName& name);
[[nodiscard]] inline bool is_name(const void* const address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) >> 52 == name_address_mark;
}
[[nodiscard]] EventName name_at(const void* address) noexcept;  // REQUIRES: from address_of()

struct ProgressSpec {
  int (*call)(void* argument);  // 0: do not call again; may throw
  void* argument;
  void (*destroy)(void* argument) noexcept;  // called once, after the last call; null: no call
  std::source_location where;
};
// Registers a progress function for the innermost finish() of the running task. Throws Error, and
// takes nothing over, if there is none.
void add_progress(const ProgressSpec& spec);

// ---- closures and values of the program --------------------------------------------------------

// Call it in a catch clause: a destructor of the program has thrown where no caller can be told.
// The error is printed at the end of the program, which fails.
void note_destructor() noexcept;

// Destroys `object` where no caller can be told of an exception of its destructor.
template <class T>
void destroy_object(T& object) noexcept {
  if constexpr (std::is_nothrow_destructible_v<T>) {
    object.~T();
  } else {
    try {
      object.~T();
    } catch (...) {
      note_destructor();
    }
  }
}

// Calls `call`, then destroys `function`, also if `call` throws. An exception of the destructor is
// rethrown, after `undo`, unless `call` has thrown.
template <class F, class Call, class Undo>
void call_once(F& function, const Call call, const Undo undo) {
  if constexpr (std::is_nothrow_destructible_v<F>) {
    struct Destroy {
      F& function;
      ~Destroy() { function.~F(); }
    } destroy{function};
    call();
  } else {
    try {
      call();
    } catch (...) {
      destroy_object(function);
      throw;
    }
    try {
      function.~F();
    } catch (...) {
      undo();
      throw;
    }
  }
}

// ---- texts -----------------------------------------------------------------------------------

// A copy of `text` that lives until the end of the program; equal texts share one copy. Throws
// std::bad_alloc.
[[nodiscard]] const char* keep_text(std::string_view text);

}  // namespace imbrex::detail

#pragma GCC visibility pop
