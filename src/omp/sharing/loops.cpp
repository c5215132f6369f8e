// SPDX-License-Identifier: BSD-3-Clause
// Loops: the functions that compilers call. Each schedule has its own names for `long`
// (`GOMP_loop_*`) and `unsigned long long` (`GOMP_loop_ull_*`); all call start() and next().
#include "omp/sharing/work.hpp"

#include <cstdarg>
#include <cstdlib>

#include "omp/region/gate.hpp"
#include "omp/tasks/reductions.hpp"
#include "omp/region/team.hpp"
#include "omp/region/doacross.hpp"
#include "omp/region/share.hpp"
#include "omp/tools/events.hpp"

namespace imbrex::omp {

Plan plan_of(const Schedule schedule, const std::uint64_t chunk) {
  switch (schedule) {
    case Schedule::runtime: {
      const Variables& variables = caller().variables;
      const auto given = static_cast<std::uint64_t>(variables.chunk);
      if (variables.schedule == Schedule::automatic) return {Schedule::by_blocks, 0};
      if (variables.schedule == Schedule::trapezoidal) return plan_of(Schedule::guided, given);
      const bool blocks = variables.schedule == Schedule::by_blocks;
      return {variables.schedule, given == 0 && !blocks ? 1 : given};
    }
    case Schedule::automatic: return {Schedule::by_blocks, 0};
    case Schedule::by_blocks: return {schedule, chunk};
    default: return {schedule, chunk == 0 ? 1 : chunk};
  }
}

Share& make_share(const Iterations& iterations, const Plan plan) {
  auto* const share = new Share;
  share->iterations = iterations;
  share->schedule = plan.schedule;
  share->chunk = plan.chunk;
  return *share;
}

void begin_loop(Implicit& member, const Iterations& iterations, const Plan plan) {
  if (go_on(member) == nullptr) (void)go_on(member, make_share(iterations, plan));
  if (tools::on()) [[unlikely]] tell_begin(*member.share);
}

void end_loop_heard(const tools::Call call) {
  tools::enter(call);
  tools::end_loop();
  barrier_told(current(), tools::Sync::barrier_workshare);
}

void wait_for_turn(const Implicit& member) {
  std::atomic<std::uint64_t>& turn = member.share->turn;
  if (tools::on()) [[unlikely]] tools::acquire(tools::Mutex::ordered, &turn);
  if (member.begin != member.end) {  // else: a region of its own, or one iteration at a time
    wait_until(&turn, "ordered", [&] {
      return turn.load(std::memory_order_acquire) == member.begin;
    });
  }
  if (tools::on()) [[unlikely]] tools::acquired(tools::Mutex::ordered, &turn);
}

void end_turn() {
  if (!tools::on()) [[likely]] return;
  tools::released(tools::Mutex::ordered, &implicit_of(current()).share->turn);
}

namespace {

// The last but one of the 32 bits of an `omp_sched_t` may say "monotonic"; every loop here is.
Plan plan_of(const long schedule, const std::uint64_t chunk) {
  return plan_of(static_cast<Schedule>(schedule & 7), chunk);
}

// Returns true: it ends next(), so that the usual way needs no register for it.
[[gnu::cold, gnu::noinline]] bool tell_chunk(const std::uint64_t first, const std::uint64_t count) {
  tools::dispatch_chunk(tools::Dispatch::loop_chunk, first, count);
  return true;
}

template <class T>
bool next(Implicit& member, const bool ordered, T* const begin, T* const end) {
  Share& share = *member.share;
  Chunk chunk{};
  const bool some = ordered ? next_ordered_chunk(member, share, chunk)
                            : next_chunk(member, share, chunk);
  if (!some) return false;
  *begin = static_cast<T>(share.iterations.value(chunk.begin));
  *end = static_cast<T>(share.iterations.value(chunk.end));
  if (tools::on()) [[unlikely]] {
    return tell_chunk(static_cast<std::uint64_t>(*begin), chunk.end - chunk.begin);
  }
  return true;
}

template <class T>
bool next(const bool ordered, T* const begin, T* const end) {
  return next(implicit_of(current()), ordered, begin, end);
}

template <class T>
bool start(const Iterations& iterations, const Plan plan, const bool ordered, T* const begin,
           T* const end) {
  Implicit& member = implicit_of(current());
  begin_loop(member, iterations, plan);
  return next(member, ordered, begin, end);
}

// The extras of a loop beside its iterations: task reductions, and memory that the members share.
// `*memory` is its size on the way in, and its address on the way out.
struct Extras {
  std::uintptr_t* reductions;
  void** memory;
};

void start_with(Implicit& member, Share& mine, const Extras& extras) {
  if (extras.memory != nullptr) {
    mine.memory = std::calloc(1, reinterpret_cast<std::size_t>(*extras.memory));
  }
  if (extras.reductions != nullptr) prepare_reductions(member, mine, extras.reductions);
  const bool first = go_on(member, mine);
  if (tools::on()) [[unlikely]] tell_begin(*member.share);
  if (extras.reductions != nullptr) join_reductions(member, extras.reductions, first);
  if (extras.memory != nullptr) *extras.memory = member.share->memory;
}

template <class T>
bool start(const Iterations& iterations, const Plan plan, const bool ordered, T* const begin,
           T* const end, const Extras& extras) {
  Implicit& member = implicit_of(current());
  start_with(member, make_share(iterations, plan), extras);
  return begin == nullptr || next(member, ordered, begin, end);
}

Share* presented(const Iterations& iterations, const Plan plan) {
  return &make_share(iterations, plan);
}

// ---- doacross --------------------------------------------------------------------------------

template <class T>
bool start_doacross(const unsigned count, const T* const counts, const Plan plan, T* const begin,
                    T* const end, const Extras& extras) {
  Implicit& member = implicit_of(current());
  const auto outermost = static_cast<std::uint64_t>(counts[0]);
  Share& mine = make_share({0, outermost, 1, outermost}, plan);
  mine.doacross = new Doacross;
  mine.doacross->counts.assign(counts, counts + count);
  mine.doacross->posted.reset(new std::atomic<std::uint64_t>[outermost]{});
  start_with(member, mine, extras);
  return begin == nullptr || next(member, false, begin, end);
}

// The number of finished iterations of the inner loops once the given one is done: its number plus
// one. The innermost loop counts fastest.
template <class Next>
std::uint64_t done_by(const Doacross& doacross, Next next_index) {
  std::uint64_t number = 0;
  for (std::size_t loop = 1; loop < doacross.counts.size(); ++loop) {
    number = number * doacross.counts[loop] + next_index();
  }
  return number + 1;
}

template <class T>
void post(const T* counts) {
  const Implicit& member = implicit_of(current());
  Doacross* const doacross = member.share->doacross;
  if (doacross == nullptr || member.team->size == 1) return;
  std::atomic<std::uint64_t>& posted = doacross->posted[static_cast<std::uint64_t>(*counts)];
  posted.store(done_by(*doacross, [&] { return static_cast<std::uint64_t>(*++counts); }),
               std::memory_order_release);
  wake_all(&posted);
}

template <class T>
void wait_posted(const T first, std::va_list rest) {
  const Implicit& member = implicit_of(current());
  Doacross* const doacross = member.share->doacross;
  if (doacross == nullptr || member.team->size == 1) return;
  const std::uint64_t wanted =
      done_by(*doacross, [&] { return static_cast<std::uint64_t>(va_arg(rest, T)); });
  std::atomic<std::uint64_t>& posted = doacross->posted[static_cast<std::uint64_t>(first)];
  wait_until(&posted, "ordered depend(sink)",
             [&] { return posted.load(std::memory_order_acquire) >= wanted; });
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

// A schedule with a chunk: start and next, for both types of loop variable.
#define IMBREX_OMP_LOOP(name, schedule, ordered)                                                  \
  bool GOMP_loop_##name##_start(long from, long to, long step, long chunk, long* begin,           \
                                long* end) {                                                      \
    tools::entered();                                                                             \
    return start(iterations_of(from, to, step),                                                   \
                 plan_of(schedule, static_cast<std::uint64_t>(chunk)), ordered, begin, end);      \
  }                                                                                               \
  bool GOMP_loop_##name##_next(long* begin, long* end) { return next(ordered, begin, end); }      \
  bool GOMP_loop_ull_##name##_start(bool up, Ull from, Ull to, Ull step, Ull chunk, Ull* begin,   \
                                    Ull* end) {                                                   \
    tools::entered();                                                                             \
    return start(iterations_of(up, from, to, step), plan_of(schedule, chunk), ordered, begin,     \
                 end);                                                                            \
  }                                                                                               \
  bool GOMP_loop_ull_##name##_next(Ull* begin, Ull* end) { return next(ordered, begin, end); }

// schedule(runtime).
#define IMBREX_OMP_RUNTIME_LOOP(name, ordered)                                                    \
  bool GOMP_loop_##name##_start(long from, long to, long step, long* begin, long* end) {          \
    tools::entered();                                                                             \
    return start(iterations_of(from, to, step), plan_of(Schedule::runtime, 0), ordered, begin,    \
                 end);                                                                            \
  }                                                                                               \
  bool GOMP_loop_##name##_next(long* begin, long* end) { return next(ordered, begin, end); }      \
  bool GOMP_loop_ull_##name##_start(bool up, Ull from, Ull to, Ull step, Ull* begin, Ull* end) {  \
    tools::entered();                                                                             \
    return start(iterations_of(up, from, to, step), plan_of(Schedule::runtime, 0), ordered,       \
                 begin, end);                                                                     \
  }                                                                                               \
  bool GOMP_loop_ull_##name##_next(Ull* begin, Ull* end) { return next(ordered, begin, end); }

