// SPDX-License-Identifier: BSD-3-Clause
// How the calls of hcmpi.h end: no exception leaves them, and errors are reported.
//
// Thread safety: any thread.
#pragma once

#include <mpi.h>

#include <exception>
#include <string>
#include <utility>

#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"

namespace imbrex::hcmpi {

// A call that the interface does not allow, and MPI's code for it.
class Misuse : public Error {
 public:
  Misuse(const int code, const std::string& text) : Error(text), code_(code) {}
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};
// "imbrex: CALL in task ...: what".
[[noreturn]] void refuse(const char* call, int code, const std::string& what);

// Reports `error`, which the call has met: keeps its text for hc_message(), and returns the code.
// Misuse ends the program, unless hc_set_errors() makes it return.
int report(const char* call, const std::exception_ptr& error) noexcept;
// report() for exceptions of tasks or operations: never ends the program.
int tell(const std::exception_ptr& error) noexcept;

void let_errors_return(bool yes) noexcept;

// Runs `body`, which returns a code of MPI or nothing.
template <class F>
int guard(const char* const call, F&& body) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      std::forward<F>(body)();
      return MPI_SUCCESS;
    } else {
      return std::forward<F>(body)();
    }
  } catch (...) {
    return report(call, std::current_exception());
  }
}

// REQUIRES, as all calls of MPI: the call comes between MPI_Init and MPI_Finalize; else Misuse.
void require_mpi(const char* call);
inline void require(const void* const pointer, const char* const call, const char* const what) {
  if (pointer == nullptr) refuse(call, MPI_ERR_ARG, std::string(what) + " is a null pointer");
}

}  // namespace imbrex::hcmpi
