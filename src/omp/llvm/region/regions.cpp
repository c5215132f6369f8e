// SPDX-License-Identifier: BSD-3-Clause
// Regions and barriers as LLVM's compilers call them. A region is one of team.cpp, whose function
// calls the compiler's. Teams of a host teams construct run one after the other.
#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "omp/region/ident.hpp"
#include "omp/llvm/region/microtask.hpp"
#include "omp/region/team.hpp"
#include "omp/tools/events.hpp"

namespace imbrex::omp {

namespace {

struct Call {
  Microtask function;
  int count;
  void** arguments;  // microtask_room at least
};

void call(const Call& made, const int number_in_team) {
  std::int32_t thread = initial().thread;
  std::int32_t number = number_in_team;
  void* unheard = nullptr;
  void** const frame = tools::on() ? tools::exit_frame() : &unheard;
  imbrex_call_microtask(made.function, &thread, &number, made.count, made.arguments, frame);
  *frame = nullptr;
}

// The value of a clause num_threads; 0, as without one, if it is no number of threads.
std::uint32_t number_in(const std::int32_t threads) noexcept {
  return static_cast<std::uint32_t>(std::max(threads, 0));
}

// The clauses that the compiler has passed for the next region; they count once.
struct Clauses {
  unsigned threads;
  unsigned bind;
};
Clauses take_clauses(Context& context) noexcept {
  return {std::exchange(context.next_threads, 0),
          std::exchange(context.next_bind, std::uint8_t{0})};
}

// The numbers for regions inside of the next region. They are there only if it has a number of
// threads of its own, too: so other regions need not look.
std::vector<int> take_inside(const Clauses& clauses) {
  if (clauses.threads == 0) [[likely]] return {};
  return std::exchange(initial().next_inside, {});
}

void fork(const Call& made) {
  const Clauses clauses = take_clauses(current());
  const Region region{
      [](void* const data) { call(*static_cast<const Call*>(data), current().number); },
      const_cast<Call*>(&made), clauses.threads, clauses.bind};
  std::vector<int> inside = take_inside(clauses);
  if (inside.empty()) [[likely]] return parallel(region);
  (void)parallel_prepared(
      region,
      [](Team& team, void* const listed) {
        list_threads(team, std::move(*static_cast<std::vector<int>*>(listed)));
      },
      &inside);
}

// The first number is for the next region, the others for regions inside of it.
void push_threads(const std::uint32_t length, const std::int32_t* const threads) {
  std::vector<int>& inside = initial().next_inside;
  inside.clear();
  current().next_threads = length != 0 ? number_in(threads[0]) : 0;
  if (current().next_threads == 0) return;
  for (std::uint32_t index = 1; index < length; ++index) {
    inside.push_back(std::max(threads[index], 1));
  }
}

// The arguments of a call with a variable number of them.
class Arguments {
 public:
  Arguments(const int count, std::va_list list) {
    if (count > few) outside_.reset(new void*[static_cast<std::size_t>(count)]);
    for (int index = 0; index < count; ++index) data()[index] = va_arg(list, void*);
  }
  [[nodiscard]] void** data() noexcept { return outside_ ? outside_.get() : inside_.data(); }