#define IMBREX_OMP_PARALLEL_LOOP(name, schedule)                                                  \
  void GOMP_parallel_loop_##name(Function function, void* data, unsigned threads, long from,      \
                                 long to, long step, long chunk, unsigned flags) {                \
    tools::entered();                                                                             \
    const Plan plan = plan_of(schedule, static_cast<std::uint64_t>(chunk));                       \
    parallel({function, data, threads, flags,                                                     \
              presented(iterations_of(from, to, step), plan)});                                   \
  }

#define IMBREX_OMP_PARALLEL_RUNTIME_LOOP(name)                                                    \
  void GOMP_parallel_loop_##name(Function function, void* data, unsigned threads, long from,      \
                                 long to, long step, unsigned flags) {                            \
    tools::entered();                                                                             \
    parallel({function, data, threads, flags,                                                     \
              presented(iterations_of(from, to, step), plan_of(Schedule::runtime, 0))});          \
  }

// The calls of GCC before 4.9: the caller itself executes its part.
#define IMBREX_OMP_PARALLEL_LOOP_START(name, schedule)                                            \
  void GOMP_parallel_loop_##name##_start(Function function, void* data, unsigned threads,         \
                                         long from, long to, long step, long chunk) {             \
    tools::entered();                                                                             \
    const Plan plan = plan_of(schedule, static_cast<std::uint64_t>(chunk));                       \
    begin_parallel({function, data, threads, 0,                                                   \
                    presented(iterations_of(from, to, step), plan)});                             \
  }

