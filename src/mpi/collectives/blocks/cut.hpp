// SPDX-License-Identifier: BSD-3-Clause
// Blocks that are cut by the bytes of their data: the only length that both sides of a message
// know, whatever their types and numbers of elements. Used by blocks.cpp.
// docs/design/partial-collectives.md has the argument.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "imbrex/collective.hpp"

namespace imbrex::mpi::blocks {

// A part has more elements than MPI can count.
struct TooLong {};

// The memory that a block of elements occupies, from its lowest address: a type may have its data
// anywhere. Empty, at `address`, for a block of no elements.
struct Extent {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};
[[nodiscard]] Extent extent_of(const void* address, MPI_Count count, MPI_Datatype type);

// The size of the data of a block of elements, without gaps.
[[nodiscard]] std::int64_t data_bytes(MPI_Count count, MPI_Datatype type);

// The bytes of a block's data in one part, the same on both sides.
struct DataRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
[[nodiscard]] DataRange part_of(std::int64_t bytes, int number, int parts) noexcept;

// Thread safety: none. Owns the types of the parts that it has cut through elements.
class Cuts {
 public:
  Cuts() = default;
  ~Cuts();
  Cuts(const Cuts&) = delete;
  Cuts& operator=(const Cuts&) = delete;

  // Part `number` of `parts` of the block of `count` elements, `displacement` bytes from the common
  // beginning. Throws TooLong, and Error for a type whose bytes this MPI does not tell.
  [[nodiscard]] Piece part(std::ptrdiff_t displacement, MPI_Count count, MPI_Datatype type,
                           int number, int parts);

 private:
  // Contiguous bytes of an element, in the order in which they are sent.
  struct Run {
    MPI_Aint place = 0;  // from the element's address
    std::int64_t bytes = 0;
  };
  using Runs = std::vector<Run>;

  [[nodiscard]] const Runs& runs_of(MPI_Datatype type);
  [[nodiscard]] MPI_Datatype type_of(MPI_Datatype element, const DataRange& range);

  std::map<MPI_Datatype, Runs> runs_;
  std::vector<MPI_Datatype> types_;
};

}  // namespace imbrex::mpi::blocks
