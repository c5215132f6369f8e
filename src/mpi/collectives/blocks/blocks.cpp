// SPDX-License-Identifier: BSD-3-Clause
// Collectives of MPI that go block by block: each is an object of imbrex/collective.hpp, and an
// access of the calling task to a block ends when the block has arrived, or has left.
// docs/design/partial-collectives.md has the argument.
#include "mpi/collectives/blocks/blocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "imbrex/collective.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/mpi.hpp"
#include "mpi/check/checks.hpp"
#include "mpi/collectives/blocks/block_plans.hpp"
#include "mpi/collectives/blocks/block_request.hpp"
#include "mpi/collectives/blocks/cut.hpp"
#include "mpi/collectives/blocks/neighbors.hpp"
#include "mpi/collectives/order/order_scope.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/messages/matching/wait.hpp"

namespace imbrex::mpi::blocks {

namespace {

std::atomic<std::uint64_t> decomposed{0};  // any thread; relaxed: a count

// The beginning of the block of a rank.
std::ptrdiff_t displacement_of(const Side& side, const int rank, MPI_Datatype type) {
  MPI_Aint least = 0;
  MPI_Aint extent = 1;
  std::ptrdiff_t place =
      static_cast<std::ptrdiff_t>(rank) * static_cast<std::ptrdiff_t>(side.count_of(rank));
  if (side.places != nullptr) place = side.places[rank];
  if (side.large_places != nullptr) place = side.large_places[rank];
  if (side.types != nullptr) return place;
  PMPI_Type_get_extent(type, &least, &extent);
  return place * extent;
}

struct Block {
  Extent extent;
  Future<void> over;
};

// The blocks of one side of a call, ordered by their addresses. Derived types may interleave them.
class Buffer {
 public:
  explicit Buffer(std::vector<Block> blocks) : blocks_(std::move(blocks)) {
    std::ranges::sort(blocks_, {}, [](const Block& it) { return it.extent.begin; });
    for (const Block& it : blocks_) {
      reach_.push_back(std::max(reach_.empty() ? 0 : reach_.back(), it.extent.end));
    }
  }

  // Calls visit(block) for each block that overlaps `extent`.
  template <class Visit>
  void for_each_in(const Extent& extent, Visit visit) const {
    const auto first = std::ranges::upper_bound(reach_, extent.begin) - reach_.begin();
    for (auto i = static_cast<std::size_t>(first); i < blocks_.size(); ++i) {
      if (blocks_[i].extent.begin >= extent.end) break;
      if (blocks_[i].extent.end > extent.begin) visit(blocks_[i]);
    }
  }
  // Whether the byte at an address is in a block.
  [[nodiscard]] bool has(const std::uintptr_t address) const {
    bool found = false;
    for_each_in({address, address + 1}, [&found](const Block&) { found = true; });
    return found;
  }

 private:
  std::vector<Block> blocks_;
  std::vector<std::uintptr_t> reach_;  // by block, the largest end up to it
};
struct Buffers {
  Buffer incoming;
  Buffer outgoing;
};

std::uintptr_t address_of(const detail::OpenAccess& it) {
  return reinterpret_cast<std::uintptr_t>(it.address);
}

// The parts of the blocks of one call. There is a block for each rank or, in a neighbourhood
// collective, for each neighbour.
class Blocks {
 public:
  Blocks(const Call& call, const CollectiveCall& asked)
      : it_(asked), kind_(asked.kind), parts_(std::min(asked.setting.parts,
                                                                 most_parts(asked.comm))) {
    PMPI_Comm_rank(it_.comm, &me_);
    if (kind_ == Kind::neighbor_alltoall || kind_ == Kind::neighbor_allgather) {
      const Neighbors neighbors = neighbors_of(call.name, it_.comm);
      for (const Neighbor& it : neighbors.sources) sources_.push_back(it.rank);
      for (const Neighbor& it : neighbors.destinations) destinations_.push_back(it.rank);
    } else {
      int size = 0;
      PMPI_Comm_size(it_.comm, &size);
      for (int rank = 0; rank < size; ++rank) sources_.push_back(rank);
      destinations_ = sources_;
      in_place_ = it_.send.address == MPI_IN_PLACE || it_.receive.address == MPI_IN_PLACE;
    }
    cut_all();
  }

  // All ranks begin it, in the order of the calls.
  [[nodiscard]] Collective begin(const char* const call) const {
    CollectiveOptions options;
    options.parts = parts_;
    options.name = call;
    options.outgoing = [this](const int block, const int part) { return outgoing(block, part); };
    options.incoming = [this](const int block, const int part) { return incoming(block, part); };
    return blocks::begin(kind_, {.address = it_.send.address},
                          {.address = const_cast<void*>(it_.receive.address)}, it_.root, it_.comm,
                          options);
  }

