// SPDX-License-Identifier: BSD-3-Clause
// Random programs of partial collectives, beside MPI's own collectives on copies of the data: every
// kind, random sizes and parts of any shape, types with gaps, in place, several in flight at once
// on communicators that share ranks, which may be freed before they are over.
//
//   collective_fuzz [--seed N] [--count N | --seconds N] [--longest NUMBERS] [--most COLLECTIVES]
//
// Methodology: the seed gives everything on which all ranks must agree; each rank chooses how its
// data are laid out, which parts it holds, and in which order its tasks fill parts and wait for
// them. The task that sends a held part fills it; before, the part is junk. A part that may be
// overwritten is overwritten. A part is compared when its future is ready: all bytes, also those
// that no type names, must be those of MPI's collective. A seed that fails is run again by the
// arguments that the program prints.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "collective_fuzz_data.hpp"
#include "imbrex/collective.hpp"
#include "imbrex/imbrex.hpp"
#include "mpi/collectives/blocks/kinds.hpp"
#include "random_programs.hpp"
#include "send_in_turn.hpp"

namespace {

using namespace imbrex;
using namespace imbrex::test;

std::atomic<int> failures{0};
int longest = 20'000;

void expect(const bool condition, const std::string& name, const char* const what, const int first,
            const int second) {
  if (condition || failures.fetch_add(1) >= 10) return;
  std::fprintf(stderr, "collective_fuzz: %s: %s (%d, %d)\n", name.c_str(), what, first, second);
}

// ---- a collective ------------------------------------------------------------------------------

using mpi::blocks::Kind;
constexpr std::array names{"alltoall",  "allgather", "gather",            "scatter",
                           "broadcast", "allreduce", "neighbor_alltoall", "neighbor_allgather"};

// The communicators of a collective: `reference` has an equal set of ranks and no topology, since
// with one Open MPI 4 reads a type for each neighbour in MPI_Ialltoallw. All ranks may be
// neighbours, or none.
struct Where {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm reference = MPI_COMM_NULL;
  const Neighborhood* neighbors = nullptr;
};

class Case {
 public:
  Case(const Where& where, const std::uint64_t seed, const int number)
      : comm_(where.comm), reference_(where.reference), seed_(mix(seed, number, 0, 0)) {
    MPI_Comm_rank(comm_, &me_);
    MPI_Comm_size(comm_, &size_);
    Random agreed(static_cast<unsigned>(seed_));
    own_.seed(static_cast<unsigned>(mix(seed_, me_, 1, 0)));
    kind_ = static_cast<Kind>(below(agreed, 6));
    if (where.neighbors != nullptr && !one_in(agreed, 4)) {
      kind_ = one_in(agreed, 3) ? Kind::neighbor_allgather : Kind::neighbor_alltoall;
      neighbors_ = where.neighbors;
      reference_ = neighbors_->comm;
    }
    root_ = below(agreed, 64) % size_;
    parts_ = one_in(agreed, 12) ? 40 : 1 + below(agreed, 7);
    if (neighbors_ != nullptr) parts_ = std::min(parts_, 7);  // edges share the tags of a rank
    irregular_ = one_in(agreed, 3);
    in_place_ = one_in(agreed, 3);
    equal_ = one_in(agreed, 3);
    form_ = equal_ ? Form::regular : Form::counts;
    if (exchanges() && one_in(agreed, 2)) form_ = Form::types;
    const std::array numbers{MPI_INT, MPI_DOUBLE, MPI_SHORT, MPI_BYTE};
    number_ = numbers[agreed() % numbers.size()];
    width_ = 1 + below(agreed, 3);
    const std::array operations{MPI_SUM, MPI_MAX, MPI_MIN, MPI_BXOR};
    which_operation_ = below(agreed, 4);
    operation_ = operations[at(which_operation_)];
    if (kind_ == Kind::allreduce) {
      number_ = MPI_UNSIGNED;
      width_ = 1;
    }
    MPI_Type_size(number_, &bytes_);
    hold_ = kind_ != Kind::allreduce && one_in(own_, 2);
    overwrites_ = one_in(own_, 2);
    name_ = std::string(names[static_cast<std::size_t>(kind_)]) + ", collective " +
            std::to_string(number) + ", rank " + std::to_string(me_) + " of " +
            std::to_string(size_);
    lay_out();
  }

