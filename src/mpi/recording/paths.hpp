// SPDX-License-Identifier: BSD-3-Clause
// Under policy ga ranks tell each other the length of the work that a message has opened where it
// was received. Lost figures do no harm, so nothing here waits. The carrier transports them:
// init_and_finalize.cpp gives them to active messages, which are above this folder.
//
// Thread safety: one thread opens and closes; any thread calls the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace imbrex::mpi::paths {

// The most bytes of a letter.
inline constexpr std::size_t letter_bytes_max = 3968;

struct Carrier {
  // Sends a letter to a rank of MPI_COMM_WORLD. False, and nothing is sent, if there is no room; it
  // does not wait, and makes no call of MPI.
  bool (*send)(int to, std::span<const std::byte> letter) noexcept;
  // Checks for arrived letters; may give them to take().
  void (*poll)() noexcept;
};

// In MPI_Init and MPI_Finalize, if the policy of every rank wants it.
void open(const Carrier& carrier);
// Nothing is sent from here on. Late letters may still be taken.
void close();
[[nodiscard]] bool are_open() noexcept;

// A letter of another rank.
void take(int from, std::span<const std::byte> letter) noexcept;

// A message between this rank and `peer` of MPI_COMM_WORLD; `communicator` as in a MessageRecord.
void sent(int peer, int tag, std::uint32_t communicator) noexcept;
void received(int peer, int tag, std::uint32_t communicator) noexcept;

// Called repeatedly while a task polls in place, where no thread calls send(); checks once in a
// millisecond.
void poll() noexcept;
// Called repeatedly while workers poll: sends the written figures, once in a millisecond.
void send() noexcept;

}  // namespace imbrex::mpi::paths
