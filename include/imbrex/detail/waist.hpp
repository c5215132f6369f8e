// SPDX-License-Identifier: BSD-3-Clause
// The narrow waist: the plain functions that the public headers reduce to, and that the plug-ins
// (mpi/, omp/) use too: tasks, and waiting. What plug-ins need beside it stands in three more
// headers, which no public header includes: plug_ins.hpp, groups.hpp, observation.hpp. Nothing else
// of the runtime is visible to them.
//
// Thread safety: unless a function says otherwise, any thread may call it.
#pragma once

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
  after,          // `address` is a Completion that must have completed
  everything,     // excludes all siblings with accesses, before and after; no address
  object_end,     // no access: `address` is the end of the object that the entry before names,
  range_end       // or of the range, which conflicts with all that it overlaps
};

struct AccessSpec {
  // A larger object has an entry of kind object_end behind its own.
  static constexpr std::size_t bytes_max = UINT16_MAX;
  const void* address;
  AccessKind kind;
  std::uint16_t bytes;  // of the object; 0: the next entry says where it ends

  AccessSpec() = default;  // nothing is written
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
  bool after_failure = false;  // runs although what it depends on has failed
};

// Both throw Error. `what` is the function that was given what it says.
[[noreturn]] void throw_null_access(const char* what);
[[noreturn]] void throw_long_range();

// The functions that the runtime calls for the memory that create() returned.
struct BodyOps {
  void (*run)(void* closure);               // runs the body, then destroys it; may throw
  void (*drop)(void* closure) noexcept;     // destroys a body that never ran
  void (*destroy)(void* closure) noexcept;  // destroys the result; null if there is nothing to do
  // The code that run() calls, where many kinds of tasks share one run(). Policies that learn by
  // kind ask for it.
  const void* (*code)(const void* closure) noexcept = nullptr;
  // Names what a plug-in may take out of the queues (take_ready()); null: nothing.
  const void* kind = nullptr;
};

// A task's memory: `bytes` for its closure, aligned to 64. The caller constructs the closure there,
// then calls submit(), or discard() if it could not. May let other tasks run first, when the
// caller is IMBREX_WINDOW tasks ahead. Suspends. Throws Error after shutdown. The first takes a
// `spec` without accesses, the second one with some, and throws Error if it names one address with
// two kinds.
[[nodiscard]] void* create(const TaskSpec& spec, const BodyOps& ops, std::size_t bytes);
[[nodiscard]] void* create_with_accesses(const TaskSpec& spec, const BodyOps& ops,
                                         std::size_t bytes);
void discard(void* closure) noexcept;

// Gives the task, from the function of the same kind above, to the scheduler. With `keep`, returns
// a reference that the caller owns; else nothing that may be used.
Completion* submit(void* closure, bool keep) noexcept;
Completion* submit_with_accesses(void* closure, bool keep);

void retain(Completion& completion) noexcept;
void release(Completion& completion) noexcept;

// ---- waiting ---------------------------------------------------------------------------------

// The kinds of things that a suspended task waits for. The kind says who could end the wait: where
// nobody can, the program is told at once (IMBREX_STALL_S is for the other kinds).
enum class WaitKind : std::uint8_t {
  event,       // that it fires: by any task, or by a thread that is no worker
  completion,  // that it completes: by whatever it belongs to
  children,    // the end of tasks that it has spawned; the next two, too
  finish,      // of those in a finish()
  end,         // of those that are left at the end of the program
  members,     // that other tasks come, to a phaser say: no thread can do that for them
  turn,        // nothing: others go first
  mpi          // an operation of MPI
};
// The word that reports use where there is no better one; an event or a call has a name of its own.
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
// Why a task is suspended, for reports. Lives on the waiting stack. `what` is a literal.
struct WaitReason {
  WaitKind kind;
  const char* what = text_of(kind);
  const Completion* completion = nullptr;  // of that kind
  int peer = -1;                           // of kind mpi, where the call has it; so are the next
  int tag = -1;
  std::size_t bytes = 0;
};

// True if this thread stands in a task (main included) and waiting would suspend that task.
[[nodiscard]] bool in_task() noexcept;

// True if that task is one that was spawned: not main, nor the code of another thread.
[[nodiscard]] bool in_spawned_task() noexcept;

// Suspends the running task until `event` fires. REQUIRES: in_task(), else throws Error. A thread
// of the program's own that waits is blocked instead.
void await(EventWord& event, const WaitReason& reason);

// As await(completion.event), but an unstarted task may be run in place.
void await(Completion& completion);

// Fires; the waiters become ready. REQUIRES: not fired before.
void fire(EventWord& event) noexcept;
// The same for an event of the program's: throws Error if it has fired before.
void fire_once(EventWord& event);

// The running task, once its body has ended, is complete only after `event` has fired.
// REQUIRES: in_spawned_task(); the event lives until it has fired.
void release_after(EventWord& event);
// The same for a completion, which may fail: then the task fails, as if its body had thrown that
// error.
void release_after(Completion& completion);
// Ends the running task's access to `address`: those that wait for it alone become ready. With
// `bytes`: to the range that was named with just these bounds.
void release_access(const void* address, std::size_t bytes = 0);
// That access ends when `event` fires, perhaps long after the task, which is complete, and its
// future ready, at the end of its body; a finish() around the task waits for both. Throws Error if
// the task did not declare it, or has released it. REQUIRES: the event lives until it has fired.
void release_access_after(EventWord& event, const void* address, std::size_t bytes = 0);
// The same for what may fail: then those who begin from what the access has left inherit that.
void release_access_after(Completion& completion, const void* address, std::size_t bytes = 0);