  void begin() {
    CollectiveOptions options{.parts = parts_, .hold = hold_};
    if (irregular_) {
      options.outgoing = [this](const int to, const int part) {
        Side& side = kind_ == Kind::broadcast || sends_in_place() ? *receives_ : *sends_;
        return side.piece(part_of(side, block_to(to), from_me(to), part));
      };
      options.incoming = [this](const int from, const int part) {
        return receives_->piece(part_of(*receives_, block_from(from), to_me(from), part));
      };
      if (kind_ == Kind::allreduce) options.incoming = range_of_reduction();
    }
    const SendBlocks send = sends_in_place()
                                ? SendBlocks{.address = MPI_IN_PLACE}
                                : sends_->blocks<const void*>(sends_->address());
    ReceiveBlocks receive = receives_->blocks<void*>(receives_->address());
    switch (kind_) {
      case Kind::alltoall: object_ = alltoall(send, receive, comm_, options); break;
      case Kind::allgather: object_ = allgather(send, receive, comm_, options); break;
      case Kind::gather: object_ = gather(send, receive, root_, comm_, options); break;
      case Kind::scatter:
        if (in_place_ && me_ == root_) receive = {.address = MPI_IN_PLACE};
        object_ = scatter(send, receive, root_, comm_, options);
        break;
      case Kind::broadcast: object_ = broadcast(receive, root_, comm_, options); break;
      case Kind::allreduce: object_ = allreduce(send, receive, operation_, comm_, options); break;
      case Kind::neighbor_alltoall:
        object_ = neighbor_alltoall(send, receive, comm_, options);
        break;
      case Kind::neighbor_allgather: object_ = neighbor_allgather(send, receive, comm_, options);
    }
    all_ = object_.all();
    sends_->free_pieces();
    receives_->free_pieces();
  }

  // Begins tasks that fill and send what is held, and tasks that wait, in any order.
  void run() {
    std::vector<std::array<int, 3>> order;  // what, rank, part
    for (int part = 0; part < parts_; ++part) {
      for (int rank = 0; rank < sources(); ++rank) order.push_back({0, rank, part});
      for (int rank = 0; rank < destinations(); ++rank) {
        if (hold_ && fills(rank)) order.push_back({1, rank, part});
        if (overwrites_ && overwritten(rank)) order.push_back({2, rank, part});
      }
    }
    std::shuffle(order.begin(), order.end(), own_);
    for (const auto& [what, rank, part] : order) {
      if (what == 0) look(rank, part);
      if (what == 1) fill_and_send(rank, part);
      if (what == 2) overwrite(rank, part);
    }
    if (one_in(own_, 2)) object_ = {};
  }

  // When the tasks have ended.
  void compare() {
    all_.get();
    expect(seen_.load() == sources() * parts_, name_, "not each part was seen once", seen_.load(),
           sources() * parts_);
    compute();
    require_equal(receives_->data, expected_, "what was received is not what MPI gives");
    if (!overwrites_) require_equal(sends_->data, filled_, "what was sent has changed");
  }

