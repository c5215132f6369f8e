// SPDX-License-Identifier: BSD-3-Clause
// Explicit tasks, and their groups.
//
// Thread safety: the task that opened a Taskgroup changes its scope and reductions, before and
// after others are in it; any thread uses `cancelled`.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "omp/region/context.hpp"
#include "omp/tools/events.hpp"

namespace imbrex::omp {

struct LlvmReductions;  // llvm/tasks/reductions.cpp
struct LlvmTask;        // llvm_task.hpp
struct Ident;           // region/ident.hpp

struct Taskgroup {
  Taskgroup* outer = nullptr;
  bool scoped = false;               // `scope` is open: tasks in it may be deferred
  bool of_work = false;              // belongs to a worksharing construct with task reductions
  std::atomic<bool> cancelled{false};
  std::vector<std::uintptr_t*> reductions;  // reductions.hpp
  LlvmReductions* llvm = nullptr;           // owned by the code that ends the taskgroup
  detail::ScopeMemory scope;
};
Taskgroup& begin_taskgroup(Context& context);
void end_taskgroup(Context& context);  // Suspends.
void taskwait();                       // Suspends.
void taskyield();                      // Suspends.

// cancel and cancellation point; `which`: the construct, in GOMP_cancel()'s form. True: it ends.
bool cancel(int which);
[[nodiscard]] bool is_cancelled_at(int which);
// Whether new tasks of `context` shall not run.
[[nodiscard]] bool is_cancelled(const Context& context) noexcept;

// The flags that the compiler passes to GOMP_task and GOMP_taskloop.
namespace task_flag {
inline constexpr unsigned untied = 1, final = 2, mergeable = 4, depend = 8, priority = 16;
inline constexpr unsigned up = 0x100, grainsize = 0x200, if_clause = 0x400, nogroup = 0x800,
                          reduction = 0x1000, detach = 0x2000, strict = 0x4000;
}  // namespace task_flag
// As a tool hears of them; untied tasks are tied here, but the tool hears of the program's clause.
[[nodiscard]] constexpr unsigned told_flags(const unsigned flags) noexcept {
  return ((flags & task_flag::untied) != 0 ? tools::task_flag::untied : 0) |
         ((flags & task_flag::mergeable) != 0 ? tools::task_flag::mergeable : 0);
}
// The construct of GOMP_cancel() as a tool hears of it.
[[nodiscard]] constexpr int told_cancel(const int which) noexcept {
  constexpr int loop = 2, sections = 4, taskgroup = 8;
  if ((which & loop) != 0) return tools::cancel_flag::loop;
  if ((which & sections) != 0) return tools::cancel_flag::sections;
  return (which & taskgroup) != 0 ? tools::cancel_flag::taskgroup : tools::cancel_flag::parallel;
}

// A dependence in the form of LLVM's compilers.
struct LlvmDepend {
  enum Flags : std::uint8_t { in = 1, out = 2, mutexinoutset = 4, inoutset = 8, all = 0x80 };
  void* address;  // all bits set: omp_all_memory
  std::size_t bytes;
  std::uint8_t flags;
};
// The dependences of a task, in one of both forms. Refers to the compiler's arrays.
struct Depends {
  void** gnu = nullptr;  // depend.cpp describes it
  std::array<std::span<const LlvmDepend>, 2> llvm = {};
  [[nodiscard]] bool any() const noexcept {
    return gnu != nullptr || !llvm[0].empty() || !llvm[1].empty();
  }
};

// The state of a detach(event) clause. The task owns one reference until it has begun, the event
// owns one until it is fulfilled.
struct Detached {
  detail::EventWord event;
  std::atomic<int> references{2};
  std::atomic<bool> fulfilled{false};
  tools::TaskRecord* record = nullptr;  // of the task, for a tool
};
void fulfill(Detached& detached);  // Ends the program if that event was fulfilled before.

// The data of a task: copied by `copy`, or as bytes.
struct TaskData {
  Function function;
  void* data;
  void (*copy)(void* to, void* from);
  long bytes;
  long alignment;
  bool owned = false;  // the function is called even if the task is cancelled: it frees the data
};
struct TaskClauses {
  bool is_final = false;
  int priority = 0;
  Depends depend = {};
  Detached* detached = nullptr;
  const Ident* where = nullptr;  // only a queued task needs the place that it names
};
// Called with the task's own data before it can run.
using Adjust = void (*)(void* data, const void* argument);

// Creates a task that may run at any time from now on. A task that is not `deferrable`, or cheaper
// as a call, runs now, after its dependences. Suspends.
void begin_task(Context& context, const TaskData& data, const TaskClauses& clauses,
                bool deferrable, Adjust adjust, const void* argument);
// begin_task() for a deferrable task of LLVM's compilers without clauses, which the calling code
// creates, and of which no tool hears: on() has been asked. It does as little else as possible.
void begin_plain(LlvmTask& task, const Ident* where);

// A task that runs at its creation.
struct Included : Context {
  explicit Included(const Context& context) noexcept : Context(context) {}
  detail::Entered entered;  // unless the task is a call
  Context* outer;           // the code that it runs in, and the task that was innermost there
  Context* before;
  detail::ScopeMemory* scope;
  bool may_open;
};
// Between these calls, on one thread, the calling code is a task that has been created in
// `context`.
[[nodiscard]] std::unique_ptr<Included> begin_included(Context& context, bool is_final);
void end_included(Included& task);

// Turns an included task that is only a call of its creator into a task of the runtime. Called
// before it has children, or a scope.
void make_task(Context& context);

// Creates an empty task with these dependences, for a taskwait that does not wait.
void defer_empty(Context& context, const Depends& depend);

// depend.cpp: the compiler's dependences, each address once. Addresses that stand for
// named events become events, which live as long as this.
class Accesses {
 public:
  enum class Form { as_given };  // with each address as often as it is given, and no events
  explicit Accesses(const Depends& depend);
  Accesses(const Depends& depend, Form form);
  ~Accesses();
  Accesses(const Accesses&) = delete;
  Accesses& operator=(const Accesses&) = delete;
  [[nodiscard]] std::span<detail::AccessSpec> span() noexcept { return {first_, count_}; }

 private:
  static constexpr std::size_t few = 8;  // number that needs no heap memory
  void make_room(std::size_t count);
  void add(void* const* from, std::size_t count, detail::AccessKind kind) noexcept;
  void add_gnu(void** depend);
  void add_llvm(std::span<const LlvmDepend> depends) noexcept;
  [[nodiscard]] bool is_plain() const noexcept;
  void unite() noexcept;
  void find_everything() noexcept;
  void find_events();

  std::array<detail::AccessSpec, few> inside_;
  std::unique_ptr<detail::AccessSpec[]> outside_;
  detail::AccessSpec* first_ = inside_.data();
  std::size_t count_ = 0;
  bool has_events_ = false;
};
// Suspends until the children that the array names are complete, and its events have fired.
void wait_for_accesses(const Depends& depend);
// Waits until the events that the array names have fired. For code outside of parallel regions,
// whose tasks are complete already.
void wait_for_events(const Depends& depend);
// wait_for_accesses() in a parallel region, else wait_for_events(). Does nothing where `context`
// has queued no child with dependences, and no event can have a name.
void wait_for(const Context& context, const Depends& depend);
// wait_for(), of which a tool hears as of a task with these dependences.
void taskwait_depend(const Context& context, const Depends& depend);
// The dependences as a tool hears of them, in the compiler's order.
[[nodiscard]] std::vector<tools::Dependence> told(const Depends& depend);

}  // namespace imbrex::omp
