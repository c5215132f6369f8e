// SPDX-License-Identifier: BSD-3-Clause
// Partial collectives: a collective of MPI whose blocks, and parts of blocks, are futures. A task
// runs as soon as the part that it needs is here; a part leaves as soon as the task that computes
// it has ended. The idea is from Castillo et al., ICS 2019, section 3.4, where the whole block of a
// rank becomes an event. docs/user/partial-collectives.md.
#pragma once

#include "imbrex/detail/language.hpp"

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <span>

#include "imbrex/future.hpp"

#pragma GCC visibility push(default)

namespace imbrex {

/// The blocks of one side of a collective, one for each rank, described as MPI's arguments do:
///   {address, count, type}: the block of rank r begins at r * count elements. Where the collective
///     has one block only (the send side of gather, the receive side of scatter), it is at
///     `address`.
///   {.address = a, .type = t, .counts = c, .displacements = d}: the form of MPI_Alltoallv; the
///     displacements are in elements of `type`.
///   {.address = a, .counts = c, .displacements = d, .types = t}: the form of MPI_Alltoallw; the
///     displacements are in bytes.
/// The call reads the arrays before it returns. The types may be freed after the call. The data
/// must live until the futures of their parts are ready. A block of no elements is not sent, and
/// its parts are ready at once.
template <class Address>
struct Blocks {
  Address address = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::span<const int> counts = {};
  std::span<const int> displacements = {};
  std::span<const MPI_Datatype> types = {};
};
using SendBlocks = Blocks<const void*>;
using ReceiveBlocks = Blocks<void*>;

/// A part of a block: `count` elements of `type`, `displacement` bytes from the address of the
/// blocks. With `count` 0 the part does not exist.
struct Piece {
  std::ptrdiff_t displacement = 0;
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

struct CollectiveOptions {
  // Number of parts of each block, 1 to most_parts(); the same on all ranks. Part p of n elements
  // begins at element n * p / parts, so both sides of a block must have the same number of
  // elements. Where the sides differ, `outgoing` and `incoming` describe the parts.
  int parts = 1;
  // True: a part of this rank leaves when send() is called for it. False: all parts leave at once.
  // Each rank may choose.
  bool hold = false;
  // If given: returns part `part` of the block that goes to `rank`, or comes from `rank`. The call
  // that makes the object calls these functions once for each part. Both ranks of a part must
  // describe the same type signature, or no elements.
  std::function<Piece(int rank, int part)> outgoing = {};
  std::function<Piece(int rank, int part)> incoming = {};
  // The name in reports, a string literal; null: the name of the function that makes the
  // collective.
  const char* name = nullptr;
};

class Collective;
namespace detail {
struct CollectiveState;
// Takes over a reference.
[[nodiscard]] Collective collective_of(CollectiveState* owned) noexcept;
}  // namespace detail

/// A collective that is in flight, made by the functions below. All ranks of the communicator make
/// it, in the same order as their other collectives there. Several collectives may be in flight at
/// once.
///
/// Copies name the same collective. The last copy may be destroyed before the collective is over:
/// the collective then goes on, and the data must still live. A held part that was not sent is then
/// never sent: a message on standard error names it, its futures and all() throw Error, and the
/// part fails on the receiving rank.
///
/// A part fails by itself: its future throws MpiError. Causes are a truncated message, a failed
/// process, a part that is never sent (MPI_ERR_OTHER), or, in a broadcast, an earlier rank that has
/// not got the part (MPI_ERR_OTHER). all() throws the first error once all parts have ended. An
/// error that neither all().get() nor a finish() has rethrown is reported at the end of the
/// program, so ask all() even where the futures of parts are asked.
///
/// Thread safety: any task or thread may call every const member. No member suspends.
class Collective {
 public:
  /// Names no collective; its members throw Error.
  Collective() = default;
  Collective(const Collective& other) noexcept;
  Collective(Collective&& other) noexcept;
  Collective& operator=(Collective other) noexcept;
  ~Collective();

  /// Returns a future that is ready when this part of the block from `rank` has arrived; at once if
  /// no data comes. Any thread; never suspends. Throws Error for a rank or a part that does not
  /// exist.
  [[nodiscard]] Future<void> from(int rank, int part = 0) const;
  /// Returns a future that is ready when this part of the block for `rank` may be overwritten. Any
  /// thread; never suspends. Throws Error for a rank or a part that does not exist.
  [[nodiscard]] Future<void> to(int rank, int part = 0) const;
  /// Sends a part of a collective with `hold`. Any thread; never suspends. Throws Error if the part
  /// has been sent before, or if the collective holds no parts.
  void send(int rank, int part = 0) const;
  /// Returns a future that is ready when all parts are, in both directions. Any thread; never
  /// suspends.
  [[nodiscard]] Future<void> all() const;
  /// Returns the number of parts of each block. Any thread; never suspends.
  [[nodiscard]] int parts() const;