 private:
  struct Key {  // which block it is, equal on both sides
    int from;
    int to;
  };
  [[nodiscard]] Key key(const int from, const int to) const {
    const bool has_many = kind_ == Kind::scatter || exchanges();
    return {kind_ == Kind::broadcast ? root_ : from, has_many ? to : 0};
  }
  // In a collective of neighbours a rank below is the index of a neighbour, as in the interface.
  [[nodiscard]] Key from_me(const int to) const {
    if (neighbors_ == nullptr) return key(me_, to);
    const End& it = neighbors_->destinations[at(to)];
    return key(me_, it.rank + it.edge * size_);
  }
  [[nodiscard]] Key to_me(const int from) const {
    if (neighbors_ == nullptr) return key(from, me_);
    const End& it = neighbors_->sources[at(from)];
    return key(it.rank, me_ + it.edge * size_);
  }
  [[nodiscard]] int sources() const {
    return neighbors_ == nullptr ? size_ : static_cast<int>(neighbors_->sources.size());
  }
  [[nodiscard]] int destinations() const {
    return neighbors_ == nullptr ? size_ : static_cast<int>(neighbors_->destinations.size());
  }
  // Each sends each of its destinations another block.
  [[nodiscard]] bool exchanges() const {
    return kind_ == Kind::alltoall || kind_ == Kind::neighbor_alltoall;
  }
  [[nodiscard]] bool gathers() const {
    return kind_ == Kind::allgather || kind_ == Kind::neighbor_allgather;
  }
  [[nodiscard]] int elements(const Key& it) const {
    const std::array sizes{0, 1, 2, 7, 64, 1000, longest / width_};
    const bool is_same = equal_ || kind_ == Kind::allreduce;  // for all
    const std::uint64_t hash = is_same ? mix(seed_, 0, 0, -1) : mix(seed_, it.from, it.to, -1);
    return sizes[hash % (irregular_ ? sizes.size() - 1 : sizes.size())];
  }

  // Returns whether the data to send lie in the buffer that receives.
  [[nodiscard]] bool sends_in_place() const {
    const bool may = kind_ == Kind::allgather || kind_ == Kind::allreduce ||
                     (kind_ == Kind::gather && me_ == root_);
    return in_place_ && may;
  }
  // The block that goes to a rank, or comes from it, by its place on its side.
  [[nodiscard]] int block_to(const int to) const {
    if (exchanges() || kind_ == Kind::scatter) return to;
    return sends_in_place() && kind_ != Kind::allreduce ? me_ : 0;
  }
  [[nodiscard]] int block_from(const int from) const {
    const bool has_all = exchanges() || gathers() || (kind_ == Kind::gather && me_ == root_);
    return has_all ? from : 0;
  }
  [[nodiscard]] bool sends_to(const int rank) const {
    if (neighbors_ != nullptr) return neighbors_->destinations[at(rank)].rank >= 0;
    if (kind_ == Kind::alltoall) return true;
    if (kind_ == Kind::allgather) return !in_place_ || rank != me_;
    if (kind_ == Kind::gather) return rank == root_ && !sends_in_place();
    return kind_ == Kind::scatter && me_ == root_ && (!in_place_ || rank != me_);
  }
  [[nodiscard]] bool comes_from(const int rank) const {
    if (neighbors_ != nullptr) return neighbors_->sources[at(rank)].rank >= 0;
    switch (kind_) {
      case Kind::allgather: return !in_place_ || rank != me_;
      case Kind::gather: return me_ == root_ && (!in_place_ || rank != me_);
      case Kind::scatter: return rank == root_ && (!in_place_ || me_ != root_);
      default: return true;
    }
  }

