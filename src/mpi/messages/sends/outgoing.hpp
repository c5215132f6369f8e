// SPDX-License-Identifier: BSD-3-Clause
// How sending calls begin: most go to MPI unchanged, at a cost of a few instructions. Used by
// calls/.
//
// Thread safety: any thread calls every function.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "mpi/engine/engine.hpp"
#include "mpi/messages/sends/window.hpp"

namespace imbrex::mpi::sends {

// start() in MPI_Init; end() in MPI_Finalize, once no task is left: waiting messages go to MPI, and
// messages whose requests the program has freed (MPI_Request_free) end.
void start();
void finish() noexcept;

// What a call of this name, without MPI_, requires of the receiver; a buffered send never waits.
enum class Asks : std::uint8_t { nothing, receive, posted, buffers };
[[nodiscard]] consteval Asks asks_of(std::string_view name) {
  if (name.starts_with('I')) name.remove_prefix(1);
  switch (name.front() | 0x20) {
    case 'b': return Asks::buffers;
    case 'r': return Asks::posted;
    default: return name[1] == 's' ? Asks::receive : Asks::nothing;
  }
}
[[nodiscard]] constexpr Mode mode_of(const Asks asks) noexcept {
  return asks == Asks::receive  ? Mode::synchronous
         : asks == Asks::posted ? Mode::ready
                                : Mode::standard;
}

// Whether a call may go to MPI unchanged: its message is short, and none waits.
[[nodiscard]] inline bool passes(MPI_Count count, MPI_Datatype type) noexcept;

// The route of a call that does not pass, if it must begin here. Without a route it goes to MPI
// after all, and messages that it must not overtake have gone before. `is_part`: a long part of a
// collective.
[[nodiscard]] Route route_of(const Outgoing& outgoing, Asks asks, bool is_part = false) noexcept;
// These carry out a call that has a route. send() suspends in a task.
[[nodiscard]] int send(const Call& call, const Outgoing& outgoing, const Route& route);
[[nodiscard]] int isend(const Call& call, const Outgoing& outgoing, const Route& route,
                        MPI_Request* request);
// A Send for a caller that gives it to the window itself, and listens to it. REQUIRES: it has a
// route.
[[nodiscard]] std::unique_ptr<Send> make(const Call& call, const Outgoing& outgoing,
                                         const Route& route, bool is_part = false);
// MPI_Start of a sending request.
[[nodiscard]] int start(messages::Persistent& persistent, MPI_Request* request);

// Whether messages of this length count: a persistent request for one is started here.
[[nodiscard]] bool is_long(MPI_Count count, MPI_Datatype type) noexcept;

// MPI itself will send to that peer, or (-1) to some peer of some communicator: waiting messages to
// it go first.
void let_go_before(MPI_Comm comm, int peer) noexcept;
inline void let_go_before_any() noexcept {
  if (waiting.load(std::memory_order_acquire) != 0) window().let_go(nullptr, -1);
}

// ---- inline ----------------------------------------------------------------------------------

// Written in MPI_Init; relaxed, as MPI orders calls behind that.
struct Bounds {
  std::atomic<std::int64_t> bytes{-1};  // longer messages are long; -1: lengths are not checked
  std::atomic<MPI_Count> few{-1};       // number of elements of a known type that are always short
  // Named types, at places by their handles; any thread, relaxed: any recent value is right.
  static constexpr int types_bits = 4;
  std::array<std::atomic<MPI_Datatype>, std::size_t{1} << types_bits> known{};

  [[nodiscard]] std::atomic<MPI_Datatype>& place(MPI_Datatype type) noexcept {
    const std::uint64_t hash = (std::uintptr_t)type * 0x9E3779B97F4A7C15u;
    return known[hash >> (64 - types_bits)];
  }
};
inline Bounds bounds;

// True once it is known that the message is short.
[[nodiscard]] bool learn_short(MPI_Count count, MPI_Datatype type) noexcept;

inline bool passes(const MPI_Count count, const MPI_Datatype type) noexcept {
  const bool is_short = count <= bounds.few.load(std::memory_order_relaxed) &&
                        bounds.place(type).load(std::memory_order_relaxed) == type;
  // Acquire: pairs with the release of waiting messages: MPI has them.
  return (is_short || learn_short(count, type)) && waiting.load(std::memory_order_acquire) == 0;
}

}  // namespace imbrex::mpi::sends
