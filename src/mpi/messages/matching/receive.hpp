// SPDX-License-Identifier: BSD-3-Clause
// One receive that imbrex matches itself, from the call that makes it to the call that takes its
// result. Used by the calls in calls/p2p/; communicator.hpp finds its message.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

#include "mpi/engine/engine.hpp"
#include "mpi/messages/matching/match_queue.hpp"
#include "mpi/messages/matching/substitute.hpp"

namespace imbrex::mpi::messages {

// The arguments of a receiving call.
struct Arguments {
  void* buffer;
  MPI_Count count;
  MPI_Datatype type;
  Envelope wanted;
  MPI_Comm comm;
};

// A message that MPI has matched for us.
struct Arrived {
  MPI_Message message;
  MPI_Status status;
};

// Thread safety: as Substitute. In its communicator's queue, under way at the engine, or complete.
class alignas(64) Receive final : public Substitute {
 public:
  // The type is kept alive until the message is there. `at_once`: as in Call.
  Receive(const char* name, const Arguments& arguments, Communicator& communicator, Kind kind,
          bool at_once);
  ~Receive() override;
  // The memory is a slot of a store that is never given back: it has at most as many slots as were
  // in use at once.
  static void* operator new(std::size_t bytes);
  static void operator delete(void* slot) noexcept;

  void cancel() noexcept override;

  // For communicator.hpp. Its message has come: REQUIRES to be out of the queue.
  void matched(const Arrived& arrived, Round& round);
  // The same, by the calling thread, which holds no lock.
  void matched_here(const Arrived& arrived);
  // Brings near what matched() needs. REQUIRES: the link is near.
  void fetch() const noexcept;
  // Called after fetch(): brings near the buffer, and what is needed to wake the waiting task.
  void fetch_rest() const noexcept;

  Link link;  // under the communicator's lock

 private:
  // Starts the transfer; true if it is over.
  [[nodiscard]] bool begin_transfer(const Arrived& arrived);

 public:
  void* const buffer;
  MPI_Message message = MPI_MESSAGE_NULL;  // of Kind::message
};

// True if `type` is not one of the named types. Then it is kept alive by a copy, which its owner
// frees.
[[nodiscard]] bool is_derived(MPI_Datatype type);

// PMPI_Irecv and so on, whatever the width of the count.
int post(const Arguments& arguments, MPI_Request* request);
int receive_message(const Arguments& arguments, MPI_Message* message, MPI_Request* request);

}  // namespace imbrex::mpi::messages