  void lay_out() {
    const Form one = kind_ == Kind::allreduce ? Form::plain
                     : form_ == Form::types   ? Form::types
                                              : Form::regular;
    const bool sends_many = exchanges() || (kind_ == Kind::scatter && me_ == root_);
    const bool receives_many = block_from(1) == 1;
    sends_ = std::make_unique<Side>(sends_many ? form_ : one, number_, bytes_, width_, own_);
    receives_ = std::make_unique<Side>(receives_many ? form_ : one, number_, bytes_, width_, own_);
    std::vector<int> outgoing;
    std::vector<int> incoming;
    for (int rank = 0; rank < (sends_many ? destinations() : 1); ++rank) {
      outgoing.push_back(elements(sends_many ? from_me(rank) : key(me_, 0)));
    }
    for (int rank = 0; rank < (receives_many ? sources() : 1); ++rank) {
      incoming.push_back(elements(kind_ == Kind::scatter ? key(root_, me_) : to_me(rank)));
    }
    sends_->lay_out(outgoing);
    receives_->lay_out(incoming);
    expected_ = receives_->data;
    filled_ = sends_->data;
    for (int i = 0; i < static_cast<int>(outgoing.size()); ++i) {
      const bool beyond = neighbors_ != nullptr && sends_many && !sends_to(i);
      if (!beyond) put(filled_, *sends_, i, sends_many ? from_me(i) : key(me_, 0));
    }
    const bool has_own = sends_in_place() || (kind_ == Kind::broadcast && me_ == root_);
    if (has_own) put(expected_, *receives_, block_from(me_), to_me(me_));
    if (!hold_) {
      sends_->data = filled_;
      receives_->data = expected_;
    } else {
      keep_what_is_not_sent();
    }
  }
  // The block of this rank in place is no held part.
  void keep_what_is_not_sent() {
    if (kind_ == Kind::gather && sends_in_place()) receives_->data = expected_;
    if (kind_ == Kind::scatter && me_ == root_ && in_place_) {
      put(sends_->data, *sends_, me_, from_me(me_));
    }
    const bool sends_none = (kind_ == Kind::scatter && me_ != root_) ||
                            (kind_ == Kind::gather && sends_in_place()) ||
                            (kind_ == Kind::allgather && in_place_) || kind_ == Kind::broadcast ||
                            destinations() == 0;
    if (sends_none) sends_->data = filled_;
  }

  // Below 2^31 for a reduction: MPICH 4.0 compares unsigned numbers as signed ones in MPI_MAX and
  // MPI_MIN, in all its reductions.
  [[nodiscard]] std::uint64_t value_of(const Key& block, const int i) const {
    const std::uint64_t value = mix(seed_, block.from, block.to, i);
    return kind_ == Kind::allreduce ? value & 0x7fffffffU : value;
  }
  void write(std::byte* const to, const Key& block, const int i) const {
    const std::uint64_t value = value_of(block, i);
    std::memcpy(to, &value, at(bytes_));
  }
  void put(Bytes& data, const Side& side, const int block, const Key& which) const {
    int i = 0;
    for (const std::ptrdiff_t place : side.places[at(block)]) {
      write(&data[at_of(place)], which, i++);
    }
  }
  static std::size_t at_of(const std::ptrdiff_t place) {
    return Side::first + static_cast<std::size_t>(place);
  }

  // The part that element `i` of this block belongs to.
  [[nodiscard]] int part_with(const Key& block, const int i) const {
    if (kind_ != Kind::allreduce && irregular_) {
      return static_cast<int>(mix(seed_, block.from, block.to, ~i) % at(parts_));
    }
    const long after = i / width_ + 1;  // part p ends before element all * (p + 1) / parts
    const int part = static_cast<int>((after * parts_ - 1) / elements(block));
    return irregular_ ? parts_ - 1 - part : part;
  }
  [[nodiscard]] Places part_of(const Side& side, const int block, const Key& which,
                               const int part) const {
    Places chosen;
    int i = 0;
    for (const std::ptrdiff_t place : side.places[at(block)]) {
      if (part_with(which, i++) == part) chosen.push_back(place);
    }
    return chosen;
  }
  // Parts of a reduction are ranges: here the first is the last.
  [[nodiscard]] std::function<Piece(int, int)> range_of_reduction() {
    return [this](int, const int part) -> Piece {
      const long all = elements({});
      const int turned = parts_ - 1 - part;
      const long first = all * turned / parts_;
      return {first * bytes_, static_cast<int>(all * (turned + 1) / parts_ - first), number_};
    };
  }

  // ---- tasks
  template <class F>
  void launch(const char* const its_name, const Future<void>& after, F body) {
    const int level = below(own_, 4);
    if (one_in(own_, 4)) {
      task(its_name).priority(level).launch([after, body] {
        after.get();
        body();
      });
    } else {
      task(its_name).priority(level).in(after).launch(body);
    }
  }

