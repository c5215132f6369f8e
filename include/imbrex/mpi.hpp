// SPDX-License-Identifier: BSD-3-Clause
// What imbrex adds to MPI for C++ programs. Plain blocking calls need nothing of this: in a task
// they suspend the task.
#pragma once

#include <mpi.h>

#include <string>

#include "imbrex/error.hpp"
#include "imbrex/future.hpp"

#pragma GCC visibility push(default)

namespace imbrex {

// An MPI call failed. what() names the call, the task and MPI's text.
class MpiError : public Error {
 public:
  MpiError(const std::string& text, const char* call, int code, int error_class)
      : Error(text), call_(call), code_(code), class_(error_class) {}
  [[nodiscard]] const char* call() const noexcept { return call_; }
  [[nodiscard]] int code() const noexcept { return code_; }
  [[nodiscard]] int error_class() const noexcept { return class_; }

 private:
  const char* call_;
  int code_;
  int class_;
};

// Suspends the running task until `request` completes and sets it to MPI_REQUEST_NULL (a
// persistent one becomes inactive), as MPI_Wait would; outside a task it is MPI_Wait.
// Throws MpiError. Do not wait for one request in two places.
MPI_Status await(MPI_Request& request);

// Takes the request over, sets it to MPI_REQUEST_NULL, and returns at once. The future's get()
// throws MpiError. Buffers must live until it is ready. A persistent request is refused: by Error
// at once if it is inactive or complete, else by the future.
[[nodiscard]] Future<MPI_Status> when(MPI_Request& request);

// Takes the request over and returns at once; the running task, once its body has ended, keeps its
// dependents waiting for it too. (TAMPI_Iwait.) If the request fails, so does the task: its
// future's get(), and the finish() around it, throw MpiError. Throws Error outside a task, and for
// a persistent request.
void release_after(MPI_Request& request);

}  // namespace imbrex

#pragma GCC visibility pop
