// SPDX-License-Identifier: BSD-3-Clause
// The second narrow waist: all that stands above MPI sees of src/mpi this header, and no other.
// Names no type of MPI's, so that what is compiled against it once runs with every MPI.
//
// Everything here goes by the private communicator, which has the ranks of MPI_COMM_WORLD and on
// which no message meets one of the program's. Sizes are in bytes; a message that is longer than
// this MPI can count throws Error. A call of MPI that fails throws MpiError, or its future does.
// Outside of MPI_Init and MPI_Finalize every function but is_active() throws Error.
//
// Thread safety: every function, any thread. Buffers of what has been started must stay, and may
// not be touched (or, of a send, written), until its future is ready.
#pragma once

#include <climits>
#include <cstddef>
#include <vector>

#include "imbrex/error.hpp"
#include "imbrex/future.hpp"

#pragma GCC visibility push(default)

namespace imbrex::mpi::plugin {

// Stands for every source of a receive. There is none for every tag: such a receive would take the
// messages of other plug-ins and of imbrex itself, which go by the same communicator.
inline constexpr int any = INT_MIN;

// What a receive has got. After other operations the values mean nothing.
struct Arrival {
  int source = any;
  int tag = -1;
  std::size_t bytes = 0;
};

// True from MPI_Init to MPI_Finalize, on all ranks alike.
[[nodiscard]] bool is_active() noexcept;
[[nodiscard]] int rank();
[[nodiscard]] int ranks();

// The first of `count` tags that are the caller's: it uses no others. A tag that nobody has claimed
// here is refused by an Error. The same on every rank if all claim in the same order. Throws Error
// if there are no more: all together have 1,023.
[[nodiscard]] int claim_tags(int count);

// As a blocking call of MPI in a task: suspends the task, outside of tasks it blocks.
void send(int to, int tag, const void* data, std::size_t bytes);
// `bytes_max`: a longer message is an error. Suspends.
Arrival receive(int from, int tag, void* buffer, std::size_t bytes_max);
// A message of any length; its source and tag go to `arrival`. Suspends.
[[nodiscard]] std::vector<std::byte> receive_whole(int from, int tag, Arrival& arrival);

// The same as operations of the engine: these return at once. The future may be waited for, by a
// task also as a dependency.
[[nodiscard]] Future<Arrival> start_send(int to, int tag, const void* data, std::size_t bytes);
[[nodiscard]] Future<Arrival> start_receive(int from, int tag, void* buffer,
                                            std::size_t bytes_max);
// Ready when every rank has started it; all ranks must start theirs in the same order.
[[nodiscard]] Future<Arrival> start_barrier();

}  // namespace imbrex::mpi::plugin

#pragma GCC visibility pop