  void look(const int rank, const int part) {
    launch("look", object_.from(rank, part), [this, rank, part] {
      seen_.fetch_add(1);
      if (!comes_from(rank) || (kind_ == Kind::broadcast && me_ == root_)) return;
      const Key block = to_me(rank);
      int i = 0;
      for (const std::ptrdiff_t place : receives_->places[at(block_from(rank))]) {
        if (part_with(block, i) == part) {
          std::array<std::byte, 8> value{};
          write(value.data(), block, i);
          if (kind_ == Kind::allreduce) value = reduced(i);
          const bool is_here =
              std::memcmp(value.data(), &receives_->data[at_of(place)], at(bytes_)) == 0;
          expect(is_here, name_, "a part that is ready has not arrived", rank, part);
          if (!is_here) return;
        }
        ++i;
      }
    });
  }

  [[nodiscard]] std::array<std::byte, 8> reduced(const int i) const {
    auto result = static_cast<unsigned>(value_of({0, 0}, i));
    for (int rank = 1; rank < size_; ++rank) {
      const auto value = static_cast<unsigned>(value_of({rank, 0}, i));
      switch (which_operation_) {
        case 0: result += value; break;
        case 1: result = std::max(result, value); break;
        case 2: result = std::min(result, value); break;
        default: result ^= value;
      }
    }
    std::array<std::byte, 8> bytes{};
    std::memcpy(bytes.data(), &result, sizeof result);
    return bytes;
  }

  // Returns whether a task for this rank fills the part: data for all ranks are filled once.
  [[nodiscard]] bool fills(const int rank) const {
    if (kind_ == Kind::broadcast) return rank == 0 && me_ == root_;
    if (gathers()) return rank == 0;
    return sends_to(rank);
  }
  void fill_and_send(const int rank, const int part) {
    std::vector<int> to{rank};
    if (gathers()) {
      to.resize(at(destinations()));
      std::iota(to.begin(), to.end(), 0);
      std::shuffle(to.begin(), to.end(), own_);
    }
    const bool lingers = one_in(own_, 4);
    task("fill").priority(below(own_, 4)).launch([this, x = object_, to, part, lingers] {
      if (lingers) yield();
      const bool here = kind_ == Kind::broadcast || sends_in_place();
      Side& side = here ? *receives_ : *sends_;
      const int block = block_to(to.front());
      const Key which = from_me(to.front());
      int i = 0;
      for (const std::ptrdiff_t place : side.places[at(block)]) {
        if (part_with(which, i) == part) write(&side.data[at_of(place)], which, i);
        ++i;
      }
      for (const int each : to) x.send(each, part);
    });
  }

  [[nodiscard]] bool overwritten(const int rank) const {
    return (exchanges() || kind_ == Kind::gather || kind_ == Kind::scatter) && sends_to(rank);
  }
  void overwrite(const int rank, const int part) {
    launch("overwrite", object_.to(rank, part), [this, rank, part] {
      for (const std::ptrdiff_t place : part_of(*sends_, block_to(rank), from_me(rank), part)) {
        std::fill_n(&sends_->data[at_of(place)], bytes_, std::byte{0xee});
      }
    });
  }

