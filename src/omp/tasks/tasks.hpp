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

namespace imbrex::omp {

struct Taskgroup {
  Taskgroup* outer = nullptr;
  bool scoped = false;               // `scope` is open: tasks in it may be deferred
  bool of_work = false;              // belongs to a worksharing construct with task reductions
  std::atomic<bool> cancelled{false};
  std::vector<std::uintptr_t*> reductions;  // reductions.hpp
  detail::ScopeMemory scope;
};
Taskgroup& begin_taskgroup(Context& context);
void end_taskgroup(Context& context);  // Suspends.

// Whether new tasks of `context` shall not run.
[[nodiscard]] bool is_cancelled(const Context& context) noexcept;

// The flags that the compiler passes to GOMP_task and GOMP_taskloop.
namespace task_flag {
inline constexpr unsigned untied = 1, final = 2, mergeable = 4, depend = 8, priority = 16;
inline constexpr unsigned up = 0x100, grainsize = 0x200, if_clause = 0x400, nogroup = 0x800,
                          reduction = 0x1000, detach = 0x2000, strict = 0x4000;
}  // namespace task_flag

// The data of a task: copied by `copy`, or as bytes.
struct TaskData {
  Function function;
  void* data;
  void (*copy)(void* to, void* from);
  long bytes;
  long alignment;
};
struct TaskClauses {
  bool is_final = false;
  int priority = 0;
  void** depend = nullptr;
  void** detach = nullptr;
};
// Called with the task's own data before it can run.
using Adjust = void (*)(void* data, const void* argument);

// Creates a task that may run at any time from now on. A task that is not `deferrable`, or cheaper
// as a call, runs now, after its dependences. Suspends.
void begin_task(Context& context, const TaskData& data, const TaskClauses& clauses,
                bool deferrable, Adjust adjust, const void* argument);

// Turns an included task that is only a call of its creator into a task of the runtime. Called
// before it has children, or a scope.
void make_task(Context& context);

// depend.cpp: the compiler's array of dependences, each address once. Addresses that stand for
// named events become events, which live as long as this.
class Accesses {
 public:
  explicit Accesses(void** depend);
  ~Accesses();
  Accesses(const Accesses&) = delete;
  Accesses& operator=(const Accesses&) = delete;
  [[nodiscard]] std::span<detail::AccessSpec> span() noexcept { return {first_, count_}; }

 private:
  static constexpr std::size_t few = 8;  // number that needs no heap memory
  void add(void* const* from, std::size_t count, detail::AccessKind kind) noexcept;
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
void wait_for_accesses(void** depend);
// Waits until the events that the array names have fired. For code outside of parallel regions,
// whose tasks are complete already.
void wait_for_events(void** depend);

}  // namespace imbrex::omp