  [[nodiscard]] Buffers list(const Collective& collective) const {
    std::vector<Block> arriving;
    std::vector<Block> going;
    for (int block = 0; block < std::ssize(sources_); ++block) {
      for (int part = 0; arrives_from(block) && part < parts_; ++part) {
        list(arriving, it_.receive.address, incoming(block, part), collective.from(block, part));
      }
    }
    const void* const sent = sends_from_receive() ? it_.receive.address : it_.send.address;
    for (int block = 0; block < std::ssize(destinations_); ++block) {
      for (int part = 0; goes_to(block) && part < parts_; ++part) {
        list(going, sent, outgoing(block, part), collective.to(block, part));
      }
    }
    return {Buffer(std::move(arriving)), Buffer(std::move(going))};
  }

 private:
  using Pieces = std::vector<Piece>;  // by block and part

  // One block goes to all ranks.
  [[nodiscard]] bool one_goes() const {
    return kind_ == Kind::allgather || kind_ == Kind::gather || kind_ == Kind::neighbor_allgather;
  }
  [[nodiscard]] bool one_arrives() const { return kind_ == Kind::scatter; }
  [[nodiscard]] bool sends_from_receive() const {
    return in_place_ && kind_ == Kind::allgather;
  }
  [[nodiscard]] bool arrives_from(const int block) const {
    const int rank = sources_[static_cast<std::size_t>(block)];
    if (rank == MPI_PROC_NULL || (rank == me_ && in_place_)) return false;
    if (kind_ == Kind::gather) return it_.root == me_;
    return kind_ != Kind::scatter || rank == it_.root;
  }
  [[nodiscard]] bool goes_to(const int block) const {
    const int rank = destinations_[static_cast<std::size_t>(block)];
    if (rank == MPI_PROC_NULL || (rank == me_ && in_place_)) return false;
    if (kind_ == Kind::scatter) return it_.root == me_;
    return kind_ != Kind::gather || rank == it_.root;
  }

  void cut_all() {
    for (int block = 0; block < std::ssize(sources_); ++block) {
      if (arrives_from(block)) cut(incoming_, it_.receive, one_arrives() ? 0 : block, block);
    }
    for (int block = 0; block < std::ssize(destinations_); ++block) {
      if (!goes_to(block)) continue;
      if (!one_goes()) {
        cut(outgoing_, it_.send, block, block);
      } else if (outgoing_.empty()) {
        const bool from_receive = sends_from_receive();
        cut(outgoing_, from_receive ? it_.receive : it_.send, from_receive ? me_ : 0, 0);
      }
    }
  }
  // Cuts the block with number `index` of `side`. A block of no bytes has no parts: the other side
  // may count it differently.
  void cut(Pieces& pieces, const Side& side, const int index, const int block) {
    pieces.resize(place_in(block + 1, 0));
    const MPI_Count count = side.count_of(index);
    if (count == 0) return;
    MPI_Datatype type = side.type_of(index);
    const std::ptrdiff_t place = displacement_of(side, index, type);
    for (int part = 0; part < parts_; ++part) {
      pieces[place_in(block, part)] = cuts_.part(place, count, type, part, parts_);
    }
  }
  [[nodiscard]] std::size_t place_in(const int block, const int part) const {
    return static_cast<std::size_t>(block) * static_cast<std::size_t>(parts_) +
           static_cast<std::size_t>(part);
  }
  [[nodiscard]] Piece outgoing(const int block, const int part) const {
    return outgoing_[place_in(one_goes() ? 0 : block, part)];
  }
  [[nodiscard]] Piece incoming(const int block, const int part) const {
    return incoming_[place_in(block, part)];
  }

  static void list(std::vector<Block>& blocks, const void* const address, const Piece& piece,
                   Future<void> over) {
    // As numbers: `address` may be MPI_BOTTOM, and the displacement is then an address.
    const auto first = reinterpret_cast<std::uintptr_t>(address) +
                       static_cast<std::uintptr_t>(piece.displacement);
    const Extent extent =
        extent_of(reinterpret_cast<const void*>(first), piece.count, piece.type);
    if (extent.begin != extent.end) blocks.push_back({extent, std::move(over)});
  }