 private:
  friend Collective detail::collective_of(detail::CollectiveState* owned) noexcept;
  explicit Collective(detail::CollectiveState* owned) noexcept : state_(owned) {}
  detail::CollectiveState* state_ = nullptr;
};

/// From this call until the running task ends, a collective call of the task that goes block by
/// block ends the task's accesses to the blocks, one by one. An access (in(), out() or inout()) to
/// a block ends when the block has arrived or has left: during the call, or after the call and the
/// task. The task must not touch memory that it has given to such a call. The calls are
/// MPI_Alltoall, MPI_Allgather, MPI_Gather, MPI_Scatter and their forms I, v, w and neighbor
/// (IMBREX_PARTIAL, docs/user/partial-collectives.md). An access by an address alone stands for the
/// memory up to the next declared access. An access to several blocks ends with the last of them.
/// An access outside of the buffers ends with the task. If a block fails, the tasks that begin from
/// its access fail, and the call returns the error code. Any task; never suspends. Throws Error
/// outside of tasks. (Castillo et al., ICS 2019, section 3.4.)
void release_by_blocks();

/// Returns the largest number of parts of a block on this communicator: 64 or more, limited by
/// MPI_TAG_UB. Any thread; never suspends.
[[nodiscard]] int most_parts(MPI_Comm comm);

/// The functions below begin a collective: they post its receives, and send all parts that are not
/// held through the queue of docs/user/sends.md, to rank + 1 first. The first call on a
/// communicator duplicates it, and suspends until all ranks have called. Any task or thread may
/// call them. They throw Error for wrong arguments, for an intercommunicator, and outside of
/// MPI_Init and MPI_Finalize, and MpiError if MPI fails.
///
/// alltoall() is MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw by blocks. MPI_IN_PLACE: Error.
[[nodiscard]] Collective alltoall(const SendBlocks& send, const ReceiveBlocks& receive,
                                  MPI_Comm comm, const CollectiveOptions& options = {});
/// MPI_Allgather and MPI_Allgatherv. `send` has one block, which goes to all ranks; send(r, p)
/// sends its part p to rank r. With MPI_IN_PLACE as the address of `send`, this rank's block is in
/// its place in `receive`. May suspend, as all functions of this group.
[[nodiscard]] Collective allgather(const SendBlocks& send, const ReceiveBlocks& receive,
                                   MPI_Comm comm, const CollectiveOptions& options = {});
/// MPI_Gather and MPI_Gatherv. Only the root reads `receive`. MPI_IN_PLACE is allowed on the root,
/// as in MPI. May suspend, as all functions of this group.
[[nodiscard]] Collective gather(const SendBlocks& send, const ReceiveBlocks& receive, int root,
                                MPI_Comm comm, const CollectiveOptions& options = {});
/// MPI_Scatter and MPI_Scatterv. Only the root reads `send`. MPI_IN_PLACE is allowed as the address
/// of the root's `receive`. May suspend, as all functions of this group.
[[nodiscard]] Collective scatter(const SendBlocks& send, const ReceiveBlocks& receive, int root,
                                 MPI_Comm comm, const CollectiveOptions& options = {});
/// MPI_Bcast in parts, along the chain of ranks from the root on: each rank passes a part on as it
/// arrives. For every rank r, from(r, p) is ready when part p has arrived, and to(r, p) when part p
/// has left for the next rank of the chain. send(r, p) sends the part on the root, and does nothing
/// on other ranks. Parts of irregular shape: `outgoing` on the root, `incoming` on the others. May
/// suspend, as all functions of this group.
[[nodiscard]] Collective broadcast(const ReceiveBlocks& data, int root, MPI_Comm comm,
                                   const CollectiveOptions& options = {});
/// MPI_Allreduce in parts; each part is one reduction of MPI. For every rank r, from(r, p) and
/// to(r, p) are ready when the result of part p is here. `send` has the count and the type of
/// `receive`, or the address MPI_IN_PLACE. `op` is predefined, or must live until all() is ready.
/// Parts of irregular shape: `incoming`, for both sides. `hold`: Error. May suspend, as all
/// functions of this group.
[[nodiscard]] Collective allreduce(const SendBlocks& send, const ReceiveBlocks& receive, MPI_Op op,
                                   MPI_Comm comm, const CollectiveOptions& options = {});

/// MPI_Neighbor_alltoall, MPI_Neighbor_alltoallv and MPI_Neighbor_alltoallw by blocks, on a
/// communicator with a topology: Cartesian, graph or distributed graph. The index of a neighbour
/// replaces the rank: there is one block for each neighbour, in MPI's order (Cartesian: below and
/// above in the first dimension, then in the second). from(i, p) belongs to the i-th source; to(i,
/// p) and send(i, p) to the i-th destination, as do `incoming` and `outgoing`. A neighbour
/// MPI_PROC_NULL sends and receives nothing: its parts are ready at once, and its block is not
/// touched. Where one rank is a neighbour several times, its blocks arrive in the order in which
/// they are sent. In a Cartesian topology, a block for the neighbour below arrives there as the
/// block from above. With n edges from one rank to another, parts * n may be most_parts() at most.
/// Edges are sent in their order. MPI_IN_PLACE: Error. May suspend, as all functions of this group.
[[nodiscard]] Collective neighbor_alltoall(const SendBlocks& send, const ReceiveBlocks& receive,
                                           MPI_Comm comm, const CollectiveOptions& options = {});
/// MPI_Neighbor_allgather and MPI_Neighbor_allgatherv. `send` has one block, which goes to all
/// destinations. May suspend, as all functions of this group.
[[nodiscard]] Collective neighbor_allgather(const SendBlocks& send, const ReceiveBlocks& receive,
                                            MPI_Comm comm, const CollectiveOptions& options = {});

}  // namespace imbrex

#pragma GCC visibility pop
