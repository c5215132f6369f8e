// SPDX-License-Identifier: BSD-3-Clause
// Task reductions as LLVM's compilers call them: each thread of the team has copies of the
// variables, which the code that ends the taskgroup combines.
//
// A reduction of a region or a loop (the modifier `task`) has one set of copies for all members,
// and each member has a taskgroup that names its own variables. The last member to end its
// taskgroup combines, into its variables: all tasks that use the copies are complete then.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "base/arch.hpp"
#include "omp/environment/fatal.hpp"
#include "omp/region/ident.hpp"
#include "omp/region/share.hpp"
#include "omp/region/team.hpp"
#include "omp/sharing/work.hpp"
#include "omp/tasks/tasks.hpp"

namespace imbrex::omp {

namespace {

// The functions of the compiler for one variable. Older compilers' initialisers ignore `original`.
struct Functions {
  void (*initialise)(void* copy, void* original);
  void (*destroy)(void* copy);
  void (*combine)(void* into, void* copy);
};

// The compiler's descriptions of a variable: of LLVM before 9, and now.
struct OldInput {
  void* variable;
  std::size_t bytes;
  Functions functions;
  std::uint32_t flags;
};
struct Input {
  void* variable;
  void* original;
  std::size_t bytes;
  Functions functions;
  std::uint32_t flags;
};
Input input_of(const OldInput& old) noexcept {
  return {old.variable, nullptr, old.bytes, old.functions, old.flags};
}
Input input_of(const Input& input) noexcept { return input; }

// The copies of one variable, one for each thread.
struct Copies {
  std::size_t bytes;  // of one copy: whole cache lines
  void* original;
  Functions functions;
  std::byte* memory;
  // Whether a thread's copy is initialised. Only the thread uses its own, until all are combined.
  std::unique_ptr<bool[]> begun;
};

// The copies of all variables, for one taskgroup, or for one in each member of a team. Why no lock
// is needed:
// (1) `variables` is constant once others see it: it is filled before the taskgroup has tasks, or
// before the share that publishes it (Share::following, release) is appended.
// (2) A copy, and `begun` for it, belong to the thread with that number in the team. Tasks are
// tied, so no other thread touches them while tasks run.
// (3) A member's taskgroup ends when its tasks are complete, and only then subtracts itself from
// `users` (acq_rel). So the last one sees all that tasks have written to the copies, on every
// thread, and no task uses them any more: it combines and frees them.
// Stress test: tests/omp/by_hand.c.
struct TeamCopies {
  std::vector<Copies> variables;
  int threads;
  std::atomic<int> users{1};  // taskgroups that have not ended

