// SPDX-License-Identifier: BSD-3-Clause
// TAMPI's properties, its start and end, and the thread levels that programs get.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>

#include "TAMPI.h"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/interfaces/tampi/tampi.hpp"
#include "mpi/messages/matching/wait.hpp"

namespace imbrex::mpi::tampi {

namespace {

// Written by the calls that start and end MPI and TAMPI; relaxed, since MPI orders calls behind
// these.
std::atomic<bool> starts_itself{true};  // TAMPI_PROPERTY_AUTO_INIT
std::atomic<bool> started{false};       // by TAMPI_Init
constexpr int unknown = -1;
std::atomic<int> granted_level{unknown};  // what the program got; unknown: it did not ask

bool runs() noexcept { return switches.is_active.load(std::memory_order_relaxed); }

int grant(const int required, const int given) noexcept {
  const int level = required == MPI_TASK_MULTIPLE
                        ? MPI_TASK_MULTIPLE
                        : std::clamp<int>(required, MPI_THREAD_SINGLE, given);
  granted_level.store(level, std::memory_order_relaxed);
  return level;
}

bool blocking_enabled() noexcept {
  return is_enabled() && granted_level.load(std::memory_order_relaxed) == MPI_TASK_MULTIPLE;
}

int get(const char* call, const int property, int* value) noexcept {
  switch (property) {
    case TAMPI_PROPERTY_BLOCKING_MODE:
      *value = blocking_enabled() ? 1 : 0;
      return MPI_SUCCESS;
    case TAMPI_PROPERTY_NONBLOCKING_MODE:
      *value = is_enabled() ? 1 : 0;
      return MPI_SUCCESS;
    case TAMPI_PROPERTY_AUTO_INIT:
      *value = starts_itself.load(std::memory_order_relaxed) ? 1 : 0;
      return MPI_SUCCESS;
    case TAMPI_PROPERTY_THREAD_TASKAWARE:
      *value = detail::is_blocking() ? 0 : 1;
      return MPI_SUCCESS;
    default:
      return refuse(call, "there is no property " + std::to_string(property) + ": the properties "
                    "are TAMPI_PROPERTY_BLOCKING_MODE (1), _NONBLOCKING_MODE (2), _AUTO_INIT (3) "
                    "and _THREAD_TASKAWARE (4)", MPI_ERR_ARG);
  }
}

int set(const char* call, const int property, const int value) {
  switch (property) {
    case TAMPI_PROPERTY_AUTO_INIT: {
      int initialised = 0;
      PMPI_Initialized(&initialised);
      if (initialised != 0) {
        return refuse(call, "TAMPI_PROPERTY_AUTO_INIT changes MPI_Init: set it before MPI_Init",
                      MPI_ERR_ARG);
      }
      starts_itself.store(value != 0, std::memory_order_relaxed);
      return MPI_SUCCESS;
    }
    case TAMPI_PROPERTY_THREAD_TASKAWARE:
      detail::set_blocking(value == 0);
      if (value == 0) switches.some_task_blocks.store(true, std::memory_order_relaxed);
      return MPI_SUCCESS;
    case TAMPI_PROPERTY_BLOCKING_MODE:
    case TAMPI_PROPERTY_NONBLOCKING_MODE:
      return refuse(call, "TAMPI_PROPERTY_BLOCKING_MODE and _NONBLOCKING_MODE can be read only: "
                    "MPI_Init_thread and TAMPI_Init enable the modes", MPI_ERR_ARG);
    default: {
      int value_now = 0;
      return get(call, property, &value_now);
    }
  }
}

int refuse_to_start(const char* call) noexcept {
  return refuse(call, "MPI is not initialised: make this call between MPI_Init (or "
                "MPI_Init_thread) and MPI_Finalize", MPI_ERR_OTHER);
}

}  // namespace

int level_for(const int required, const int given) noexcept {
  const bool without_tasks =
      required == MPI_TASK_MULTIPLE && !starts_itself.load(std::memory_order_relaxed);
  return grant(without_tasks ? MPI_THREAD_MULTIPLE : required, given);
}

int level_of_query(const int given) noexcept {
  const int level = granted_level.load(std::memory_order_relaxed);
  return level == unknown ? given : level;
}

bool is_enabled() noexcept {
  return runs() && (starts_itself.load(std::memory_order_relaxed) ||
                    started.load(std::memory_order_relaxed));
}

int refuse(const char* call, const std::string& why, const int code) noexcept {
  const std::string text =
      std::string("imbrex: ") + call + " in " + detail::describe_current_task() + ": " + why;
  std::fprintf(stderr, "%s\n", text.c_str());
  return code;
}

}  // namespace imbrex::mpi::tampi

namespace tampi = imbrex::mpi::tampi;

#pragma GCC visibility push(default)
extern "C" {

int TAMPI_Init(const int required, int* const provided) {
  if (!tampi::runs()) return tampi::refuse_to_start("TAMPI_Init");
  *provided = tampi::grant(required, MPI_THREAD_MULTIPLE);
  tampi::started.store(true, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int TAMPI_Finalize() {
  if (!tampi::runs()) return tampi::refuse_to_start("TAMPI_Finalize");
  tampi::started.store(false, std::memory_order_relaxed);
  return MPI_SUCCESS;
}

int TAMPI_Property_get(const int property, int* const value) {
  return tampi::get("TAMPI_Property_get", property, value);
}

int TAMPI_Property_set(const int property, const int value) {
  try {
    return tampi::set("TAMPI_Property_set", property, value);
  } catch (const std::exception& error) {  // of a callback, which stands in no task
    return tampi::refuse("TAMPI_Property_set", error.what(), MPI_ERR_ARG);
  }
}

int TAMPI_Blocking_enabled(int* const flag) {
  return tampi::get("TAMPI_Blocking_enabled", TAMPI_PROPERTY_BLOCKING_MODE, flag);
}

int TAMPI_Nonblocking_enabled(int* const flag) {
  return tampi::get("TAMPI_Nonblocking_enabled", TAMPI_PROPERTY_NONBLOCKING_MODE, flag);
}

}  // extern "C"
#pragma GCC visibility pop
