// SPDX-License-Identifier: BSD-3-Clause
// WorkPool: items of work that spread over the workers of all ranks of a communicator, and make
// more items (Chatterjee et al., IPDPS 2013, section IV.B).
//
//   struct Node { int depth; };
//   imbrex::WorkPool<Node> pool(MPI_COMM_WORLD);
//   if (rank == 0) pool.push({0});
//   pool.process([&](const Node& node, imbrex::Emit<Node>& emit) {
//     for (int i = 0; i < children(node); ++i) emit(Node{node.depth + 1});
//   });
//
// An item costs a few nanoseconds beside its work: each worker has a private stack, and stops every
// 100 us to share items and to answer other ranks. A rank without items asks some ranks at random,
// then the ranks of a hypercube, which send items when they have some to spare (lifelines; Saraswat
// et al., PPoPP 2011). Items should take 10 ns or more; their number does not matter, ten or a
// billion.
#pragma once

#include "imbrex/detail/language.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "imbrex/distributed/emit.hpp"
#include "imbrex/name.hpp"
#include "imbrex/detail/distributed/untyped_pool.hpp"
#include "imbrex/error.hpp"
#include "imbrex/distributed/rank_sets.hpp"

#pragma GCC visibility push(default)

namespace imbrex {

struct WorkPoolOptions {
  // The smallest number of items that go to another worker or rank at a time. 0: 1 to 64, by the
  // time that an item takes.
  std::uint32_t chunk = 0;
  // The number of items after which a worker shares and polls. 0: as many as take 100 us.
  std::uint32_t poll_interval = 0;
  // The number of ranks that are asked at random before the lifelines. 0: none.
  std::uint32_t victims = 1;
  Name name = "work pool";  // for reports
};

namespace detail {
// The ranks of a pool, whose items have one size on all of them.
inline Members members_of_pool(const MPI_Comm comm, const std::size_t item_bytes,
                               const char* const name) {
  Members members = members_of(comm, std::string("work pool \"") + name + "\"");
  const auto bytes = static_cast<std::int64_t>(item_bytes);
  const std::int64_t mine[2] = {bytes, -bytes};
  std::int64_t most[2];
  MPI_Allreduce(mine, most, 2, MPI_INT64_T, MPI_MAX, comm);
  if (most[0] != -most[1]) throw_pool_error(name, "has items of different sizes on different "
                                                  "ranks");
  return members;
}
}  // namespace detail

/// A pool of items over the ranks of a communicator. Its destructor drops the items that are left,
/// waits for no rank, and never suspends. If an exception ends the pool on one rank, process()
/// throws Error on the others, which names that rank. Thread safety: one thread or task at a time
/// uses a pool; process() of different pools may run at once.
template <class Item>
class WorkPool {
  static_assert(std::is_trivially_copyable_v<Item>, "imbrex: items of a WorkPool travel as bytes, "
                "so they must be trivially copyable");
  static_assert(sizeof(Item) <= detail::item_bytes_max, "imbrex: an item of a WorkPool must fit in "
                "a message: 3,952 bytes");
  static_assert(alignof(Item) <= detail::item_alignment_max, "imbrex: an item of a WorkPool may be "
                "aligned to 64 bytes at most");

 public:
  /// Collective over `comm`, in the order of its other collectives; `comm` may be freed before the
  /// pool ends. Suspends. Throws Error, on all ranks, if items have different sizes on the ranks;
  /// for an inter-communicator; in a callback; and if messages between ranks are not open.
  explicit WorkPool(const MPI_Comm comm, const WorkPoolOptions& options = {}) {
    const detail::Members ranks =
        detail::members_of_pool(comm, sizeof(Item), options.name.text());
    pool_.reset(detail::make_pool({ranks.id, sizeof(Item), ranks.world, options.name.text(),
                                   options.chunk, options.poll_interval, options.victims}));
  }

  /// How many workers call `f`: worker_count(); with IMBREX_LEND all of the node. Never suspends.
  [[nodiscard]] int workers() const noexcept { return detail::pool_workers(*pool_); }

  /// Adds an item of this rank for the next process(). Never suspends. Throws Error during a
  /// process(): `f` uses Emit.
  void push(const Item& item) { detail::push_item(*pool_, &item); }

  /// Collective: calls f(const Item&, Emit<Item>&) for each item of all ranks and for the items
  /// that it emits, until no rank has an item. Each worker of each rank calls `f`, at the same time
  /// as others. `f` may wait, which keeps only its worker's private items back. Suspends. May be
  /// called again.
  ///
  /// If `f` throws, all items are dropped, and process() throws on every rank: the exception of `f`
  /// on its rank (the first one), and elsewhere Error, which names the rank and the text.
  template <class F>
  WorkPoolCounters process(F&& f, const std::source_location& where =
                                      std::source_location::current()) {
    using Function = std::remove_reference_t<F>;
    const auto address = const_cast<void*>(static_cast<const void*>(std::addressof(f)));
    return detail::process_pool(*pool_, {&detail::run_items<Item, Function>, address, where});
  }

 private:
  struct Destroy {
    void operator()(detail::PoolState* const pool) const noexcept { detail::destroy_pool(pool); }
  };
  std::unique_ptr<detail::PoolState, Destroy> pool_;
};

}  // namespace imbrex

#pragma GCC visibility pop