// True if a finish() is open around the code that runs: in the running task, or around it.
[[nodiscard]] bool in_finish() noexcept;
// The innermost of these ends only after `completion` has completed, even if the running task ends
// long before; if that fails, the finish() rethrows it. Throws Error if there is none.
void hold_finish(Completion& completion);

void yield();          // Suspends.
void wait_children();  // Suspends. Children, not their descendants; rethrows nothing.

// A finish scope on the stack of the running task. Opaque: the memory of a task::Scope.
struct alignas(64) ScopeMemory {
  std::byte bytes[128];
};
void open_scope(ScopeMemory& memory, const std::source_location& where);
// Suspends until all tasks of the scope and their descendants are complete; then returns the first
// exception among them, or null. All their failures count as taken.
[[nodiscard]] std::exception_ptr close_scope(ScopeMemory& memory) noexcept;
// The same for a scope whose body has thrown `error`, if it is not null, and throws that: what
// nobody has taken is printed.
void abandon_scope(ScopeMemory& memory, const std::exception_ptr& error) noexcept;
// The one that close_scope() would have to close first; null if the running task has none open.
[[nodiscard]] ScopeMemory* innermost_scope() noexcept;

// ---- completions that are no tasks -----------------------------------------------------------

// These make a completion that completes when all of `parts` have (its failure: their first), or
// when any has a value or all have failed. The caller owns the reference. join_any() throws Error
// if `parts` is empty.
[[nodiscard]] Completion* join_all(std::span<Completion* const> parts);
[[nodiscard]] Completion* join_any(std::span<Completion* const> parts);
// The value of such a completion, once it has fired: the position of the first part that has a
// value; 0 if all have failed.
[[nodiscard]] Slot<std::size_t>& joint_index(Completion& joint) noexcept;

// Why `completion`, which has fired, has no value; from now on that counts as taken. Null: it has
// one.
[[nodiscard]] std::exception_ptr take_failure(const Completion& completion) noexcept;
[[noreturn]] void rethrow_failure(const Completion& completion);  // REQUIRES: it has failed
// Whether the caller's future may move the value of `completion`, which is there, out: it is the
// only one, and no other can be made. Then it counts as taken out. Throws Error if it was taken out
// before, and, if the value is not `copyable`, where another future holds it.
[[nodiscard]] bool take_value(const Completion& completion, FutureCount<true>& futures,
                              bool copyable);
// Throws Error if take_value() has returned true before.
[[noreturn]] void throw_taken_out(const Completion& completion, const FutureCount<true>& futures);
inline void check_not_taken(const Completion& completion, const FutureCount<true>& futures) {
  if (futures.is_taken_out()) [[unlikely]] throw_taken_out(completion, futures);
}

// Promises are allocated by the public header. `destroy` is called at reference count zero.
struct PromiseState : Completion {
  std::atomic<std::uint32_t> holders{1};          // promises; at zero and unset: broken
  std::atomic<bool> taken{false};                 // someone has begun to set it
  bool plain = true;  // destroy() runs no destructor of the program's
  void (*destroy)(PromiseState& state) noexcept;  // deletes the whole
  const char* name;
  std::source_location where;
};
// Of kind `remote`. `describe` appends what reports shall say of it.
struct RemoteState : PromiseState {
  void (*describe)(const RemoteState& state, std::string& text);
};
// True once; then the caller stores the value or calls fail(), and then complete().
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
// The event that the name means now (trigger.hpp), which somebody waits for from here on. The
// caller owns the reference. Throws Error in a callback.
[[nodiscard]] Completion* name_event(const EventName& name, const std::source_location& where);
// Throws Error if that event has been triggered before.
void trigger(const EventName& name);

// An address that no object has can stand for a named event, where tasks name what they access by
// address (OpenMP's depend). REQUIRES: name.number is below 2^36, and no more than 2^16 texts are
// used.
inline constexpr std::uintptr_t name_address_mark = 0x1b4;  // its upper 12 bits
[[nodiscard]] const void* address_of(const EventName& name);
[[nodiscard]] inline bool is_name(const void* const address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) >> 52 == name_address_mark;
}
[[nodiscard]] EventName name_at(const void* address) noexcept;  // REQUIRES: from address_of()

struct ProgressSpec {
  int (*call)(void* argument);  // 0: not again; may throw
  void* argument;
  void (*destroy)(void* argument) noexcept;  // called once, after the last call; null: nothing
  std::source_location where;
};
// For the innermost finish() that the running task has open. Throws Error, and takes nothing over,
// if there is none.
void add_progress(const ProgressSpec& spec);

// ---- closures and values of the program --------------------------------------------------------

// A destructor of the program's has thrown where nobody can be told: that is printed at the end of
// the program, which fails. To be called in a catch clause.
void note_destructor() noexcept;

// Destroys `object`, where nobody can be told of what its destructor throws.
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

// Calls `call`, then destroys `function`, also if `call` throws. What the destructor throws is
// thrown on, after `undo`, unless `call` has thrown: that comes first.
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

// A copy of `text` that lives until the end of the program, the same for the same text. Throws
// std::bad_alloc.
[[nodiscard]] const char* keep_text(std::string_view text);

}  // namespace imbrex::detail

#pragma GCC visibility pop
