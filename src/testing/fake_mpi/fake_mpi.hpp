// SPDX-License-Identifier: BSD-3-Clause
// The strings of fake_mpi: what tests use to play the other ranks and the network. One process is
// rank 0 of a world whose other ranks are scripted; a message that one of them has sent is under
// way until it arrives, which the test says, or patience. Knows nothing of imbrex.
//
// Thread safety: every function, any thread, unless it says otherwise.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace imbrex::fake_mpi {

struct Settings {
  int ranks = 3;           // of MPI_COMM_WORLD; this process is rank 0
  std::uint64_t seed = 1;  // for the order in which patience lets messages arrive, and for yields
  int patience = 50;       // questions in a row without an arrival before one comes; 0: never
  int yields = 0;          // of 100 calls: the thread offers the processor inside
  bool late = false;       // Test and its kin look first and make progress then, as Open MPI's do
  bool watch_held = false;  // a receive posted while a message that it fits is matched is a breach
  int thread_level = MPI_THREAD_MULTIPLE;
  bool handles_again = false;  // a request gets the handle of the last that has ended
  int send_rounds = 4;     // questions, less than this, until a message to another rank has left
  int tag_max = 1 << 20;   // MPI_TAG_UB
  bool sends_stay = false;  // it leaves when end_send() says so
};

// Forgets everything and begins a new world; MPI may be initialised anew. REQUIRES: no thread is in
// an MPI function.
void reset(const Settings& settings);

// ---- messages --------------------------------------------------------------------------------

struct Sending {
  MPI_Comm comm;
  int source;
  int tag;
  std::vector<std::byte> bytes;
  bool synchronous = false;  // has_matched() asks for it
  int rounds = 0;            // questions between the match and the end of the transfer
  int error = MPI_SUCCESS;   // the receive that matches fails with this code
};

// A rank sends; the message is under way. Returns its number, from 1.
std::uint64_t send(const Sending& sending);

// The next message of this stream, or of any, reaches this rank. False if there is none. Within a
// stream (communicator and source) messages never overtake each other.
bool arrive(MPI_Comm comm, int source);
bool arrive_any();

// Whether a receive has begun to take it: then a synchronous send is complete.
[[nodiscard]] bool has_matched(std::uint64_t message);

// The messages that have reached this rank on `comm`, in order; also once it is freed.
[[nodiscard]] std::vector<Sending> arrived(MPI_Comm comm);
[[nodiscard]] int under_way();
// How many have been sent on it, whether they have arrived or not.
[[nodiscard]] int count_sent(MPI_Comm comm);

// What the other ranks together add to a sum of two 64-bit integers over all of them, asked for
// when this rank contributes its own. Without it no sum is allowed.
void set_others(std::array<std::int64_t, 2> (*others)());

// The communicator that has this name; MPI_COMM_NULL if none has.
[[nodiscard]] MPI_Comm named(const std::string& name);
// The value for the duplicates of `comm`.
[[nodiscard]] MPI_Comm duplicate_named(MPI_Comm comm, const std::string& name);

// What stands at `buffer`, where a receive may be under way.
[[nodiscard]] std::uint64_t peek(const std::uint64_t& buffer);

// What this rank has sent to the others, in order, but for the first `after`.
struct Sent {
  MPI_Comm comm;
  int destination;
  int tag;
  std::vector<std::byte> bytes;
};
[[nodiscard]] std::vector<Sent> sent(std::size_t after = 0);

// The collectives that this rank has begun, in order; a duplicate counts as one.
struct Begun {
  MPI_Comm comm;
  const void* buffer;  // where data are received; null: none are
  bool beside;         // another thread was beginning one on this communicator, which MPI forbids
};
[[nodiscard]] std::vector<Begun> begun();

// With `sends_stay`: the message at this place of sent() has left. False if it had already.
bool end_send(std::size_t place);

// ---- faults ----------------------------------------------------------------------------------

// The next call but `after` of PMPI_<function> fails with this code, by the error handler of its
// communicator, and does nothing.
void fail(const char* function, int after, int code);

// A rank of MPI_COMM_WORLD dies. What is sent to it from now on fails, and so does each receive
// that no message has met and that it might have met: from it with MPIX_ERR_PROC_FAILED, from any
// source with MPIX_ERR_PROC_FAILED_PENDING, which names no rank. MPIX_Comm_get_failed tells of it.
void lose(int rank);

// ---- what the callers did --------------------------------------------------------------------

// Breaches of MPI's rules so far: a request used after its completion or by two threads, buffers
// that overlap, what is left at MPI_Finalize, and so on.
[[nodiscard]] std::vector<std::string> breaches();

// An intercommunicator between this rank and `remote` others.
[[nodiscard]] MPI_Comm intercommunicator(int remote);

// How often PMPI_<function> has been called.
[[nodiscard]] std::uint64_t calls(const char* function);

}  // namespace imbrex::fake_mpi
