// SPDX-License-Identifier: BSD-3-Clause
// The functions of LLVM's omp.h beside OpenMP's (kmp_*), and calls that ask for the state of the
// runtime.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "omp/environment/fatal.hpp"
#include "omp/region/ident.hpp"
#include "omp/region/context.hpp"
#include "omp/tools/events.hpp"

namespace imbrex::omp {

namespace {

// The milliseconds that a program has asked for; below 0: none, so the environment counts.
std::atomic<int> block_time_ms{-1};

int block_time() {
  const int asked = block_time_ms.load(std::memory_order_relaxed);
  return asked >= 0 ? asked : settings().block_time_ms;
}

// The values of __kmpc_get_target_offload().
int offload_kind() {
  const std::string_view offload = settings().offload.load(std::memory_order_relaxed);
  return offload == "DISABLED" ? 0 : offload == "MANDATORY" ? 2 : 1;
}

// One "NAME=value" of kmp_set_defaults(). Other variables count when the runtime starts only.
void set_default(const std::string_view text) {
  constexpr std::string_view offload = "OMP_TARGET_OFFLOAD=";
  if (text.starts_with(offload)) {
    const char* const named = offload_named(text.substr(offload.size()));
    settings().offload.store(named != nullptr ? named : "DEFAULT", std::memory_order_relaxed);
  } else if (!text.empty()) {
    warn("kmp_set_defaults: imbrex reads \"%.*s\" from the environment only",
         static_cast<int>(text.size()), text.data());
  }
}
void set_defaults(std::string_view text) {
  for (;;) {
    const std::size_t end = text.find('|');
    set_default(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

constexpr int throughput = 3;  // kmp_get_library(): waiting threads sleep

cpu_set_t& mask_at(void** const mask) { return *static_cast<cpu_set_t*>(*mask); }
bool is_processor(const int processor) { return processor >= 0 && processor < CPU_SETSIZE; }

// Severities of the directive error.
constexpr int warning = 1;
void report(const Ident* const where, const int severity, const char* const message) {
  const std::source_location place = construct_at(where).place;
  const char* const text = message != nullptr ? message : "";
  if (severity == warning) {
    warn("%s:%u:%u: Encountered user-directed warning: %s.", place.file_name(),
         static_cast<unsigned>(place.line()), static_cast<unsigned>(place.column()), text);
  } else {
    fatal("%s:%u:%u: Encountered user-directed error: %s.", place.file_name(),
          static_cast<unsigned>(place.line()), static_cast<unsigned>(place.column()), text);
  }
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

void __kmpc_error(const Ident* where, int severity, const char* message) {
  tools::entered();
  if (tools::on()) [[unlikely]] tools::error(severity != warning, message);
  report(where, severity, message);
}
int __kmpc_get_target_offload() { return offload_kind(); }
int omp_pause_resource_all(int kind);
int __kmpc_pause_resource(int kind) { return omp_pause_resource_all(kind); }

int omp_control_tool(int command, int modifier, void* argument) {
  tools::entered();
  return tools::control(command, modifier, argument);
}
int omp_control_tool_(const int* command, const int* modifier, void* argument) {
  tools::entered();
  return tools::control(*command, *modifier, argument);
}
void* ompt_start_tool(unsigned, const char*) { return nullptr; }  // a tool's own hides it
void ompt_libomp_connect(void*) {}

int kmp_get_num_known_threads() { return count_thread_numbers(); }
int kmp_get_cancellation_status(int) { return settings().cancellation ? 1 : 0; }
int kmp_get_cancellation_status_(const int*) { return settings().cancellation ? 1 : 0; }
int kmp_get_num_known_threads_() { return count_thread_numbers(); }

// Threads wait by imbrex's rules; the values are only kept.
int kmp_get_blocktime() { return block_time(); }
void kmp_set_blocktime(int milliseconds) {
  block_time_ms.store(std::max(milliseconds, 0), std::memory_order_relaxed);
}
int kmp_get_blocktime_() { return kmp_get_blocktime(); }
void kmp_set_blocktime_(const int* milliseconds) { kmp_set_blocktime(*milliseconds); }
int kmp_get_library() { return throughput; }
int kmp_get_library_() { return throughput; }
void kmp_set_library(int) {}
void kmp_set_library_(const int*) {}
void kmp_set_library_serial() {}
void kmp_set_library_serial_() {}
void kmp_set_library_throughput() {}
void kmp_set_library_throughput_() {}
void kmp_set_library_turnaround() {}
void kmp_set_library_turnaround_() {}
void kmp_set_disp_num_buffers(int) {}
void kmp_set_disp_num_buffers_(const int*) {}
void kmp_set_warnings_on() {}
void kmp_set_warnings_on_() {}
void kmp_set_warnings_off() {}
void kmp_set_warnings_off_() {}
void kmp_set_defaults(const char* text) { set_defaults(text); }
void kmp_set_defaults_(const char* text, int length) {
  set_defaults({text, static_cast<std::size_t>(length)});
}

// Threads that are made later get the new stack size.
std::size_t kmp_get_stacksize_s() {
  const std::size_t given = settings().stack_bytes;
  return given != 0 ? given : task_stack_bytes();
}
void kmp_set_stacksize_s(std::size_t bytes) {
  settings().stack_bytes = std::max<std::size_t>(bytes, PTHREAD_STACK_MIN);
}
int kmp_get_stacksize() {
  return static_cast<int>(std::min<std::size_t>(kmp_get_stacksize_s(), INT32_MAX));
}
void kmp_set_stacksize(int bytes) {
  kmp_set_stacksize_s(static_cast<std::size_t>(std::max(bytes, 0)));
}
std::size_t kmp_get_stacksize_s_() { return kmp_get_stacksize_s(); }
void kmp_set_stacksize_s_(const std::size_t* bytes) { kmp_set_stacksize_s(*bytes); }
int kmp_get_stacksize_() { return kmp_get_stacksize(); }
void kmp_set_stacksize_(const int* bytes) { kmp_set_stacksize(*bytes); }

// ---- masks of processors -----------------------------------------------------------------------

void kmp_create_affinity_mask(void** mask) {
  auto* const made = new cpu_set_t;
  CPU_ZERO(made);
  *mask = made;
}
void kmp_destroy_affinity_mask(void** mask) {
  delete static_cast<cpu_set_t*>(*mask);
  *mask = nullptr;
}
int kmp_set_affinity(void** mask) {
  return sched_setaffinity(0, sizeof(cpu_set_t), &mask_at(mask)) == 0 ? 0 : -1;
}
int kmp_get_affinity(void** mask) {
  return sched_getaffinity(0, sizeof(cpu_set_t), &mask_at(mask)) == 0 ? 0 : -1;
}
int kmp_get_affinity_max_proc() { return static_cast<int>(sysconf(_SC_NPROCESSORS_CONF)); }
int kmp_set_affinity_mask_proc(int processor, void** mask) {
  if (!is_processor(processor)) return -1;
  CPU_SET(static_cast<unsigned>(processor), &mask_at(mask));
  return 0;
}
int kmp_unset_affinity_mask_proc(int processor, void** mask) {
  if (!is_processor(processor)) return -1;
  CPU_CLR(static_cast<unsigned>(processor), &mask_at(mask));
  return 0;
}
int kmp_get_affinity_mask_proc(int processor, void** mask) {
  if (!is_processor(processor)) return -1;
  return CPU_ISSET(static_cast<unsigned>(processor), &mask_at(mask)) ? 1 : 0;
}
void kmp_create_affinity_mask_(void** mask) { kmp_create_affinity_mask(mask); }
void kmp_destroy_affinity_mask_(void** mask) { kmp_destroy_affinity_mask(mask); }
int kmp_set_affinity_(void** mask) { return kmp_set_affinity(mask); }
int kmp_get_affinity_(void** mask) { return kmp_get_affinity(mask); }
int kmp_get_affinity_max_proc_() { return kmp_get_affinity_max_proc(); }
int kmp_set_affinity_mask_proc_(const int* processor, void** mask) {
  return kmp_set_affinity_mask_proc(*processor, mask);
}
int kmp_unset_affinity_mask_proc_(const int* processor, void** mask) {
  return kmp_unset_affinity_mask_proc(*processor, mask);
}
int kmp_get_affinity_mask_proc_(const int* processor, void** mask) {
  return kmp_get_affinity_mask_proc(*processor, mask);
}
// The processors that the process had when it began.
int kmp_set_thread_affinity_mask_initial() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int processor : settings().allowed) {
    if (is_processor(processor)) CPU_SET(static_cast<unsigned>(processor), &mask);
  }
  return sched_setaffinity(0, sizeof mask, &mask) == 0 ? 0 : -1;
}

}
#pragma GCC visibility pop
