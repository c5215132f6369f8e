// SPDX-License-Identifier: BSD-3-Clause
// A partial collective in flight: its parts, each a transfer and a promise. Used by
// block_plans.cpp, which defines the parts of each kind.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <vector>

#include "base/guarded.hpp"
#include "imbrex/collective.hpp"
#include "imbrex/detail/observation.hpp"
#include "mpi/check/checks.hpp"
#include "mpi/check/ranks/ranks.hpp"
#include "mpi/collectives/blocks/block_channel.hpp"
#include "mpi/collectives/blocks/block_transfer.hpp"
#include "mpi/collectives/blocks/neighbors.hpp"

namespace imbrex::mpi::blocks {

// One part of a block, in one direction.
struct Part : Transfer {
  detail::CollectiveState* state = nullptr;
  Promise<void> promise{"part of a collective", std::source_location()};
  bool incoming = false;
  int number = 0;
  int neighbor = -1;  // its index, in a collective of neighbours
  int edge = 0;       // Neighbor::edge
  std::ptrdiff_t displacement = 0;
  std::atomic<bool> left{false};  // outgoing: it has been sent, or withdrawn
  std::exception_ptr withdrawn_for;  // outgoing: the reason; written before it begins
  std::uint32_t in_trace = 0;  // its number there; 0: it has no records
  Part* partner = nullptr;  // at its end: for a copy, its destination; for a broadcast, the
                            // outgoing part
  std::unique_ptr<check::Guard> guard;  // under IMBREX_CHECK, while it uses its memory
};

}  // namespace imbrex::mpi::blocks

namespace imbrex::detail {

// Thread safety: one thread calls plan() and start(), before others know the object; any thread
// calls the rest.
// Invariants:
//   (1) `open` counts the parts that have not ended, and one more until start() has returned.
//   (2) it lives until there is no handle and `open` is 0.
struct CollectiveState {
  using Place = mpi::blocks::Place;
  using Part = mpi::blocks::Part;
  using Parts = std::vector<std::unique_ptr<Part>>;

  CollectiveState(const char* its_call, std::shared_ptr<Place> its_place,
                  mpi::blocks::Kind its_kind, int its_root, const CollectiveOptions& options,
                  std::unique_ptr<const mpi::blocks::Neighbors> its_neighbors);
  ~CollectiveState();
  CollectiveState(const CollectiveState&) = delete;
  CollectiveState& operator=(const CollectiveState&) = delete;

  // Adds a part of a block, unless it has no bytes: a message of no bytes withdraws a part. Throws
  // Error for wrong arguments.
  void plan(bool incoming, int block, int part, const void* address, const Piece& piece);
  // Begins it. REQUIRES: it has its number, and the place its duplicates.
  void start();
  void start_reductions();
  // The records of a trace. record_begin(): `passes_on`: the part sends what another one has
  // brought. record_joint(): `all` is complete when the parts are.
  void record_begin(Part& part, bool passes_on);
  void record_end(const Part& part) const noexcept;
  void record_joint() const;
  // `part` uses its memory from now on. `sent`: further input of a reduction.
  void watch(Part& part, const void* sent);
  void let_go(Part& part);
  // The part of the other rank shall fail, too.
  void withdraw(Part& part, const std::exception_ptr& why) noexcept;
  // `error` is null if and only if `code` is MPI_SUCCESS.
  void end(Part& part, int code, const std::exception_ptr& error) noexcept;
  void notify_watcher(const Part& part, int code) const noexcept;  // to the observers of events
  void count_down() noexcept;
  void drop_reference() noexcept;
  // The last handle is gone.
  void abandon() noexcept;
  // The held parts end with an error, since no code can send them any more. False: there are none.
  // The caller has a reference.
  bool give_up(const char* why) noexcept;

  // Blocks are counted by rank or, in a neighbourhood collective, by neighbour.
  [[nodiscard]] int block_count(bool incoming) const noexcept;
  [[nodiscard]] int peer_of(bool incoming, int block) const noexcept;
  [[nodiscard]] std::size_t index(bool incoming, int block, int part) const;  // throws Error
  // Its parts that have not ended. REQUIRES: it has started, and is open.
  void describe(std::vector<std::string>& lines) const;
  // `rank`; but in a broadcast the rank before or after this one, and in a reduction this one: it
  // exchanges parts with no other.
  [[nodiscard]] int neighbour_for(int rank, int step) const;
  [[nodiscard]] Future<void> future_of(bool incoming, int block, int part) const;
  [[nodiscard]] MPI_Datatype keep(MPI_Datatype type);

  static void ended(mpi::blocks::Transfer& transfer, int code) noexcept;

  const char* const call;
  const std::shared_ptr<Place> place;
  const mpi::blocks::Kind kind;
  const int root;
  const int parts;
  const bool hold;
  // Null: the blocks belong to ranks.
  const std::unique_ptr<const mpi::blocks::Neighbors> neighbors;
  const TaskLabel task = current_task();
  const void* reduced = nullptr;  // for a reduction: its input, perhaps MPI_IN_PLACE; and its
                                  // operation
  MPI_Op op = MPI_OP_NULL;
  int instance = -1;  // its number on the communicator
  mpi::check::Compared compared;  // until all its parts have ended
  Parts incoming;  // by block and part; null: no data are sent
  Parts outgoing;
  std::map<MPI_Datatype, MPI_Datatype> types;  // copies of types that the program may free
  Promise<void> ready{"part of a collective", std::source_location()};
  Promise<void> all{"collective", std::source_location()};
  std::atomic<int> handles{1};
  std::atomic<int> references{2};  // one for all handles, one for all open parts
  std::atomic<int> open{1};
  std::mutex lock;
  std::exception_ptr first_error IMBREX_GUARDED_BY(lock);
};

}  // namespace imbrex::detail