 private:
  static constexpr int few = 16;
  static_assert(few >= microtask_room);
  std::array<void*, few> inside_;
  std::unique_ptr<void*[]> outside_;
};

void begin_serial(Context& context) {
  (void)take_inside(take_clauses(context));
  begin_parallel({nullptr, nullptr, 1});
}

// What __kmpc_push_num_teams has passed for the next league, kept with the creating code.
struct League {
  int teams = 1;
  int thread_limit = 0;
};

void run_league(Context& context, const League& league, const Call& made) {
  Variables& variables = context.variables;
  const Variables before = variables;
  if (league.thread_limit > 0) variables.thread_limit = league.thread_limit;
  variables.teams = league.teams;
  for (int team = 0; team < league.teams; ++team) {
    variables.team_number = team;
    call(made, 0);
  }
  variables.teams = before.teams;
  variables.team_number = before.team_number;
  variables.thread_limit = before.thread_limit;
}

League take_league() noexcept {
  Initial& outside = initial();
  const int teams = std::exchange(outside.next_teams, 0);
  const int limit = std::exchange(outside.next_thread_limit, 0);
  return {teams > 0 ? teams : std::max(settings().teams_max, 1),
          limit > 0 ? limit : settings().teams_thread_limit};
}

// The compiler says in the flags which construct a barrier belongs to.
tools::Sync kind_at(const Ident* const where) noexcept {
  constexpr std::int32_t by_program = 0x20, by_construct = 0x40;
  const std::int32_t flags = where != nullptr ? where->flags : 0;
  if ((flags & by_construct) != 0) return tools::Sync::barrier_workshare;
  return (flags & by_program) != 0 ? tools::Sync::barrier_explicit
                                   : tools::Sync::barrier_implementation;
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

void __kmpc_begin(const Ident*, std::int32_t) {}
void __kmpc_end(const Ident*) {}
std::int32_t __kmpc_global_thread_num(const Ident*) { return initial().thread; }
std::int32_t __kmpc_global_num_threads(const Ident*) { return count_thread_numbers(); }
std::int32_t __kmpc_bound_thread_num(const Ident*) { return caller().number; }
std::int32_t __kmpc_bound_num_threads(const Ident*) { return caller().team->size; }
std::int32_t __kmpc_in_parallel(const Ident*) { return caller().team->active_level > 0 ? 1 : 0; }
std::int32_t __kmpc_ok_to_fork(const Ident*) { return 1; }

void __kmpc_fork_call(const Ident*, std::int32_t count, Microtask function, ...) {
  std::va_list list;
  va_start(list, function);
  Arguments arguments(count, list);
  va_end(list);
  tools::entered();
  fork({function, count, arguments.data()});
}

void __kmpc_fork_call_if(const Ident*, std::int32_t count, Microtask function,
                         std::int32_t condition, void* argument) {
  tools::entered();
  std::array<void*, microtask_room> arguments{argument};
  const Call made{function, argument != nullptr ? count : 0, arguments.data()};
  if (condition != 0) return fork(made);
  begin_serial(current());
  call(made, 0);
  end_parallel();
}

void __kmpc_serialized_parallel(const Ident*, std::int32_t) {
  tools::entered();
  begin_serial(current());
}
void __kmpc_end_serialized_parallel(const Ident*, std::int32_t) {
  tools::entered();
  end_parallel();
}

void __kmpc_push_num_threads(const Ident*, std::int32_t, std::int32_t threads) {
  current().next_threads = number_in(threads);
}
void __kmpc_push_num_threads_strict(const Ident*, std::int32_t, std::int32_t threads, int,
                                    const char*) {
  current().next_threads = number_in(threads);
}
void __kmpc_push_num_threads_list(const Ident*, std::int32_t, std::uint32_t length,
                                  const std::int32_t* threads) {
  push_threads(length, threads);
}
void __kmpc_push_num_threads_list_strict(const Ident*, std::int32_t, std::uint32_t length,
                                         const std::int32_t* threads, int, const char*) {
  push_threads(length, threads);
}
void __kmpc_pop_num_threads(const Ident*, std::int32_t) {}  // the clause counts once
void __kmpc_push_proc_bind(const Ident*, std::int32_t, int bind) {
  current().next_bind = static_cast<std::uint8_t>(bind & 7);
}
void __kmpc_set_thread_limit(const Ident*, std::int32_t, std::int32_t limit) {
  if (limit > 0) current().variables.thread_limit = limit;
}

void __kmpc_push_num_teams(const Ident*, std::int32_t, std::int32_t teams, std::int32_t threads) {
  Initial& outside = initial();
  outside.next_teams = std::max(teams, 0);
  outside.next_thread_limit = std::max(threads, 0);
}
void __kmpc_push_num_teams_51(const Ident*, std::int32_t, std::int32_t least, std::int32_t most,
                              std::int32_t threads) {
  Initial& outside = initial();
  outside.next_teams = std::max(most > 0 ? most : least, 0);
  outside.next_thread_limit = std::max(threads, 0);
}
void __kmpc_fork_teams(const Ident*, std::int32_t count, Microtask function, ...) {
  std::va_list list;
  va_start(list, function);
  Arguments arguments(count, list);
  va_end(list);
  Context& context = current();
  run_league(context, take_league(), {function, count, arguments.data()});
}

void __kmpc_barrier(const Ident* where, std::int32_t) {
  if (tools::on()) [[unlikely]] return barrier_heard(kind_at(where), tools::this_call());
  barrier(current());
}
std::int32_t __kmpc_cancel_barrier(const Ident* where, std::int32_t) {
  tools::entered();
  return barrier_or_cancelled(current(), kind_at(where)) ? 1 : 0;
}
// The master continues when all have come, and the others when it has called the end.
std::int32_t __kmpc_barrier_master(const Ident*, std::int32_t) {
  tools::entered();
  Context& context = current();
  barrier_told(context, tools::Sync::barrier_implementation);
  if (context.number == 0) return 1;
  barrier_told(context, tools::Sync::barrier_implementation);
  return 0;
}
void __kmpc_end_barrier_master(const Ident*, std::int32_t) {
  tools::entered();
  barrier_told(current(), tools::Sync::barrier_implementation);
}
std::int32_t __kmpc_barrier_master_nowait(const Ident*, std::int32_t) {
  tools::entered();
  Context& context = current();
  barrier_told(context, tools::Sync::barrier_implementation);
  return context.number == 0 ? 1 : 0;
}

}
#pragma GCC visibility pop