#define IMBREX_OMP_DOACROSS(name, schedule)                                                       \
  bool GOMP_loop_doacross_##name##_start(unsigned count, long* counts, long chunk, long* begin,   \
                                         long* end) {                                             \
    tools::entered();                                                                             \
    return start_doacross(count, counts,                                                          \
                          plan_of(schedule, static_cast<std::uint64_t>(chunk)), begin, end, {});  \
  }                                                                                               \
  bool GOMP_loop_ull_doacross_##name##_start(unsigned count, Ull* counts, Ull chunk, Ull* begin,  \
                                             Ull* end) {                                          \
    tools::entered();                                                                             \
    return start_doacross(count, counts, plan_of(schedule, chunk), begin, end, {});               \
  }

IMBREX_OMP_LOOP(static, Schedule::by_blocks, false)
IMBREX_OMP_LOOP(dynamic, Schedule::dynamic, false)
IMBREX_OMP_LOOP(guided, Schedule::guided, false)
IMBREX_OMP_LOOP(nonmonotonic_dynamic, Schedule::dynamic, false)
IMBREX_OMP_LOOP(nonmonotonic_guided, Schedule::guided, false)
IMBREX_OMP_LOOP(ordered_static, Schedule::by_blocks, true)
IMBREX_OMP_LOOP(ordered_dynamic, Schedule::dynamic, true)
IMBREX_OMP_LOOP(ordered_guided, Schedule::guided, true)
IMBREX_OMP_RUNTIME_LOOP(runtime, false)
IMBREX_OMP_RUNTIME_LOOP(nonmonotonic_runtime, false)
IMBREX_OMP_RUNTIME_LOOP(maybe_nonmonotonic_runtime, false)
IMBREX_OMP_RUNTIME_LOOP(ordered_runtime, true)
IMBREX_OMP_PARALLEL_LOOP(static, Schedule::by_blocks)
IMBREX_OMP_PARALLEL_LOOP(dynamic, Schedule::dynamic)
IMBREX_OMP_PARALLEL_LOOP(guided, Schedule::guided)
IMBREX_OMP_PARALLEL_LOOP(nonmonotonic_dynamic, Schedule::dynamic)
IMBREX_OMP_PARALLEL_LOOP(nonmonotonic_guided, Schedule::guided)
IMBREX_OMP_PARALLEL_RUNTIME_LOOP(runtime)
IMBREX_OMP_PARALLEL_RUNTIME_LOOP(nonmonotonic_runtime)
IMBREX_OMP_PARALLEL_RUNTIME_LOOP(maybe_nonmonotonic_runtime)
IMBREX_OMP_PARALLEL_LOOP_START(static, Schedule::by_blocks)
IMBREX_OMP_PARALLEL_LOOP_START(dynamic, Schedule::dynamic)
IMBREX_OMP_PARALLEL_LOOP_START(guided, Schedule::guided)
IMBREX_OMP_DOACROSS(static, Schedule::by_blocks)
IMBREX_OMP_DOACROSS(dynamic, Schedule::dynamic)
IMBREX_OMP_DOACROSS(guided, Schedule::guided)