  // ---- MPI's own
  void compute() {
    const bool in_place = sends_in_place();
    const void* const from = in_place ? MPI_IN_PLACE : &filled_[Side::first];
    void* const to = &expected_[Side::first];
    const Side& out = *sends_;
    const Side& in = *receives_;
    switch (kind_) {
      case Kind::alltoall: compute_alltoall(from, to); break;
      case Kind::allgather:
        if (size_ == 1) {  // where MPICH 4's MPI_Allgatherv overlooks the displacement
          PMPI_Gatherv(from, out.counts[0], out.types[0], to, in.counts.data(),
                       strides(in).data(), in.types[0], 0, reference_);
          break;
        }
        PMPI_Allgatherv(from, out.counts[0], out.types[0], to, in.counts.data(),
                        strides(in).data(), in.types[0], reference_);
        break;
      case Kind::gather:
        PMPI_Gatherv(from, out.counts[0], out.types[0], to, in.counts.data(), strides(in).data(),
                     in.types[0], root_, reference_);
        break;
      case Kind::scatter:
        PMPI_Scatterv(from, out.counts.data(), strides(out).data(), out.types[0],
                      in_place_ && me_ == root_ ? MPI_IN_PLACE : to, in.counts[0], in.types[0],
                      root_, reference_);
        break;
      case Kind::broadcast: PMPI_Bcast(to, in.counts[0], in.types[0], root_, reference_); break;
      case Kind::allreduce:
        PMPI_Allreduce(from, to, in.counts[0], number_, operation_, reference_);
        break;
      default: compute_neighbors(from, to);
    }
  }
  // Follows MPI's rules, which MPICH 4 breaks if a graph has several edges between two ranks: it
  // swaps their blocks.
  void compute_neighbors(const void* const from, void* const to) {
    Bytes known(expected_);
    for (int block = 0; block < sources(); ++block) {
      if (comes_from(block)) put(known, *receives_, block, to_me(block));
    }
    if (!is_mpich_4()) {
      compute_neighbors_by_mpi(from, to);
      require_equal(expected_, known, "what MPI gives is not what it must");
    }
    expected_ = known;
  }
  void compute_neighbors_by_mpi(const void* const from, void* const to) const {
    const Side& out = *sends_;
    const Side& in = *receives_;
    const auto type_of = [this](const Side& side) {
      return side.types.empty() ? number_ : side.types[0];
    };
    if (kind_ == Kind::neighbor_allgather) {
      PMPI_Neighbor_allgatherv(from, out.counts[0], out.types[0], to, some(in.counts),
                               some(strides(in)), type_of(in), reference_);
    } else if (form_ == Form::types) {
      const std::vector<MPI_Aint> from_first(out.displacements.begin(), out.displacements.end());
      const std::vector<MPI_Aint> to_first(in.displacements.begin(), in.displacements.end());
      PMPI_Neighbor_alltoallw(from, some(out.counts), some(from_first), some(out.types), to,
                              some(in.counts), some(to_first), some(in.types), reference_);
    } else {
      PMPI_Neighbor_alltoallv(from, some(out.counts), some(strides(out)), type_of(out), to,
                              some(in.counts), some(strides(in)), type_of(in), reference_);
    }
  }
  static bool is_mpich_4() {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(text, &length);
    return std::strncmp(text, "MPICH Version:\t4.", 17) == 0;
  }
  // An address also where there is nothing.
  template <class T>
  static const T* some(const std::vector<T>& all) {
    static const T none{};
    return all.empty() ? &none : all.data();
  }
  void compute_alltoall(const void* const from, void* const to) const {
    const Side& out = *sends_;
    const Side& in = *receives_;
    if (form_ == Form::types) {
      PMPI_Alltoallw(from, out.counts.data(), out.displacements.data(), out.types.data(), to,
                     in.counts.data(), in.displacements.data(), in.types.data(), reference_);
    } else if (form_ == Form::counts) {
      PMPI_Alltoallv(from, out.counts.data(), out.displacements.data(), out.types[0], to,
                     in.counts.data(), in.displacements.data(), in.types[0], reference_);
    } else {
      PMPI_Alltoall(from, out.counts[0], out.types[0], to, in.counts[0], in.types[0], reference_);
    }
  }
  // A regular one has no displacements.
  [[nodiscard]] std::vector<int> strides(const Side& side) const {
    if (form_ != Form::regular) return side.displacements;
    std::vector<int> all(side.counts.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i) * side.counts[i];
    return all;
  }

  void require_equal(const Bytes& got, const Bytes& wanted, const char* const what) const {
    const auto [one, other] = std::mismatch(got.begin(), got.end(), wanted.begin());
    if (one == got.end()) return;
    expect(false, name_, what, static_cast<int>(one - got.begin()), static_cast<int>(got.size()));
  }