  TeamCopies(int its_threads, std::size_t count) : threads(its_threads) {
    variables.reserve(count);
  }
  TeamCopies(const TeamCopies&) = delete;
  TeamCopies& operator=(const TeamCopies&) = delete;
  ~TeamCopies() {
    for (const Copies& copies : variables) {
      ::operator delete(copies.memory, std::align_val_t{base::cache_line_bytes});
    }
  }
};

}  // namespace

struct LlvmReductions {
  TeamCopies* team;
  std::vector<void*> variables;  // of the member that opened the taskgroup
};

namespace {

void add_copies(TeamCopies& team, const Input& input) {
  constexpr std::size_t line = base::cache_line_bytes;
  const auto threads = static_cast<std::size_t>(team.threads);
  const std::size_t bytes = (input.bytes + line - 1) / line * line;
  auto* const memory =
      static_cast<std::byte*>(::operator new(bytes * threads, std::align_val_t{line}));
  team.variables.push_back({bytes, input.original != nullptr ? input.original : input.variable,
                            input.functions, memory, std::make_unique<bool[]>(threads)});
}

template <class Given>
TeamCopies* make_copies(const int threads, const int count, const Given* const inputs) {
  auto team = std::make_unique<TeamCopies>(threads, static_cast<std::size_t>(count));
  for (int index = 0; index < count; ++index) add_copies(*team, input_of(inputs[index]));
  return team.release();
}

void* copy_of(Copies& copies, const std::size_t thread) {
  std::byte* const copy = copies.memory + thread * copies.bytes;
  if (!copies.begun[thread]) {
    copies.begun[thread] = true;
    if (copies.functions.initialise != nullptr) {
      copies.functions.initialise(copy, copies.original);
    } else {
      std::memset(copy, 0, copies.bytes);
    }
  }
  return copy;
}

// The calling thread's copy of a variable, which is named by its address or that of any copy.
void* find(const LlvmReductions& reductions, const void* const address, const std::size_t thread) {
  TeamCopies& team = *reductions.team;
  for (std::size_t index = 0; index < team.variables.size(); ++index) {
    Copies& copies = team.variables[index];
    const std::byte* const end =
        copies.memory + copies.bytes * static_cast<std::size_t>(team.threads);
    const bool is_copy = address >= copies.memory && address < end;
    if (is_copy || address == reductions.variables[index]) return copy_of(copies, thread);
  }
  return nullptr;
}

template <class Given>
void attach(Taskgroup& group, TeamCopies* const team, const int count, const Given* const inputs) {
  auto reductions = std::make_unique<LlvmReductions>();
  reductions->team = team;
  for (int index = 0; index < count; ++index) {
    reductions->variables.push_back(inputs[index].variable);
  }
  group.llvm = reductions.release();
}

template <class Given>
void* begin_reductions(const int count, const Given* const inputs) {
  Context& context = current();
  Taskgroup* const group = context.taskgroup;
  const int threads = context.team->size;
  if (group != nullptr && threads > 1 && count > 0) {
    attach(*group, make_copies(threads, count, inputs), count, inputs);
  }
  return group;
}

template <class Given>
void* begin_team_reductions(const int count, const Given* const inputs) {
  Implicit& member = implicit_of(current());
  Taskgroup& group = begin_taskgroup(member);
  const int threads = member.team->size;
  if (threads == 1 || count <= 0) return &group;
  if (go_on(member) == nullptr) {
    Share& mine = make_share({0, 0, 1, 0}, {Schedule::dynamic, 1});
    TeamCopies* const made = make_copies(threads, count, inputs);
    made->users.store(threads, std::memory_order_relaxed);
    mine.reduced = made;
    if (!go_on(member, mine)) delete made;
  }
  attach(group, static_cast<TeamCopies*>(member.share->reduced), count, inputs);
  return &group;
}

void combine(const LlvmReductions& reductions) {
  TeamCopies& team = *reductions.team;
  for (std::size_t index = 0; index < team.variables.size(); ++index) {
    const Copies& copies = team.variables[index];
    for (std::size_t thread = 0; thread < static_cast<std::size_t>(team.threads); ++thread) {
      if (!copies.begun[thread]) continue;
      void* const copy = copies.memory + thread * copies.bytes;
      copies.functions.combine(reductions.variables[index], copy);
      if (copies.functions.destroy != nullptr) copies.functions.destroy(copy);
    }
  }
}

void end_group() {
  Context& context = current();
  Taskgroup* const group = context.taskgroup;
  if (group == nullptr) return;
  const std::unique_ptr<LlvmReductions> reductions(group->llvm);
  end_taskgroup(context);
  // acq_rel: the last one sees the copies that all tasks have changed
  if (!reductions || reductions->team->users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  combine(*reductions);
  delete reductions->team;
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

void __kmpc_end_taskgroup(const Ident*, std::int32_t) {
  tools::entered();
  end_group();
}

void* __kmpc_task_reduction_init(std::int32_t, std::int32_t count, const OldInput* inputs) {
  return begin_reductions(count, inputs);
}
void* __kmpc_taskred_init(std::int32_t, std::int32_t count, const Input* inputs) {
  return begin_reductions(count, inputs);
}
void* __kmpc_task_reduction_modifier_init(const Ident*, std::int32_t, std::int32_t,
                                          std::int32_t count, const OldInput* inputs) {
  return begin_team_reductions(count, inputs);
}
void* __kmpc_taskred_modifier_init(const Ident*, std::int32_t, std::int32_t, std::int32_t count,
                                   const Input* inputs) {
  return begin_team_reductions(count, inputs);
}
void __kmpc_task_reduction_modifier_fini(const Ident*, std::int32_t, std::int32_t) { end_group(); }

void* __kmpc_task_reduction_get_th_data(std::int32_t, Taskgroup* innermost, void* address) {
  const Context& context = current();
  if (context.team->size == 1) return address;
  const auto thread = static_cast<std::size_t>(context.number);
  const Taskgroup* group = innermost != nullptr ? innermost : context.taskgroup;
  for (; group != nullptr; group = group->outer) {
    if (group->llvm == nullptr) continue;
    if (void* const copy = find(*group->llvm, address, thread)) return copy;
  }
  fatal("a task's reduction names %p, which is not reduced by a taskgroup around it", address);
}

}
#pragma GCC visibility pop
