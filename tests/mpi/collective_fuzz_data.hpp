// SPDX-License-Identifier: BSD-3-Clause
// For collective_fuzz.cpp: random layouts of what a rank sends or receives, with gaps and in any
// order, as arguments of MPI's and as places of the numbers; and random neighbours.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "imbrex/collective.hpp"

namespace imbrex::test {

using Random = std::mt19937;
using Bytes = std::vector<std::byte>;

inline int below(Random& random, const int end) {
  return static_cast<int>(random() % static_cast<unsigned>(end));
}
inline bool one_in(Random& random, const int n) { return below(random, n) == 0; }
inline std::size_t at(const int index) { return static_cast<std::size_t>(index); }

inline std::uint64_t mix(std::uint64_t seed, const int from, const int to, const int i) {
  for (const int each : {from, to, i}) {
    seed += 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(each);
    seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9U;
    seed = (seed ^ (seed >> 27)) * 0x94d049bb133111ebU;
    seed ^= seed >> 31;
  }
  return seed;
}

// ---- where the numbers lie ---------------------------------------------------------------------

using Places = std::vector<std::ptrdiff_t>;  // in bytes

inline MPI_Datatype scattered(const Places& places, MPI_Datatype number) {
  const std::vector<MPI_Aint> bytes(places.begin(), places.end());
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_create_hindexed_block(static_cast<int>(bytes.size()), 1, bytes.data(), number, &type);
  return type;
}

// An element of a block: some numbers, perhaps in another order and with gaps.
struct Element {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool is_own = false;  // to be freed
  Places places;
  std::ptrdiff_t extent = 0;
};

inline Element random_element(Random& random, MPI_Datatype number, const int bytes,
                              const int width) {
  if (width == 1 && one_in(random, 2)) return {number, false, {0}, bytes};
  const int slots = one_in(random, 3) ? width : width + below(random, 4);
  std::vector<int> order(at(slots));
  std::iota(order.begin(), order.end(), 0);
  if (one_in(random, 2)) std::shuffle(order.begin(), order.end(), random);
  Element it{.is_own = true,
             .places = {},
             .extent = (slots + below(random, 2)) * std::ptrdiff_t{bytes}};
  for (int i = 0; i < width; ++i) it.places.push_back(order[at(i)] * std::ptrdiff_t{bytes});
  MPI_Datatype packed = scattered(it.places, number);
  MPI_Type_create_resized(packed, below(random, 2) * bytes, it.extent, &it.type);
  MPI_Type_free(&packed);
  MPI_Type_commit(&it.type);
  return it;
}

enum class Form { plain, regular, counts, types };

// The data that one rank sends or receives, as arguments of MPI and as places of its numbers.
class Side {
 public:
  Side(const Form form, MPI_Datatype number, const int bytes, const int width, Random& random)
      : form_(form), number_(number), bytes_(bytes), width_(width), random_(random) {
    if (form == Form::plain) {
      elements_.push_back({number, false, {0}, bytes});
    } else if (form != Form::types) {
      elements_.push_back(random_element(random, number, bytes, width));
    }
  }
  ~Side() {
    for (Element& it : elements_) {
      if (it.is_own) MPI_Type_free(&it.type);
    }
    free_pieces();
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  // Called once, with the elements of each block.
  void lay_out(const std::vector<int>& elements) {
    const std::size_t blocks = elements.size();
    counts = elements;
    displacements.resize(blocks);
    places.resize(blocks);
    std::vector<std::size_t> order(blocks);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (form_ == Form::counts || form_ == Form::types) {
      std::shuffle(order.begin(), order.end(), random_);
    }
    std::vector<std::size_t> element(blocks, 0);
    for (std::size_t i = 0; form_ == Form::types && i < blocks; ++i) {
      elements_.push_back(random_element(random_, number_, bytes_, width_));
      element[i] = i;
    }
    std::ptrdiff_t end = 0;
    for (const std::size_t i : order) {
      const Element& it = elements_[element[i]];
      if (form_ == Form::counts) {
        end = (end + it.extent - 1) / it.extent + below(random_, 3);
        displacements[i] = static_cast<int>(end);
        end *= it.extent;
      } else if (form_ == Form::types) {
        end += below(random_, 3) * bytes_;
        displacements[i] = static_cast<int>(end);
      }
      for (int k = 0; k < counts[i]; ++k) {
        for (const std::ptrdiff_t place : it.places) {
          places[i].push_back(end + k * it.extent + place);
        }
      }
      end += counts[i] * it.extent;
      if (form_ == Form::types) end = (end + 7) / 8 * 8;
    }
    for (const std::size_t i : element) types.push_back(elements_[i].type);
    data.resize(2 * first + static_cast<std::size_t>(end));
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = junk(i);
  }

  [[nodiscard]] std::byte* address() { return data.data() + first; }
  template <class Address>
  [[nodiscard]] Blocks<Address> blocks(const Address address) const {
    if (counts.empty()) return {.address = address};  // no neighbours
    if (form_ == Form::types) {
      return {.address = address, .counts = counts, .displacements = displacements, .types = types};
    }
    if (form_ == Form::counts) {
      return {.address = address, .type = types[0], .counts = counts,
              .displacements = displacements};
    }
    return {.address = address, .count = counts[0], .type = types[0]};
  }

  // The numbers of a part, which may lie anywhere.
  [[nodiscard]] Piece piece(const Places& of_part) {
    if (of_part.empty()) return {};
    Places from_first(of_part);
    for (std::ptrdiff_t& place : from_first) place -= of_part.front();
    MPI_Datatype type = scattered(from_first, number_);
    MPI_Type_commit(&type);
    pieces_.push_back(type);
    return {of_part.front(), 1, type};
  }
  void free_pieces() {
    for (MPI_Datatype& type : pieces_) MPI_Type_free(&type);
    pieces_.clear();
  }

  // The blocks lie from this place on. Nothing before or behind them may change.
  static constexpr std::size_t first = 64;
  static std::byte junk(const std::size_t i) { return static_cast<std::byte>(0xa0 + i % 89); }

  Bytes data;
  std::vector<int> counts;
  std::vector<int> displacements;
  std::vector<MPI_Datatype> types;
  std::vector<Places> places;  // by block

 private:
  Form form_;
  MPI_Datatype number_;
  int bytes_;
  int width_;
  Random& random_;
  std::vector<Element> elements_;
  std::vector<MPI_Datatype> pieces_;
};

// ---- neighbours --------------------------------------------------------------------------------

// The other end of a block, and what tells the edges between the same two ranks apart, equal on
// both of their sides.
struct End {
  int rank = -1;  // < 0: none
  int edge = 0;
};

// A communicator of all ranks with a topology, and the neighbours that this rank has by MPI's
// rules. `agreed` is equal on all ranks.
struct Neighborhood {
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<End> sources;
  std::vector<End> destinations;
};

// The neighbours are below and above in each dimension. A message to the lower neighbour arrives
// there as from the upper one, so the sender's block tells edges apart.
inline Neighborhood random_grid(Random& agreed, MPI_Comm all) {
  int size = 0;
  int rank = 0;
  MPI_Comm_size(all, &size);
  MPI_Comm_rank(all, &rank);
  std::vector<std::vector<int>> shapes{{size}, {1, size}, {size, 1, 1}};
  if (size % 2 == 0) shapes.push_back({2, size / 2});
  if (size % 2 == 0) shapes.push_back({size / 2, 1, 2});
  const std::vector<int>& sizes = shapes[agreed() % shapes.size()];
  std::vector<int> periods;
  for (std::size_t i = 0; i < sizes.size(); ++i) periods.push_back(one_in(agreed, 3) ? 0 : 1);
  Neighborhood grid;
  PMPI_Cart_create(all, static_cast<int>(sizes.size()), sizes.data(), periods.data(), 0,
                   &grid.comm);
  int step = size;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    step /= sizes[i];
    const int place = rank / step % sizes[i];
    for (const int way : {0, 1}) {
      const int there = place + (way == 0 ? -1 : 1);
      const int inside = (there + sizes[i]) % sizes[i];
      const int block = 2 * static_cast<int>(i) + way;
      const bool is_there = there == inside || periods[i] != 0;
      const int other = is_there ? rank + (inside - place) * step : -1;
      grid.destinations.push_back({other, block});
      grid.sources.push_back({other, block ^ 1});
    }
  }
  return grid;
}

// Up to three edges from each rank to each. The k-th from one rank to another one is the k-th on
// both sides.
inline Neighborhood random_graph(Random& agreed, MPI_Comm all) {
  int size = 0;
  int rank = 0;
  MPI_Comm_size(all, &size);
  MPI_Comm_rank(all, &rank);
  std::vector<std::vector<int>> sources(at(size));
  std::vector<std::vector<int>> destinations(at(size));
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      for (int i = std::max(0, below(agreed, 5) - 1); i > 0; --i) {
        sources[at(to)].push_back(from);
        destinations[at(from)].push_back(to);
      }
    }
  }
  for (int i = 0; i < size; ++i) {
    std::shuffle(sources[at(i)].begin(), sources[at(i)].end(), agreed);
    std::shuffle(destinations[at(i)].begin(), destinations[at(i)].end(), agreed);
  }
  Neighborhood graph;
  const std::vector<int>& in = sources[at(rank)];
  const std::vector<int>& out = destinations[at(rank)];
  const int none = 0;  // so that there is an address
  PMPI_Dist_graph_create_adjacent(
      all, static_cast<int>(in.size()), in.empty() ? &none : in.data(), MPI_UNWEIGHTED,
      static_cast<int>(out.size()), out.empty() ? &none : out.data(), MPI_UNWEIGHTED, MPI_INFO_NULL,
      0, &graph.comm);
  const auto numbered = [](const std::vector<int>& all_of_them) {
    std::vector<End> ends;
    for (std::size_t i = 0; i < all_of_them.size(); ++i) {
      const auto before = all_of_them.begin() + static_cast<std::ptrdiff_t>(i);
      ends.push_back({*before, static_cast<int>(std::count(all_of_them.begin(), before, *before))});
    }
    return ends;
  };
  graph.sources = numbered(in);
  graph.destinations = numbered(out);
  return graph;
}

}  // namespace imbrex::test
