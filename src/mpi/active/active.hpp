// SPDX-License-Identifier: BSD-3-Clause
// Active messages: bytes that are sent to a rank and handed there to a function, its handler. This
// is the second narrow waist: code above MPI sees this header of src/mpi, and no other. It names no
// type of MPI, so that code compiled against it once runs with every MPI; docs/design/active.md
// shows how the functions map to GASNet-EX and UCX.
//
// The messages use a communicator of their own, which has the ranks of MPI_COMM_WORLD. MPI_Init
// opens it on all ranks if a rank wants it, or policy ga does. MPI_Finalize closes it when every
// message has been handled.
//
// Order: messages of one rank to another are handled one after the other, as each thread sent them.
// Handlers of one process never run at the same time.
//
// Thread safety: any thread calls every function; handlers call those whose comment says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>

#include "imbrex/error.hpp"

#pragma GCC visibility push(default)

namespace imbrex::mpi::active {

// Called by the polling thread. It must not wait (for a task, a message, or a lock that is held for
// long), and does not throw; it may send and make tasks. `message`: valid during the call only, and
// aligned for any fundamental type.
using Handler = void (*)(void* context, int from, std::span<const std::byte> message) noexcept;

// Names a handler on all ranks, as in GASNet: the sender names the function by a number that both
// sides know. Each part of imbrex has its number here; numbers from `first_free` on are for
// plug-ins.
enum class Id : std::uint8_t {
  paths, waves, futures, remote, pools, data,
  first_free = 16, last = 63
};

// Says, before MPI_Init, that this process may use active messages. After MPI_Init it changes
// nothing.
void want() noexcept;
// Says that this process may call functions of other ranks, too.
void want_calls() noexcept;
// If a rank has called want_calls(), MPI_Init calls `begin` on all ranks: a rank that may be called
// must take the messages of calls. REQUIRES: the library is being loaded. `begin` makes no task and
// does not wait.
void take_calls_by(void (*begin)()) noexcept;
// True from MPI_Init to MPI_Finalize, the same on all ranks, if a rank wanted it.
[[nodiscard]] bool is_open() noexcept;
[[nodiscard]] bool calls_are_open() noexcept;

[[nodiscard]] int rank();
[[nodiscard]] int ranks();
// True if IMBREX_CHECK is on for all ranks.
[[nodiscard]] bool all_check() noexcept;

// From now on `handler` gets the messages of `id`; earlier messages are kept for it, so ranks need
// no agreement on the time. Throws Error if `id` has a handler already.
void set_handler(Id id, Handler handler, void* context);

// The most bytes of head and body of a message together. Longer data go by deliver().
inline constexpr std::size_t message_bytes_max = 3968;

// Sends `head` and then `body`, which arrive as one message. Copies both before it returns. If the
// other rank is slow, a task is suspended and another thread blocked until there is room again; a
// handler never waits. Small messages to a rank travel together: when a packet is full, at the end
// of a poll, before a worker idles, and with flush(). Throws Error if the message is too long,
// there is no such rank, or active messages are not open.
void send(int to, Id id, std::span<const std::byte> head, std::span<const std::byte> body = {});
// Starts all collected messages. Also in handlers. Never waits.
void flush() noexcept;

// Memory of this process for data from another rank. A message brings it to that rank, as bytes.
struct Landing {
  std::int32_t tag = -1;
  std::int32_t rank = -1;       // the rank that has offered it
  std::uint64_t bytes = 0;
};

// The most bytes of a transfer: longer data go in parts.
inline constexpr std::size_t transfer_bytes_max = 2147483647;

// Called once, under the rules of a handler, when a transfer has ended; `error` is null if it has
// succeeded.
using Ended = void (*)(void* context, std::exception_ptr error) noexcept;

// Makes `memory` a landing for data of rank `from`. It must stay, untouched, until `ended`. Also in
// handlers. Never waits.
[[nodiscard]] Landing offer(int from, std::span<std::byte> memory, Ended ended, void* context);
// Sends `data`, at most as many bytes as the landing has, directly to it, without further
// agreement. They must stay, unchanged, until `ended`. Also in handlers. Never waits.
void deliver(const Landing& landing, std::span<const std::byte> data, Ended ended, void* context);

// While one lives, code here depends on messages of other ranks: idle workers keep polling, and an
// idle process is not reported as stalled by itself; the ranks find out together whether all are
// stalled.
class Expecting {
 public:
  Expecting() noexcept;
  ~Expecting();
  Expecting(const Expecting&) = delete;
  Expecting& operator=(const Expecting&) = delete;
};

// From now on the report of a stall has the lines that `describe` appends, each ended, at most
// `lines_max`: the operations in flight here. Any thread calls it at any time, and it must not
// wait.
using Describe = void (*)(void* context, std::size_t lines_max, std::string& text) noexcept;
void describe_by(Describe describe, void* context);

// The messages that this process has sent and handled so far. The sums over all ranks are equal
// when no message is in flight.
struct Counts {
  std::uint64_t sent = 0;
  std::uint64_t handled = 0;
};
[[nodiscard]] Counts counts() noexcept;

}  // namespace imbrex::mpi::active

#pragma GCC visibility pop
