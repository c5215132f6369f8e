// SPDX-License-Identifier: BSD-3-Clause
#include "hcmpi/report.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

#include "imbrex/compat/hcmpi.h"

namespace imbrex::hcmpi {

namespace {

std::atomic<bool> errors_return{false};  // any thread; relaxed: it guards nothing

bool mpi_is_up() noexcept {
  int begun = 0;
  int ended = 0;
  MPI_Initialized(&begun);
  if (begun != 0) MPI_Finalized(&ended);
  return begun != 0 && ended == 0;
}

// Other ranks would wait for this one.
[[noreturn]] void end_program(const char* const text) noexcept {
  std::fprintf(stderr, "%s\n", text);
  std::fflush(nullptr);
  if (mpi_is_up()) {
    // MPICH's mpiexec drops output that it has not yet passed on when a process aborts.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  std::_Exit(1);
}

// Code and text of `error`, which is no misuse of this interface.
struct Told {
  int code = MPI_ERR_OTHER;
  std::string text;
};
Told told(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const MpiError& thrown) {
    return {thrown.code(), thrown.what()};
  } catch (const DependencyFailed& thrown) {
    Told told{MPI_ERR_OTHER, thrown.what()};
    if (thrown.cause()) told.code = hcmpi::told(thrown.cause()).code;
    return told;
  } catch (const Misuse& thrown) {
    return {thrown.code(), thrown.what()};
  } catch (const std::bad_alloc&) {
    return {MPI_ERR_NO_MEM, "imbrex: no memory left: " + detail::thrown_text(error)};
  } catch (...) {
    return {MPI_ERR_OTHER, detail::thrown_text(error)};
  }
}

// Adds the name of the call to the text.
Told named(const char* const call, Told told) {
  constexpr std::string_view prefix = "imbrex: ";
  if (told.text.find(call) != std::string::npos) return told;
  if (told.text.starts_with(prefix)) told.text.erase(0, prefix.size());
  told.text = std::string(prefix) + call + ": " + told.text;
  return told;
}

bool is_of_mpi(const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const MpiError&) {
    return true;
  } catch (const DependencyFailed&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void refuse(const char* const call, const int code, const std::string& what) {
  throw Misuse(code, std::string("imbrex: ") + call + " in task " +
                         detail::describe_current_task() + ": " + what);
}

int tell(const std::exception_ptr& error) noexcept {
  try {
    const Told failure = told(error);
    detail::keep_message(failure.text);
    return failure.code;
  } catch (...) {  // out of memory
    return MPI_ERR_NO_MEM;
  }
}

int report(const char* const call, const std::exception_ptr& error) noexcept {
  const bool returns = is_of_mpi(error) || errors_return.load(std::memory_order_relaxed);
  try {
    const Told failure = named(call, told(error));
    if (!returns) end_program(failure.text.c_str());
    detail::keep_message(failure.text);
    return failure.code;
  } catch (...) {  // out of memory
    if (!returns) end_program("imbrex: no memory left");
    return MPI_ERR_NO_MEM;
  }
}

void let_errors_return(const bool yes) noexcept {
  errors_return.store(yes, std::memory_order_relaxed);
}

void require_mpi(const char* const call) {
  if (mpi_is_up()) return;
  refuse(call, MPI_ERR_OTHER,
         "called outside of HCMPI_Init and HCMPI_Finalize: call HCMPI_Init first, and nothing of "
         "MPI after HCMPI_Finalize");
}

}  // namespace imbrex::hcmpi

#pragma GCC visibility push(default)
extern "C" {

int hc_set_errors(const int how) {
  return imbrex::hcmpi::guard("hc_set_errors", [how] {
    if (how != HC_ERRORS_ARE_FATAL && how != HC_ERRORS_RETURN) {
      imbrex::hcmpi::refuse("hc_set_errors", MPI_ERR_ARG,
                            std::to_string(how) +
                                " is neither HC_ERRORS_ARE_FATAL nor HC_ERRORS_RETURN");
    }
    imbrex::hcmpi::let_errors_return(how == HC_ERRORS_RETURN);
  });
}

const char* hc_message(void) { return imbrex::detail::kept_message(); }

}  // extern "C"
#pragma GCC visibility pop
