// SPDX-License-Identifier: BSD-3-Clause
// Partial collectives: a collective of MPI whose blocks, and parts of blocks, are futures, so that
// a task runs as soon as the part that it needs is here, and a part leaves as soon as the task that
// computes it has ended. (Castillo et al., ICS 2019, section 3.4, for whom it is the whole block of
// a rank that becomes an event.) docs/user/partial-collectives.md.
#pragma once

#include "imbrex/detail/language.hpp"

#include <mpi.h>

#include <cstddef>
#include <functional>
#include <span>

#include "imbrex/future.hpp"

#pragma GCC visibility push(default)

namespace imbrex {

/// The blocks of one side of a collective, one for each rank, in the words of MPI's arguments:
///   {address, count, type}: the block of rank r begins at r * count elements; where the collective
///     has one block only (what gather sends, what scatter receives), it is at `address`.
///   {.address = a, .type = t, .counts = c, .displacements = d}: as MPI_Alltoallv and its like; the
///     displacements are in elements of `type`.
///   {.address = a, .counts = c, .displacements = d, .types = t}: as MPI_Alltoallw: in bytes.
/// The arrays are read by the call only, the types may be freed after it, the data must live until
/// the parts that name them are ready. A block of no elements is not sent, and its parts are ready.
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
/// blocks. No elements: there is no such part.
struct Piece {
  std::ptrdiff_t displacement = 0;
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

struct CollectiveOptions {
  // Into how many parts each block is cut, 1 to most_parts(); the same on all ranks. Part p of n
  // elements is those from n * p / parts on: so both sides of a block must have as many elements.
  // Or, where they differ, the next two say what the parts are.
  int parts = 1;
  // True: parts of this rank leave when send() is called for them; false: at once. Each rank may
  // choose.
  bool hold = false;
  // If given: part `part` of the block that goes to `rank`, and that comes from it; called once
  // for each, by the call that makes the object. What both ranks say of one part must have the
  // same type signature, or be no elements on both.
  std::function<Piece(int rank, int part)> outgoing = {};
  std::function<Piece(int rank, int part)> incoming = {};
  // What reports call it, a literal; null: by the function that makes it.
  const char* name = nullptr;
};

class Collective;
namespace detail {
struct CollectiveState;
// Takes over a reference.
[[nodiscard]] Collective collective_of(CollectiveState* owned) noexcept;
}  // namespace detail

/// A collective that is under way. Made by the functions below. All ranks of the communicator make
/// it, in the same order as their other collectives there: several may be under way at once.
///
/// Copies stand for the same collective. The last may go before it is over: then it goes on by
/// itself, and the data must still live; but a part that was to be sent and was not never will be:
/// this is said on standard error, its futures and all() throw Error, and the part fails on the
/// rank that it was for.
///
/// A part fails by itself: its future throws MpiError (a truncated message, a failed process; with
/// MPI_ERR_OTHER if it is never sent, or if in a broadcast a rank before this one has not got it),
/// and so does all(), once, when all parts have ended. It is the error of all() that counts as one
/// that nobody has taken, if nobody has: so take it, also where that of the part is taken.
///
/// Thread safety: every const member, any task and any thread.
class Collective {
 public:
  /// Stands for no collective; its members throw Error.
  Collective() = default;
  Collective(const Collective& other) noexcept;
  Collective(Collective&& other) noexcept;
  Collective& operator=(Collective other) noexcept;
  ~Collective();

  /// Ready when this part of the block from `rank` is here. Ready from the start where nothing
  /// comes. Throws Error for a rank or a part that there is not.
  [[nodiscard]] Future<void> from(int rank, int part = 0) const;
  /// Ready when this part of the block for `rank` may be overwritten. Throws Error as from().
  [[nodiscard]] Future<void> to(int rank, int part = 0) const;
  /// Lets a part leave, of a collective with `hold`. Never suspends. Throws Error if it has left
  /// already, or nothing is held.
  void send(int rank, int part = 0) const;
  /// Ready when all parts are, in both directions.
  [[nodiscard]] Future<void> all() const;
  /// Into how many parts each block is cut.
  [[nodiscard]] int parts() const;

