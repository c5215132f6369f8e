// SPDX-License-Identifier: BSD-3-Clause
// The omp_* functions that read or change a task's Context. Each has twins for Fortran: with an
// underscore, and, if it takes numbers, another for numbers of 8 bytes.
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "omp/region/context.hpp"
#include "omp/region/thread_pool.hpp"

namespace imbrex::omp {

namespace {

int clamped(const std::int64_t number) {
  return static_cast<int>(std::clamp<std::int64_t>(number, INT32_MIN, INT32_MAX));
}

void set_threads(const int threads) { caller().variables.threads = std::max(threads, 1); }

void set_levels(const int levels) {
  if (levels < 0) return;
  caller().variables.active_levels_max =
      static_cast<std::uint8_t>(std::min(levels, active_levels_supported));
}

void set_nested(const int nested) {
  Variables& variables = caller().variables;
  if (nested != 0) {
    variables.active_levels_max = active_levels_supported;
  } else if (variables.active_levels_max > 1) {
    variables.active_levels_max = 1;
  }
}

constexpr unsigned monotonic_bit = 0x80000000u;
constexpr unsigned trapezoidal_kind = 101;  // LLVM's kmp_sched_trapezoidal

void set_schedule(const unsigned kind, const int chunk) {
  const unsigned plain = kind & ~monotonic_bit;
  const bool is_trapezoidal = plain == trapezoidal_kind;
  if ((plain < 1 || plain > 4) && !is_trapezoidal) return;
  Variables& variables = caller().variables;
  variables.schedule = is_trapezoidal ? Schedule::trapezoidal : static_cast<Schedule>(plain);
  variables.monotonic = (kind & monotonic_bit) != 0;
  const int least = variables.schedule == Schedule::by_blocks ? 0 : 1;
  variables.chunk = std::max(chunk, least);
}

unsigned schedule_kind() {
  const Variables& variables = caller().variables;
  const unsigned plain = variables.schedule == Schedule::trapezoidal
                             ? trapezoidal_kind
                             : static_cast<unsigned>(variables.schedule);
  return plain | (variables.monotonic ? monotonic_bit : 0);
}

// The team at `level` around the caller, null if there is none; and the caller's thread in it.
struct Ancestor {
  const Team* team = nullptr;
  int number = -1;
};
Ancestor ancestor_at(const int level) {
  const Context& context = caller();
  Ancestor ancestor{context.team, context.number};
  if (level < 0 || level > context.team->level) return {};
  while (ancestor.team->level > level) {
    ancestor = {ancestor.team->outer, ancestor.team->outer_number};
  }
  return ancestor;
}

int team_size_at(const int level) {
  const Ancestor ancestor = ancestor_at(level);
  return ancestor.team == nullptr ? -1 : ancestor.team->size;
}

double clock_seconds(int (*const ask)(clockid_t, timespec*)) {
  timespec time{};
  (void)ask(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The number of usable processors. If threads are bound, the mask is not read, because it only
// contains the bound places.
int processors_now() {
  if (!settings().places.empty()) return settings().processors;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? processors_granted(CPU_COUNT(&mask))
                                                       : settings().processors;
}

// Soft or hard, the threads of the caller's regions end. Not within a region; the only device is
// the host.
int pause(const int kind, const int device) {
  constexpr int soft = 1, hard = 2;
  if (caller().team->level != 0 || (kind != soft && kind != hard) || device < -1 || device > 0) {
    return -1;
  }
  end_threads(initial().threads);
  return 0;
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

#define IMBREX_OMP_ASK(type, name, expression) \
  type name() { return expression; }           \
  type name##_() { return expression; }

// `value` is an int in the expression.
#define IMBREX_OMP_TELL(name, expression)                        \
  void name(int value) { expression; }                           \
  void name##_(const std::int32_t* given) {                      \
    const int value = *given;                                    \
    expression;                                                  \
  }                                                              \
  void name##_8_(const std::int64_t* given) {                    \
    const int value = clamped(*given);                           \
    expression;                                                  \
  }

#define IMBREX_OMP_ASK_AT(name, expression)                      \
  int name(int value) { return expression; }                     \
  std::int32_t name##_(const std::int32_t* given) {              \
    const int value = *given;                                    \
    return expression;                                           \
  }                                                              \
  std::int32_t name##_8_(const std::int64_t* given) {            \
    const int value = clamped(*given);                           \
    return expression;                                           \
  }

IMBREX_OMP_ASK(int, omp_get_thread_num, caller().number)
IMBREX_OMP_ASK(int, omp_get_num_threads, caller().team->size)
IMBREX_OMP_ASK(int, omp_get_max_threads, caller().variables.threads)
IMBREX_OMP_ASK(int, omp_get_num_procs, processors_now())
IMBREX_OMP_ASK(int, omp_in_parallel, caller().team->active_level > 0 ? 1 : 0)
IMBREX_OMP_ASK(int, omp_get_dynamic, caller().variables.dynamic ? 1 : 0)
IMBREX_OMP_ASK(int, omp_get_nested, caller().variables.active_levels_max > 1 &&
                                            caller().variables.active_levels_max >
                                                caller().team->active_level
                                        ? 1
                                        : 0)
IMBREX_OMP_ASK(int, omp_get_thread_limit, caller().variables.thread_limit)
IMBREX_OMP_ASK(int, omp_get_max_active_levels, caller().variables.active_levels_max)
IMBREX_OMP_ASK(int, omp_get_supported_active_levels, active_levels_supported)
IMBREX_OMP_ASK(int, omp_get_level, caller().team->level)
IMBREX_OMP_ASK(int, omp_get_active_level, caller().team->active_level)
IMBREX_OMP_ASK(int, omp_in_final, caller().is_final ? 1 : 0)
IMBREX_OMP_ASK(int, omp_in_explicit_task, caller().is_explicit ? 1 : 0)
IMBREX_OMP_ASK(int, omp_get_cancellation, settings().cancellation ? 1 : 0)
IMBREX_OMP_ASK(int, omp_get_proc_bind, caller().variables.bind)
IMBREX_OMP_ASK(int, omp_get_max_task_priority, settings().priority_max)
IMBREX_OMP_ASK(int, omp_get_default_device, caller().variables.device)
IMBREX_OMP_ASK(int, omp_get_initial_device, 0)
IMBREX_OMP_ASK(int, omp_get_device_num, 0)
IMBREX_OMP_ASK(int, omp_get_num_devices, 0)
IMBREX_OMP_ASK(int, omp_is_initial_device, 1)
IMBREX_OMP_ASK(double, omp_get_wtime, clock_seconds(&clock_gettime))
IMBREX_OMP_ASK(double, omp_get_wtick, clock_seconds(&clock_getres))
IMBREX_OMP_TELL(omp_set_num_threads, set_threads(value))
IMBREX_OMP_TELL(omp_set_dynamic, caller().variables.dynamic = value != 0)
IMBREX_OMP_TELL(omp_set_nested, set_nested(value))
IMBREX_OMP_TELL(omp_set_max_active_levels, set_levels(value))
IMBREX_OMP_TELL(omp_set_default_device, caller().variables.device = std::max(value, 0))
IMBREX_OMP_ASK_AT(omp_get_ancestor_thread_num, ancestor_at(value).number)
IMBREX_OMP_ASK_AT(omp_get_team_size, team_size_at(value))

void omp_set_schedule(unsigned kind, int chunk) { set_schedule(kind, chunk); }
void omp_set_schedule_(const std::int32_t* kind, const std::int32_t* chunk) {
  set_schedule(static_cast<unsigned>(*kind), *chunk);
}
void omp_set_schedule_8_(const std::int32_t* kind, const std::int64_t* chunk) {
  set_schedule(static_cast<unsigned>(*kind), clamped(*chunk));
}
void omp_get_schedule(unsigned* kind, int* chunk) {
  *kind = schedule_kind();
  *chunk = caller().variables.chunk;
}
void omp_get_schedule_(std::int32_t* kind, std::int32_t* chunk) {
  *kind = static_cast<std::int32_t>(schedule_kind());
  *chunk = caller().variables.chunk;
}
void omp_get_schedule_8_(std::int32_t* kind, std::int64_t* chunk) {
  *kind = static_cast<std::int32_t>(schedule_kind());
  *chunk = caller().variables.chunk;
}

void omp_display_env(int verbose) { display_settings(verbose != 0); }
void omp_display_env_(const std::int32_t* verbose) { display_settings(*verbose != 0); }
void omp_display_env_8_(const std::int64_t* verbose) { display_settings(*verbose != 0); }

int omp_pause_resource(int kind, int device) { return pause(kind, device); }
int omp_pause_resource_all(int kind) { return pause(kind, 0); }
int omp_pause_resource_(const std::int32_t* kind, const std::int32_t* device) {
  return pause(*kind, *device);
}
int omp_pause_resource_all_(const std::int32_t* kind) { return pause(*kind, 0); }

}
#pragma GCC visibility pop