  const CollectiveCall& it_;
  const Kind kind_;
  const int parts_;
  int me_ = 0;
  bool in_place_ = false;
  std::vector<int> sources_;  // ranks, by block
  std::vector<int> destinations_;
  Cuts cuts_;  // its types live until the collective has begun, which copies them
  Pieces incoming_;
  Pieces outgoing_;
};

// Each open access of the running task once, in the order of memory.
std::vector<detail::OpenAccess> open_in_order() {
  std::vector<detail::OpenAccess> open = detail::open_accesses();
  const auto name_of = [](const detail::OpenAccess& it) {
    return std::tuple(address_of(it), it.range, it.range ? it.bytes : 0);
  };
  std::ranges::stable_sort(open, {}, name_of);
  const auto twice = std::ranges::unique(open, {}, name_of);
  open.erase(twice.begin(), twice.end());
  return open;
}

// An access by an address alone stands for the part of its buffer up to the next declared access:
// the name of the first element of a block stands for the block, and a single name in a buffer for
// all of it. The access ends with the last overlapping block.
void end_accesses_by(const Buffers& buffers) {
  const std::vector<detail::OpenAccess> open = open_in_order();
  for (std::size_t i = 0; i < open.size(); ++i) {
    const Extent named{address_of(open[i]), address_of(open[i]) + open[i].bytes};
    Extent meant = named;
    if (!open[i].range) {
      std::size_t next = i + 1;
      while (next < open.size() && address_of(open[next]) == named.begin) ++next;
      meant.end = std::max(named.end, next < open.size() ? address_of(open[next]) : UINTPTR_MAX);
    }
    std::vector<Future<void>> over;
    Extent all{UINTPTR_MAX, 0};
    for (const Buffer* const buffer : {&buffers.incoming, &buffers.outgoing}) {
      if (!open[i].range && !buffer->has(named.begin)) continue;
      buffer->for_each_in(meant, [&](const Block& block) {
        over.push_back(block.over);
        all = {std::min(all.begin, block.extent.begin), std::max(all.end, block.extent.end)};
      });
    }
    // The named memory must be within, too, because the task may go on using the memory beside it.
    if (named.begin < all.begin || named.end > all.end) continue;
    const Future<void> last = over.size() == 1 ? over.front() : when_all(over);
    detail::release_access_after(*detail::completion_of(last), open[i].address,
                                 open[i].range ? open[i].bytes : 0);
  }
}

// Begins the collective, and registers the accesses of the running task that end with its blocks.
// An error after data are in flight is kept in `failed`.
Collective begin(const Call& call, const CollectiveCall& asked, std::exception_ptr& failed) {
  const Blocks blocks(call, asked);
  Collective collective = blocks.begin(call.name);
  decomposed.fetch_add(1, std::memory_order_relaxed);
  try {
    if (asked.setting.mode >= Mode::release || detail::releases_by_blocks()) {
      end_accesses_by(blocks.list(collective));
    }
  } catch (...) {
    failed = std::current_exception();
  }
  return collective;
}

void wait_for(const Call& call, const Future<void>& all) {
  auto is_over = [&all](int* const done) {
    *done = all.ready() ? 1 : 0;
    return MPI_SUCCESS;
  };
  // A task that has asked to block stays on its thread, which polls.
  if (!suspends()) (void)wait_until(call, question(is_over));
  all.get();
}

// The return code of a call with the body `f()`.
template <class F>
int code_of(const Call& call, F f) {
  try {
    f();
    return MPI_SUCCESS;
  } catch (const MpiError& error) {
    return raise_error(call, error.code());
  } catch (const TooLong&) {
    print(fmt::format("{} of more than {} elements in a part of a block cannot go block by block "
                      "(IMBREX_PARTIAL): give it a type of several elements, or more parts "
                      "(IMBREX_PARTIAL_PARTS)",
                      call.name, INT_MAX));
    return raise_error(call, MPI_ERR_COUNT);
  } catch (const Error& error) {
    print(fmt::format("{}: {}", call.name, unprefixed(error)));
    return raise_error(call, MPI_ERR_ARG);
  }
}

}  // namespace

int run(const Call& call, const CollectiveCall& asked) {
  return code_of(call, [&] {
    // The turn that the collective takes orders it; observers are told of the call.
    check::Guard guard;
    if (check::on()) [[unlikely]] {
      Call seen = call;
      if (order::innermost() != nullptr) seen.kind = mpi::Kind::other;
      guard.begin(seen, detail::current_task(), {});
    }
    std::exception_ptr failed;
    const Collective collective = begin(call, asked, failed);
    wait_for(call, collective.all());
    if (failed != nullptr) std::rethrow_exception(failed);
  });
}

std::optional<int> begin_request(const Call& call, const CollectiveCall& asked,
                                 MPI_Request* const request) {
  bool is_prepared = false;
  const int code = code_of(call, [&] {
    is_prepared = place_of(call.name, asked.comm)->is_prepared.load(std::memory_order_relaxed);
  });
  if (code != MPI_SUCCESS) return code;
  if (!is_prepared) return std::nullopt;
  *request = MPI_REQUEST_NULL;
  return code_of(call, [&] {
    Begun begun(call);
    std::exception_ptr failed;
    const Collective collective = begin(call, asked, failed);
    if (failed != nullptr) {  // accesses would end with the task, while data are in flight
      wait_for(call, collective.all());
      std::rethrow_exception(failed);
    }
    *request = begun.give(collective.all());
  });
}

int prepare(const Call& call, MPI_Comm comm) {
  return code_of(call, [&] {
    const std::shared_ptr<Place> place = place_of(call.name, comm);
    place->make(call.name);
    place->is_prepared.store(true, std::memory_order_relaxed);
  });
}

std::uint64_t decomposed_calls() noexcept { return decomposed.load(std::memory_order_relaxed); }

}  // namespace imbrex::mpi::blocks

namespace imbrex {

void release_by_blocks() { detail::release_by_blocks(); }

}  // namespace imbrex

