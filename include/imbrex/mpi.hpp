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
// dependents waiting for it too. (TAMPI_Iwait.) If the request fails, the finish() around the task
// throws MpiError. Throws Error outside a task, and for a persistent request.
void release_after(MPI_Request& request);

// A message that is here, and taken out of MPI's matching: nobody else can receive it. It must be
// received; one that is destroyed before is named on standard error.
// Thread safety: as an int.
class ArrivedMessage {
 public:
  ArrivedMessage(MPI_Message message, const MPI_Status& status) noexcept
      : message_(message), status_(status) {}
  ArrivedMessage(ArrivedMessage&& other) noexcept;
  ArrivedMessage& operator=(ArrivedMessage other) noexcept;
  ~ArrivedMessage();

  [[nodiscard]] int source() const noexcept { return status_.MPI_SOURCE; }
  [[nodiscard]] int tag() const noexcept { return status_.MPI_TAG; }
  [[nodiscard]] int count(MPI_Datatype type) const;  // as MPI_Get_count
  [[nodiscard]] const MPI_Status& status() const noexcept { return status_; }

  // As MPI_Mrecv, once. Const, so that tasks which share a future may. Throws MpiError. Suspends.
  MPI_Status receive(void* buffer, int count, MPI_Datatype type) const;

 private:
  mutable MPI_Message message_;  // null once received or moved away
  MPI_Status status_;
};

// Returns at once; the future is ready when a message has arrived that a receive with these
// arguments, made now, would get (wildcards included). A task that takes the future by .in() starts
// only then: it costs no stack and no worker while it waits. get() throws MpiError.
[[nodiscard]] Future<ArrivedMessage> when_arrived(int source, int tag, MPI_Comm comm);

}  // namespace imbrex

#pragma GCC visibility pop
