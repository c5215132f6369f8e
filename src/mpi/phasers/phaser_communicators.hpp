// SPDX-License-Identifier: BSD-3-Clause
// The communicators of phasers that span ranks. MPI requires one order of collectives on each
// communicator, and two phasers may end their phases in different orders on two ranks. Each phaser
// therefore has communicators of its own, for as long as it lives, from a pool that belongs to the
// communicator over which it was made.
//
// All ranks must take the same pair of a pool, though some ranks learn later than others that it is
// free: they agree by a bitwise "and" of the free pairs of each rank. A pair that is taken by a key
// is found by it, and waited for.
//
// Thread safety: any thread.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <string>

namespace imbrex::mpi::phasers {

struct Pool;

// Two communicators, with the ranks of the pool's communicator: each has its own order of
// collectives.
struct Channel {
  MPI_Comm phases = MPI_COMM_NULL;
  MPI_Comm farewells = MPI_COMM_NULL;  // where ranks report that they have left
  int rank = 0;
  int size = 0;
  std::shared_ptr<Pool> pool = nullptr;
  std::size_t slot = 0;
  std::optional<int> key = std::nullopt;
};

// Collective, as MpiPhaser's constructor. `wish` is a line of text that must be the same on all
// ranks. Throws Error, MpiError; suspends.
[[nodiscard]] Channel take_channel(MPI_Comm comm, std::optional<int> key, const std::string& wish);
// No rank uses it any more. `reusable`: no collective on it has failed, or been left open.
void give_back(const Channel& channel, bool reusable) noexcept;

// In MPI_Finalize: frees MPI's objects for pools.
void end_pools() noexcept;

}  // namespace imbrex::mpi::phasers
