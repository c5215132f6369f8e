// SPDX-License-Identifier: BSD-3-Clause
// Active messages: bytes that are sent to a rank and handed there to a function, its handler. This
// is the second narrow waist: what stands above MPI sees this header of src/mpi, and no other. It
// names no type of MPI's, so that what is compiled against it once runs with every MPI;
// docs/design/active.md shows how the same functions map to GASNet-EX and UCX.
//
// They go by a communicator of their own, which has the ranks of MPI_COMM_WORLD. It is opened in
// MPI_Init on all ranks if one of them wants it, or policy ga does, and closed in MPI_Finalize when
// every message has been handled.
//
// Order: messages of one rank to another are handled one after the other, as they were sent by each
// thread. Handlers of one process never run at the same time.
//
// Thread safety: every function, any thread, from a handler too where it says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>

#include "imbrex/error.hpp"

#pragma GCC visibility push(default)

namespace imbrex::mpi::active {

// Called by whoever polls. It must not wait (for a task, a message, or a lock that is held for
// long), and does not throw; it may send and make tasks. `message`: valid during the call only, and
// aligned for any fundamental type.
using Handler = void (*)(void* context, int from, std::span<const std::byte> message) noexcept;

// Names a handler on all ranks, as in GASNet: who sends names the function by a number that both
// sides know. A part of imbrex has its number here; from `first_free` on they are the plug-ins'.
enum class Id : std::uint8_t {
  paths, waves, futures, remote, pools, data,
  first_free = 16, last = 63
};

// Says that this process may use active messages, before MPI_Init. False: MPI_Init has been called,
// and has not opened them.
bool want() noexcept;
// Says that this process may call functions of other ranks, too.
bool want_calls() noexcept;
// If a rank has called want_calls(), MPI_Init calls `begin` on all ranks, also where nobody has
// asked for it: a rank that may be called must take the messages of calls. REQUIRES: the library is
// being loaded. `begin` makes no task and does not wait.
void take_calls_by(void (*begin)()) noexcept;
// True from MPI_Init to MPI_Finalize, on all ranks alike, where a rank wanted it.
[[nodiscard]] bool is_open() noexcept;
[[nodiscard]] bool calls_are_open() noexcept;

[[nodiscard]] int rank();
[[nodiscard]] int ranks();
// True if IMBREX_CHECK is on for all ranks.
[[nodiscard]] bool all_check() noexcept;

// From now on `handler` gets the messages of `id`; those that have come before are kept for it, so
// ranks need no agreement on when. Throws Error if `id` has one already.
void set_handler(Id id, Handler handler, void* context);

// The most that head and body of a message have together, in bytes. More goes by deliver().
inline constexpr std::size_t message_bytes_max = 3968;

// Sends `head` and then `body`, which arrive as one message. Copies both before it returns. Where
// the other rank is slow, a task is suspended and another thread blocked until there is room again;
// in a handler it never waits. Small messages to a rank travel together: when a packet is full, at
// the end of a poll, before a worker idles, and with flush(). Throws Error if the message is too
// long, there is no such rank, or active messages are not open.
void send(int to, Id id, std::span<const std::byte> head, std::span<const std::byte> body = {});
// Starts all that has been collected. In handlers, too. Never waits.
void flush() noexcept;

// Memory of this process in which data from another rank are to land. It is sent to that rank by a
// message, as bytes.
struct Landing {
  std::int32_t tag = -1;
  std::int32_t rank = -1;       // of whoever has offered it
  std::uint64_t bytes = 0;
};

// The most that a transfer has: more goes in parts.
inline constexpr std::size_t transfer_bytes_max = 2147483647;

// Called once, as a handler is, when a transfer has ended; `error` is null if it has succeeded.
using Ended = void (*)(void* context, std::exception_ptr error) noexcept;

// Makes `memory` a place for data of rank `from`. It must stay, untouched, until `ended`. In
// handlers, too. Never waits.
[[nodiscard]] Landing offer(int from, std::span<std::byte> memory, Ended ended, void* context);
// Sends `data`, at most as many bytes as the landing has, straight to it: no further agreement.
// They must stay, unchanged, until `ended`. In handlers, too. Never waits.
void deliver(const Landing& landing, std::span<const std::byte> data, Ended ended, void* context);

// While one lives, somebody here depends on messages of others: idle workers go on asking for them,
// and a process in which nothing else is left to do is not taken for stalled by itself; whether all
// ranks are is found out between them.
class Expecting {
 public:
  Expecting() noexcept;
  ~Expecting();
  Expecting(const Expecting&) = delete;
  Expecting& operator=(const Expecting&) = delete;
};

// From now on the report of a stall has the lines that `describe` appends, each ended, at most
// `lines_max`: what is under way here. It is called by any thread at any time, and must not wait.
using Describe = void (*)(void* context, std::size_t lines_max, std::string& text) noexcept;
void describe_by(Describe describe, void* context);

// Messages that this process has sent and handled so far. The sums over all ranks are equal when
// none is under way.
struct Counts {
  std::uint64_t sent = 0;
  std::uint64_t handled = 0;
};
[[nodiscard]] Counts counts() noexcept;

}  // namespace imbrex::mpi::active

#pragma GCC visibility pop
