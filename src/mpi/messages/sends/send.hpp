// SPDX-License-Identifier: BSD-3-Clause
// One send that imbrex carries out itself: a long one, which counts as in flight until it has
// ended, or one that waits for its turn (window.hpp). Used by outgoing.cpp.
#pragma once

#include <mpi.h>

#include "mpi/messages/matching/substitute.hpp"
#include "mpi/messages/requests/persistent.hpp"
#include "mpi/messages/sends/turns.hpp"

namespace imbrex::mpi::sends {

using Mode = messages::SendMode;

// The arguments of a sending call.
struct Outgoing {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
  int peer;
  int tag;
  MPI_Comm comm;
  Mode mode;
};

// The destination of a send.
struct Route {
  messages::Communicator* communicator = nullptr;  // null: the call is MPI's own
  int rank = -1;  // in MPI_COMM_WORLD; -1: a process outside of it
  explicit operator bool() const noexcept { return communicator != nullptr; }
};

// Thread safety: as Substitute.
class Send final : public messages::Substitute {
 public:
  // `name`, a literal, and `at_once` are as in Call.
  Send(const char* name, const Outgoing& outgoing, const Route& route, std::int64_t bytes,
       bool at_once) noexcept;
  ~Send() override;

  // Takes it out of the queue, or asks MPI to.
  void cancel() noexcept override;

  // Copies the type, which the program may free once its call has returned.
  void keep_type() noexcept;
  // Gives it to MPI. False if MPI refuses it: `code` has the error, and the error handler is owed.
  [[nodiscard]] bool post() noexcept;

  const int rank;                // as in Route
  Turn turn;                     // under the lock of the window
  Send* next_refused = nullptr;  // under the lock of the window
  Time since = 0;                // under the lock of the window: begin of the wait
  Time waited = 0;               // under the lock of the window, until it has gone

  // Null: `operation` is no Send.
  [[nodiscard]] static const Send* from(const Operation& operation) noexcept {
    return operation.complete == &Send::completed ? static_cast<const Send*>(&operation) : nullptr;
  }
  [[nodiscard]] static Send& of(Turn& turn) noexcept { return *static_cast<Send*>(turn.owner); }
  [[nodiscard]] static const Send& of(const Turn& turn) noexcept {
    return *static_cast<const Send*>(turn.owner);
  }

 private:
  static void completed(Operation& self) noexcept;

  Outgoing outgoing_;
  bool keeps_type_ = false;
};

}  // namespace imbrex::mpi::sends
