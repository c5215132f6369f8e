// SPDX-License-Identifier: BSD-3-Clause
// Errors of MPI: the texts of MpiError, and the user's error handlers, which are kept for the task
// whose call failed when the engine meets them.
#include "errors.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

#include "engine.hpp"

namespace imbrex::mpi {

MpiError make_error(const char* call, int code, const std::string& place) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  int error_class = MPI_ERR_UNKNOWN;
  if (PMPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  PMPI_Error_class(code, &error_class);
  const std::string where = place == "no task" ? "outside a task" : "in task " + place;
  return MpiError(std::string("imbrex: ") + call + " " + where + " failed: " +
                      std::string(text, static_cast<std::size_t>(length)),
                  call, code, error_class);
}

namespace {

using Handler = MPI_Comm_errhandler_function;

// MPI passes no pointer of ours to a handler, so each handler of the user's gets a function of ours
// that knows it. More than these are handed to MPI as they are: the engine then calls them itself.
constexpr std::size_t handlers_max = 32;
std::array<std::atomic<Handler*>, handlers_max> handlers;  // set once each, by any thread

template <std::size_t Index>
void call_or_defer(MPI_Comm* comm, int* code, ...) {
  Handler* const handler = handlers[Index].load(std::memory_order_relaxed);
  if (Asking::keep(*comm, *code)) return;
  if (engine().polling_here()) {
    engine().defer({handler, *comm, *code});
  } else {
    handler(comm, code, nullptr);
  }
}

template <std::size_t... Index>
constexpr std::array<Handler*, handlers_max> make_callers(std::index_sequence<Index...>) {
  return {&call_or_defer<Index>...};
}
constexpr auto callers = make_callers(std::make_index_sequence<handlers_max>{});

// One function may be registered many times; it needs one place.
Handler* caller_of(Handler* handler) noexcept {
  for (std::size_t i = 0; i < handlers_max; ++i) {
    Handler* there = nullptr;
    if (handlers[i].compare_exchange_strong(there, handler, std::memory_order_relaxed) ||
        there == handler) {
      return callers[i];
    }
  }
  return handler;
}

}  // namespace
}  // namespace imbrex::mpi

extern "C" [[gnu::visibility("default")]] int MPI_Comm_create_errhandler(
    MPI_Comm_errhandler_function* function, MPI_Errhandler* handler) {
  if (function == nullptr) return PMPI_Comm_create_errhandler(function, handler);
  return PMPI_Comm_create_errhandler(imbrex::mpi::caller_of(function), handler);
}