  const MPI_Comm comm_;
  MPI_Comm reference_;
  const Neighborhood* neighbors_ = nullptr;  // of a collective of neighbours
  const std::uint64_t seed_;
  Random own_;  // this rank's; of the thread that begins tasks
  int me_ = 0;
  int size_ = 1;
  Kind kind_ = Kind::alltoall;
  int root_ = 0;
  int parts_ = 1;
  bool irregular_ = false;
  bool in_place_ = false;
  bool equal_ = false;
  Form form_ = Form::regular;
  MPI_Datatype number_ = MPI_INT;
  int bytes_ = 4;
  int width_ = 1;
  int which_operation_ = 0;
  MPI_Op operation_ = MPI_SUM;
  bool hold_ = false;
  bool overwrites_ = false;
  std::string name_;
  std::unique_ptr<Side> sends_;
  std::unique_ptr<Side> receives_;
  Bytes filled_;    // what is sent
  Bytes expected_;  // what is received
  Collective object_;
  Future<void> all_;
  std::atomic<int> seen_{0};
};

// ---- programs ----------------------------------------------------------------------------------

// Three groupings of MPI_COMM_WORLD: all ranks, in reverse, and the even and the odd ones.
std::array<MPI_Comm, 3> references() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::array<MPI_Comm, 3> all{};
  PMPI_Comm_dup(MPI_COMM_WORLD, &all[0]);
  PMPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &all[1]);
  PMPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &all[2]);
  return all;
}

void run_program(const unsigned seed, const int most, const std::array<MPI_Comm, 3>& reference) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Random agreed(seed);
  Random own(static_cast<unsigned>(mix(seed, rank, 2, 0)));
  const std::array neighborhoods{random_grid(agreed, reference[0]),
                                 random_graph(agreed, reference[0])};
  std::vector<Where> places;
  for (MPI_Comm it : reference) places.push_back({.reference = it});
  for (const Neighborhood& it : neighborhoods) {
    places.push_back({.reference = reference[0], .neighbors = &it});
  }
  for (Where& it : places) {
    MPI_Comm_dup(it.neighbors != nullptr ? it.neighbors->comm : it.reference, &it.comm);
  }
  const bool frees_early = one_in(agreed, 3);
  const int count = 1 + below(agreed, most);
  std::vector<std::unique_ptr<Case>> cases;
  const auto free_all = [&] {
    for (Where& it : places) MPI_Comm_free(&it.comm);
  };
  finish([&] {
    std::vector<Case*> later;
    for (int i = 0; i < count; ++i) {
      const std::size_t which = agreed() % places.size();
      cases.push_back(std::make_unique<Case>(places[which], seed, i));
      cases.back()->begin();
      if (one_in(own, 2)) {
        cases.back()->run();
      } else {
        later.push_back(cases.back().get());
      }
    }
    std::shuffle(later.begin(), later.end(), own);
    for (Case* const one : later) one->run();
    if (frees_early) free_all();
  });
  for (const auto& one : cases) one->compare();
  cases.clear();
  if (!frees_early) free_all();
  for (Neighborhood it : neighborhoods) PMPI_Comm_free(&it.comm);
}

}  // namespace

int main(int argc, char** argv) {
  imbrex::test::RandomPrograms programs({{"--longest", 20'000}, {"--most", 8}, {"--in-turn", 0}});
  if (!programs.read(argc, argv)) return 2;
  longest = static_cast<int>(programs["--longest"]);
  if (programs["--in-turn"] != 0) imbrex::test::send_in_turn();
  // MPICH's ring of MPI_Allgatherv cuts a block by the extent of the rank's own type: ranks whose
  // types have other gaps wait for other numbers of pieces. Uncut, it gives what it should.
  setenv("MPIR_CVAR_ALLGATHERV_PIPELINE_MSG_SIZE", "1000000000", 1);
  MPI_Init(&argc, &argv);
  std::array<MPI_Comm, 3> reference = references();
  const int most = static_cast<int>(programs["--most"]);
  const int code = programs.run([&](unsigned seed) { run_program(seed, most, reference); },
                                [] { return failures.load(); });
  for (MPI_Comm& comm : reference) PMPI_Comm_free(&comm);
  MPI_Finalize();
  return code;
}
