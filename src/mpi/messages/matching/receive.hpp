// SPDX-License-Identifier: BSD-3-Clause
// One receive that imbrex matches itself, from the call that makes it to the call that takes its
// result. Used by messages/calls/; communicator.hpp finds its message.
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

// A message that MPI has matched for this library.
struct Arrived {
  MPI_Message message;
  MPI_Status status;
};

// Thread safety: as Substitute. In its communicator's queue, in flight at the engine, or complete.
class alignas(64) Receive final : public Substitute {
 public:
  // The type is kept alive until the message has arrived. `at_once`: as in Call.
  Receive(const char* name, const Arguments& arguments, Communicator& communicator, Kind kind,
          bool at_once);
  ~Receive() override;
  // The memory is a slot of a store that is never freed: it has at most as many slots as were in
  // use at once.
  static void* operator new(std::size_t bytes);
  static void operator delete(void* slot) noexcept;

  void cancel() noexcept override;

  // For communicator.hpp. Its message has arrived. REQUIRES: it is not in the queue.
  void matched(const Arrived& arrived, Round& round);
  // matched() by the calling thread, which holds no lock.
  void matched_here(const Arrived& arrived);
  // Prefetches the data for matched(). REQUIRES: the link is in a near cache.
  void fetch() const noexcept;
  // Called after fetch(): prefetches the buffer, and the data that wake the waiting task.
  void fetch_rest() const noexcept;

  Link link;  // under the communicator's lock

 private:
  // Starts the transfer; true if it is over.
  [[nodiscard]] bool begin_transfer(const Arrived& arrived);

 public:
  void* const buffer;
  MPI_Message message = MPI_MESSAGE_NULL;  // for Kind::message
};

// True if `type` is not a named type. A copy then keeps it alive, which its owner frees.
[[nodiscard]] bool is_derived(MPI_Datatype type);

// PMPI_Irecv and its variants, whatever the width of the count.
int post(const Arguments& arguments, MPI_Request* request);
int receive_message(const Arguments& arguments, MPI_Message* message, MPI_Request* request);

}  // namespace imbrex::mpi::messages