void GOMP_parallel_loop_runtime_start(Function function, void* data, unsigned threads, long from,
                                      long to, long step) {
  tools::entered();
  begin_parallel({function, data, threads, 0,
                  presented(iterations_of(from, to, step), plan_of(Schedule::runtime, 0))});
}

bool GOMP_loop_doacross_runtime_start(unsigned count, long* counts, long* begin, long* end) {
  tools::entered();
  return start_doacross(count, counts, plan_of(Schedule::runtime, 0), begin, end, {});
}
bool GOMP_loop_ull_doacross_runtime_start(unsigned count, Ull* counts, Ull* begin, Ull* end) {
  tools::entered();
  return start_doacross(count, counts, plan_of(Schedule::runtime, 0), begin, end, {});
}

bool GOMP_loop_start(long from, long to, long step, long schedule, long chunk, long* begin,
                     long* end, std::uintptr_t* reductions, void** memory) {
  tools::entered();
  return start(iterations_of(from, to, step), plan_of(schedule, static_cast<std::uint64_t>(chunk)),
               false, begin, end, {reductions, memory});
}
bool GOMP_loop_ordered_start(long from, long to, long step, long schedule, long chunk, long* begin,
                             long* end, std::uintptr_t* reductions, void** memory) {
  tools::entered();
  return start(iterations_of(from, to, step), plan_of(schedule, static_cast<std::uint64_t>(chunk)),
               true, begin, end, {reductions, memory});
}
bool GOMP_loop_doacross_start(unsigned count, long* counts, long schedule, long chunk, long* begin,
                              long* end, std::uintptr_t* reductions, void** memory) {
  tools::entered();
  return start_doacross(count, counts, plan_of(schedule, static_cast<std::uint64_t>(chunk)), begin,
                        end, {reductions, memory});
}
bool GOMP_loop_ull_start(bool up, Ull from, Ull to, Ull step, long schedule, Ull chunk, Ull* begin,
                         Ull* end, std::uintptr_t* reductions, void** memory) {
  tools::entered();
  return start(iterations_of(up, from, to, step), plan_of(schedule, chunk), false, begin, end,
               {reductions, memory});
}
bool GOMP_loop_ull_ordered_start(bool up, Ull from, Ull to, Ull step, long schedule, Ull chunk,
                                 Ull* begin, Ull* end, std::uintptr_t* reductions,
                                 void** memory) {
  tools::entered();
  return start(iterations_of(up, from, to, step), plan_of(schedule, chunk), true, begin, end,
               {reductions, memory});
}
bool GOMP_loop_ull_doacross_start(unsigned count, Ull* counts, long schedule, Ull chunk, Ull* begin,
                                  Ull* end, std::uintptr_t* reductions, void** memory) {
  tools::entered();
  return start_doacross(count, counts, plan_of(schedule, chunk), begin, end, {reductions, memory});
}

void GOMP_loop_end() {
  if (tools::on()) [[unlikely]] return end_loop_heard(tools::this_call());
  barrier(current());
}
void GOMP_loop_end_nowait() { tools::end_loop_here(); }
bool GOMP_loop_end_cancel() {
  tools::end_loop_here();
  return barrier_or_cancelled(current(), tools::Sync::barrier_workshare);
}

void GOMP_ordered_start() {
  tools::entered();
  wait_for_turn(implicit_of(current()));
}
void GOMP_ordered_end() {
  tools::entered();
  end_turn();
}

void GOMP_doacross_post(long* counts) { post(counts); }
void GOMP_doacross_ull_post(Ull* counts) { post(counts); }
void GOMP_doacross_wait(long first, ...) {
  std::va_list rest;
  va_start(rest, first);
  wait_posted(first, rest);
  va_end(rest);
}
void GOMP_doacross_ull_wait(Ull first, ...) {
  std::va_list rest;
  va_start(rest, first);
  wait_posted(first, rest);
  va_end(rest);
}

}
#pragma GCC visibility pop
