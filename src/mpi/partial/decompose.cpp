// SPDX-License-Identifier: BSD-3-Clause
// Collectives of MPI that go block by block: each is an object of imbrex/collective.hpp, and what
// the calling task has declared for a block ends when that is here, or has left.
// docs/design/partial-collectives.md has the argument.
#include "mpi/partial/decompose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "imbrex/collective.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/mpi.hpp"
#include "mpi/calls/decompose.hpp"
#include "mpi/engine/errors.hpp"
#include "mpi/matching/wait.hpp"
#include "mpi/partial/cut.hpp"

namespace imbrex::mpi::partial {

namespace {

using decompose::Asked;
using decompose::Mode;
using decompose::Shape;
using decompose::Side;

std::atomic<std::uint64_t> decomposed{0};
// Where the block of a rank begins.
std::ptrdiff_t place_of(const Side& side, const int rank, MPI_Datatype type) {
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

// What a block lies in.
struct Extent {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};
Extent extent_of(const void* const address, const Piece& piece) {
  if (piece.count <= 0) return {};
  MPI_Aint least = 0;
  MPI_Aint true_extent = 0;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_true_extent(piece.type, &least, &true_extent);
  PMPI_Type_get_extent(piece.type, &lower, &extent);
  const MPI_Aint rest = (piece.count - 1) * extent;  // negative strides go down
  const auto base = reinterpret_cast<std::uintptr_t>(address);
  const auto first = static_cast<std::uintptr_t>(piece.displacement + least +
                                                 std::min<MPI_Aint>(rest, 0));
  return {base + first, base + first + static_cast<std::uintptr_t>(true_extent + std::abs(rest))};
}

struct Block {
  Extent extent;
  Future<void> over;
};

// The blocks of one side of a call, by where they begin. Derived types may interleave them.
class Buffer {
 public:
  explicit Buffer(std::vector<Block> blocks) : blocks_(std::move(blocks)) {
    std::ranges::sort(blocks_, {}, [](const Block& it) { return it.extent.begin; });
    for (const Block& it : blocks_) {
      reach_.push_back(std::max(reach_.empty() ? 0 : reach_.back(), it.extent.end));
    }
  }

  // Calls visit(block) for each that meets `extent`.
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
  std::vector<std::uintptr_t> reach_;  // of each, the last end up to it
};
struct Buffers {
  Buffer incoming;
  Buffer outgoing;
};

std::uintptr_t address_of(const detail::OpenAccess& it) {
  return reinterpret_cast<std::uintptr_t>(it.address);
}

// What the parts of the blocks of one call are.
class Blocks {
 public:
  explicit Blocks(const Asked& asked)
      : it_(asked), parts_(std::min(asked.setting.parts, most_parts(asked.comm))) {
    PMPI_Comm_size(it_.comm, &size_);
    PMPI_Comm_rank(it_.comm, &me_);
    in_place_ = it_.send.address == MPI_IN_PLACE || it_.receive.address == MPI_IN_PLACE;
    for (int rank = 0; rank < size_; ++rank) {
      if (comes_from(rank)) add(incoming_, it_.receive, one_comes() ? 0 : rank, rank);
      if (!goes_to(rank)) continue;
      if (!one_goes()) {
        add(outgoing_, it_.send, rank, rank);
      } else if (outgoing_.empty()) {
        const bool from_receive = sends_from_receive();
        add(outgoing_, from_receive ? it_.receive : it_.send, from_receive ? me_ : 0, 0);
      }
    }
  }

  // All ranks begin it, in the order of the calls.
  [[nodiscard]] Collective begin(const char* const call) const {
    CollectiveOptions options;
    options.parts = parts_;
    options.name = call;
    options.outgoing = [this](const int rank, const int part) { return outgoing(rank, part); };
    options.incoming = [this](const int rank, const int part) { return incoming(rank, part); };
    const SendBlocks send{.address = it_.send.address};
    const ReceiveBlocks receive{.address = const_cast<void*>(it_.receive.address)};
    switch (it_.shape) {
      case Shape::alltoall: return alltoall(send, receive, it_.comm, options);
      case Shape::allgather: return allgather(send, receive, it_.comm, options);
      case Shape::gather: return gather(send, receive, it_.root, it_.comm, options);
      default: return scatter(send, receive, it_.root, it_.comm, options);
    }
  }

  [[nodiscard]] Buffers list(const Collective& collective) const {
    std::vector<Block> coming;
    std::vector<Block> going;
    const void* const sent = sends_from_receive() ? it_.receive.address : it_.send.address;
    for (int rank = 0; rank < size_; ++rank) {
      for (int part = 0; part < parts_; ++part) {
        if (comes_from(rank)) {
          list(coming, it_.receive.address, incoming(rank, part), collective.from(rank, part));
        }
        if (goes_to(rank)) {
          list(going, sent, outgoing(rank, part), collective.to(rank, part));
        }
      }
    }
    return {Buffer(std::move(coming)), Buffer(std::move(going))};
  }

 private:
  using Pieces = std::vector<Piece>;  // by block and part

  [[nodiscard]] bool one_goes() const {
    return it_.shape == Shape::allgather || it_.shape == Shape::gather;
  }
  [[nodiscard]] bool one_comes() const { return it_.shape == Shape::scatter; }
  [[nodiscard]] bool sends_from_receive() const {
    return in_place_ && it_.shape == Shape::allgather;
  }
  [[nodiscard]] bool comes_from(const int rank) const {
    if (rank == me_ && in_place_) return false;
    if (it_.shape == Shape::gather) return it_.root == me_;
    return it_.shape != Shape::scatter || rank == it_.root;
  }
  [[nodiscard]] bool goes_to(const int rank) const {
    if (rank == me_ && in_place_) return false;
    if (it_.shape == Shape::scatter) return it_.root == me_;
    return it_.shape != Shape::gather || rank == it_.root;
  }

  // Cuts the block that `side` has for `rank`. No parts for one of no bytes: the other side may
  // count it differently.
  void add(Pieces& pieces, const Side& side, const int rank, const int block) {
    pieces.resize(index(block + 1, 0));
    const MPI_Count count = side.count_of(rank);
    if (count == 0) return;
    MPI_Datatype type = side.type_of(rank);
    const std::ptrdiff_t place = place_of(side, rank, type);
    for (int part = 0; part < parts_; ++part) {
      pieces[index(block, part)] = cuts_.part(place, count, type, part, parts_);
    }
  }
  [[nodiscard]] std::size_t index(const int block, const int part) const {
    return static_cast<std::size_t>(block) * static_cast<std::size_t>(parts_) +
           static_cast<std::size_t>(part);
  }
  [[nodiscard]] Piece outgoing(const int rank, const int part) const {
    return outgoing_[index(one_goes() ? 0 : rank, part)];
  }
  [[nodiscard]] Piece incoming(const int rank, const int part) const {
    return incoming_[index(rank, part)];
  }

  static void list(std::vector<Block>& blocks, const void* const address, const Piece& piece,
                   Future<void> over) {
    const Extent extent = extent_of(address, piece);
    if (extent.begin != extent.end) blocks.push_back({extent, std::move(over)});
  }

  const Asked& it_;
  const int parts_;
  int size_ = 0;
  int me_ = 0;
  bool in_place_ = false;
  Cuts cuts_;  // whose types live until the collective has begun, which copies them
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

// An access by an address alone stands for what of its buffer lies up to the next one that the task
// has declared: so one that names the first element of a block stands for the block, and the only
// one of a buffer for all of it. It ends with the last block that meets what it stands for.
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
    // What is named, too, must be within: the task may go on using what lies beside it.
    if (named.begin < all.begin || named.end > all.end) continue;
    const Future<void> last = over.size() == 1 ? over.front() : when_all(over);
    detail::release_access_after(*last.completion(), open[i].address,
                                 open[i].range ? open[i].bytes : 0);
  }
}

int carry_out(const Call& call, const Asked& asked) {
  try {
    const Blocks blocks(asked);
    const Collective collective = blocks.begin(call.name);
    decomposed.fetch_add(1, std::memory_order_relaxed);
    std::exception_ptr failed;  // data are under way: the call returns when they have come
    try {
      if (asked.setting.mode >= Mode::release || detail::releases_by_blocks()) {
        end_accesses_by(blocks.list(collective));
      }
    } catch (...) {
      failed = std::current_exception();
    }
    const Future<void> all = collective.all();
    auto is_over = [&all](int* const done) {
      *done = all.ready() ? 1 : 0;
      return MPI_SUCCESS;
    };
    // A task that has asked to block stays on its thread, which polls.
    if (!suspends()) (void)wait_until(call, question(is_over));
    all.get();
    if (failed != nullptr) std::rethrow_exception(failed);
    return MPI_SUCCESS;
  } catch (const MpiError& error) {
    return raise_error(call, error.code());
  } catch (const TooLong&) {
    say(fmt::format("{} of more than {} elements in a part of a block cannot go block by block "
                    "(IMBREX_PARTIAL): give it a type of several elements, or more parts "
                    "(IMBREX_PARTIAL_PARTS)",
                    call.name, INT_MAX));
    return raise_error(call, MPI_ERR_COUNT);
  } catch (const Error& error) {
    say(fmt::format("{}: {}", call.name, unprefixed(error)));
    return raise_error(call, MPI_ERR_ARG);
  }
}

}  // namespace

std::uint64_t decomposed_calls() noexcept { return decomposed.load(std::memory_order_relaxed); }

void start_decomposing(const decompose::Setting& setting) {
  decompose::carry_out = &carry_out;
  decompose::begin(setting);
}

}  // namespace imbrex::mpi::partial

namespace imbrex {

void release_by_blocks() { detail::release_by_blocks(); }

}  // namespace imbrex