 private:
  friend Collective detail::collective_of(detail::CollectiveState* owned) noexcept;
  explicit Collective(detail::CollectiveState* owned) noexcept : state_(owned) {}
  detail::CollectiveState* state_ = nullptr;
};

/// From now on, until the running task ends: an MPI_Alltoall, MPI_Allgather, MPI_Gather or
/// MPI_Scatter, also of neighbours, or one of their forms I, v and w, that goes block by block
/// (IMBREX_PARTIAL, docs/user/partial-collectives.md) ends each access that the task has declared,
/// by in(), out() or inout(), to memory of a block: when the block is here, or has left, while the
/// call goes on, or after it and the task. So the task touches what it has given to such a call no
/// more. An access by an address alone stands for the memory up to the next that the task has
/// declared; one that meets several blocks ends with the last of them; one that is not within the
/// buffers ends with the task, as ever. If a block fails, so do those that begin from the access,
/// beside the call's code. Throws Error outside of tasks. (Castillo et al., ICS 2019, section 3.4.)
void release_by_blocks();

/// How many parts a block may have on this communicator: 64 at least; by MPI_TAG_UB.
[[nodiscard]] int most_parts(MPI_Comm comm);

/// These begin a collective: its receives are posted, and what is not held is sent, through the
/// queue of docs/user/sends.md, to rank + 1 first. The first one on a communicator makes a
/// duplicate of it, for which it suspends until all ranks have come. They throw Error for wrong
/// arguments, for an intercommunicator, and outside of MPI_Init and MPI_Finalize, and MpiError.
///
/// alltoall() is MPI_Alltoall, MPI_Alltoallv and MPI_Alltoallw, by its blocks; MPI_IN_PLACE is
/// refused.
[[nodiscard]] Collective alltoall(const SendBlocks& send, const ReceiveBlocks& receive,
                                  MPI_Comm comm, const CollectiveOptions& options = {});
/// MPI_Allgather and MPI_Allgatherv. `send` has one block, which goes to all: send(r, p) lets it go
/// to r. MPI_IN_PLACE as address of `send`: this rank's block is in its place in `receive`.
[[nodiscard]] Collective allgather(const SendBlocks& send, const ReceiveBlocks& receive,
                                   MPI_Comm comm, const CollectiveOptions& options = {});
/// MPI_Gather and MPI_Gatherv: `receive` counts on the root only. In place as MPI: on the root.
[[nodiscard]] Collective gather(const SendBlocks& send, const ReceiveBlocks& receive, int root,
                                MPI_Comm comm, const CollectiveOptions& options = {});
/// MPI_Scatter and MPI_Scatterv: `send` counts on the root only. MPI_IN_PLACE as address of the
/// root's `receive`.
[[nodiscard]] Collective scatter(const SendBlocks& send, const ReceiveBlocks& receive, int root,
                                 MPI_Comm comm, const CollectiveOptions& options = {});
/// MPI_Bcast in parts, along the chain of ranks from the root on, each of which passes a part on as
/// it arrives. Whatever rank is named, from(r, p) is ready when the part is here, to(r, p) when it
/// has left for the next rank of the chain; send(r, p) lets it leave the root, and does nothing on
/// the others. Parts of irregular shape: by `outgoing` on the root, by `incoming` on the others.
[[nodiscard]] Collective broadcast(const ReceiveBlocks& data, int root, MPI_Comm comm,
                                   const CollectiveOptions& options = {});
/// MPI_Allreduce in parts, each of which is a reduction of MPI's own: from(r, p) and to(r, p),
/// whatever r, are ready when the result of part p is here. `send` has the count and the type of
/// `receive`, or the address MPI_IN_PLACE; `op` is one of MPI's, or lives until all() is ready.
/// Parts of irregular shape: by `incoming`, for both. Nothing can be held: Error.
[[nodiscard]] Collective allreduce(const SendBlocks& send, const ReceiveBlocks& receive, MPI_Op op,
                                   MPI_Comm comm, const CollectiveOptions& options = {});

/// MPI_Neighbor_alltoall, MPI_Neighbor_alltoallv and MPI_Neighbor_alltoallw, by their blocks, on a
/// communicator with a topology: Cartesian, a graph or a distributed graph. What is said of ranks
/// above holds for the indices of neighbours: there is one block for each, counted in MPI's order
/// (of a Cartesian one: below and above in the first dimension, then in the second), and from(i, p)
/// is of the i-th source, to(i, p) and send(i, p) of the i-th destination, as are `outgoing` and
/// `incoming`. A neighbour MPI_PROC_NULL sends and gets nothing: its parts are ready at once, its
/// block is not touched. Where one rank is a neighbour several times, the k-th block for it is the
/// k-th one that it receives from this rank, and in a Cartesian topology what goes to the neighbour
/// below arrives there as from the one above. n edges from one rank to another one: parts * n may
/// be most_parts() at most. Edges are sent in their order. MPI_IN_PLACE: Error.
[[nodiscard]] Collective neighbor_alltoall(const SendBlocks& send, const ReceiveBlocks& receive,
                                           MPI_Comm comm, const CollectiveOptions& options = {});
/// MPI_Neighbor_allgather and MPI_Neighbor_allgatherv: `send` has one block, which goes to all
/// destinations.
[[nodiscard]] Collective neighbor_allgather(const SendBlocks& send, const ReceiveBlocks& receive,
                                            MPI_Comm comm, const CollectiveOptions& options = {});

}  // namespace imbrex

#pragma GCC visibility pop
