// SPDX-License-Identifier: BSD-3-Clause
// The OMP_* variables of the environment, read once, and the internal control variables, of which
// each task has a copy.
//
// Thread safety: any thread calls settings(); non-atomic members are constant.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "omp/environment/place_list.hpp"

namespace imbrex::omp {

// The values of omp_sched_t.
enum class Schedule : std::uint8_t {
  runtime = 0, by_blocks = 1, dynamic = 2, guided = 3, automatic = 4,
  trapezoidal = 5  // LLVM's, whose value is 101; here its chunks shrink as those of `guided`
};

// The internal control variables of one task. A child begins with its parent's present values.
struct Variables {
  int threads = 1;                   // omp_set_num_threads
  int thread_limit = INT32_MAX;
  int chunk = 0;                     // of `schedule`; 0: none given
  Schedule schedule = Schedule::dynamic;
  bool monotonic = false;
  bool dynamic = false;
  std::uint8_t active_levels_max = 1;
  std::uint8_t bind = 0;             // omp_proc_bind_t
  int device = 0;
  std::uintptr_t allocator = 1;      // omp_default_mem_alloc
  int teams = 1;                     // number of teams of the host teams construct around, and the
                                     // number of this team
  int team_number = 0;
};

inline constexpr int active_levels_supported = 255;

struct Settings {
  Variables initial;
  std::vector<int> threads_by_level;   // OMP_NUM_THREADS; empty: not given
  std::vector<int> bind_by_level;      // OMP_PROC_BIND
  std::vector<Place> places;           // empty: threads are not bound
  Place allowed;                       // processors that this process may use
  std::size_t stack_bytes = 0;         // 0: the system's default
  bool cancellation = false;
  bool display_affinity = false;
  int priority_max = 0;
  int teams_max = 0;
  int teams_thread_limit = 0;
  int wait_policy = -1;                // OMP_WAIT_POLICY: 1 active, 0 passive
  long long spin_count = 0;            // GOMP_SPINCOUNT, or by OMP_WAIT_POLICY
  int block_time_ms = 200;             // KMP_BLOCKTIME, or by OMP_WAIT_POLICY
  // OMP_TARGET_OFFLOAD, or as kmp_set_defaults() says; relaxed: it orders nothing
  std::atomic<const char*> offload{"DEFAULT"};
  std::string affinity_format;
  int processors = 1;                  // how many are allowed and granted
  std::atomic<bool> crowded{false};    // a team has had more threads than there are processors
};
[[nodiscard]] Settings& settings() noexcept;
// The number of processors that this process can keep busy, if it may run on `allowed` ones: a CPU
// quota of control groups is a limit.
[[nodiscard]] int processors_granted(int allowed);
// Whether a line shall name what imbrex does not read: KMP_WARNINGS.
[[nodiscard]] bool warns_of_unread();
// Reads the environment into `now`; settings() calls it once.
void read_settings(Settings& now);

// IMBREX_OMP_SUSPEND: where blocking calls of MPI suspend.
enum class Suspending { everywhere, explicit_tasks, nowhere };
// The first call throws Error if an option of imbrex is malformed.
[[nodiscard]] Suspending suspending();

// The stack size of explicit tasks. It equals that of threads: a program may move the body of a
// loop into a task.
[[nodiscard]] std::size_t task_stack_bytes() noexcept;

// The constant that names a value of OMP_TARGET_OFFLOAD, in any case of letters; null for other
// text.
[[nodiscard]] const char* offload_named(std::string_view text) noexcept;

// Prints the settings as OMP_DISPLAY_ENV does.
void display_settings(bool verbose);

}  // namespace imbrex::omp
