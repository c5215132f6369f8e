// SPDX-License-Identifier: BSD-3-Clause
// Under policy ga ranks tell each other how long the work is that a message has opened where it was
// received. Lost figures harm nobody, so nothing here waits. How they travel is the carrier's
// matter: init_and_finalize.cpp gives them to active messages, which stand above this folder.
//
// Thread safety: open and close by one thread; the rest, any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace imbrex::mpi::paths {

// The most bytes that a letter has.
inline constexpr std::size_t letter_bytes_max = 3968;

struct Carrier {
  // Sends a letter to a rank of MPI_COMM_WORLD. False, and nothing is sent, if there is no room; it
  // does not wait, and makes no call of MPI.
  bool (*send)(int to, std::span<const std::byte> letter) noexcept;
  // Looks whether letters have come; may hand them to take().
  void (*poll)() noexcept;
};

// In MPI_Init and MPI_Finalize, if the policy of every rank wants it.
void open(const Carrier& carrier);
// Nothing is sent from here on. What still comes may be taken.
void close();
[[nodiscard]] bool are_open() noexcept;

// A letter of another rank.
void take(int from, std::span<const std::byte> letter) noexcept;

// A message between this rank and `peer` of MPI_COMM_WORLD; `communicator` as in a MessageRecord.
void sent(int peer, int tag, std::uint32_t communicator) noexcept;
void received(int peer, int tag, std::uint32_t communicator) noexcept;

// Called again and again while a task polls in place, where nobody calls send(), too; looks once in
// a millisecond.
void poll() noexcept;
// Called again and again while workers poll: sends what is written, once in a millisecond.
void send() noexcept;

}  // namespace imbrex::mpi::paths
