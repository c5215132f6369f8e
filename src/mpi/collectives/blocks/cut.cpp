// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/collectives/blocks/cut.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <limits>

#include "imbrex/error.hpp"
#include "mpi/abi/inquiries.hpp"
#include "mpi/messages/matching/receive.hpp"

namespace imbrex::mpi::blocks {

namespace {

// Cuts that do not fall on elements of all types at least fall on elements of predefined types.
constexpr std::int64_t bytes_of_largest = 16;

// MPI packs the data of an element in the order in which it sends them, so packing tells where each
// byte lies: the bytes of the packed buffer contain their own places, as many digits at a time as a
// byte has room for.
std::vector<std::uint32_t> places_of(MPI_Datatype type, const std::int64_t bytes,
                                     const MPI_Aint least, const MPI_Aint extent) {
  std::vector<std::uint32_t> places(static_cast<std::size_t>(bytes));
  std::vector<unsigned char> source(static_cast<std::size_t>(extent));
  std::vector<unsigned char> packed(places.size());
  for (int digits = 0; digits < 32 && (digits == 0 || extent >> digits != 0); digits += 8) {
    for (std::size_t i = 0; i < source.size(); ++i) {
      source[i] = static_cast<unsigned char>(i >> digits);
    }
    int position = 0;
    // The address of the element itself; MPI reads only its data.
    const auto address = reinterpret_cast<std::uintptr_t>(source.data()) -
                         static_cast<std::uintptr_t>(least);
    const int code = PMPI_Pack(reinterpret_cast<const void*>(address), 1, type, packed.data(),
                               static_cast<int>(bytes), &position, MPI_COMM_SELF);
    if (code != MPI_SUCCESS || position != bytes) {
      throw Error(fmt::format("imbrex: MPI packs {} bytes of a datatype that has {} bytes, so "
                              "imbrex cannot cut its elements: let the parts of a block "
                              "(IMBREX_PARTIAL_PARTS) have whole elements",
                              position, bytes));
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      places[i] |= static_cast<std::uint32_t>(packed[i]) << digits;
    }
  }
  return places;
}

}  // namespace

Extent extent_of(const void* const address, const MPI_Count count, MPI_Datatype type) {
  const auto base = reinterpret_cast<std::uintptr_t>(address);
  if (count <= 0) return {base, base};
  MPI_Aint least = 0;
  MPI_Aint true_extent = 0;
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_true_extent(type, &least, &true_extent);
  PMPI_Type_get_extent(type, &lower, &extent);
  const MPI_Aint rest = (count - 1) * extent;  // negative strides go down
  const std::uintptr_t first =
      base + static_cast<std::uintptr_t>(least + std::min<MPI_Aint>(rest, 0));
  return {first, first + static_cast<std::uintptr_t>(true_extent + std::abs(rest))};
}

std::int64_t data_bytes(const MPI_Count count, MPI_Datatype type) {
  return static_cast<std::int64_t>(count) * bytes_of(type);
}

DataRange part_of(const std::int64_t bytes, const int number, const int parts) noexcept {
  const auto bound = [&](const int of) {
    if (of == parts) return bytes;
    const std::int64_t whole = bytes / parts * of;
    const std::int64_t rest = bytes % parts * of / parts;
    const std::int64_t at = whole + rest;
    return bytes % parts == 0 ? at : at - at % bytes_of_largest;
  };
  return {bound(number), bound(number + 1)};
}

Cuts::~Cuts() {
  for (MPI_Datatype& type : types_) PMPI_Type_free(&type);
}

Piece Cuts::part(const std::ptrdiff_t displacement, const MPI_Count count, MPI_Datatype type,
                 const int number, const int parts) {
  const std::int64_t element = bytes_of(type);
  const DataRange range = part_of(element * static_cast<std::int64_t>(count), number, parts);
  if (range.begin == range.end) return {};
  if (range.begin % element != 0 || range.end % element != 0) {
    return {displacement, 1, type_of(type, range)};
  }
  const std::int64_t elements = (range.end - range.begin) / element;
  if (elements > INT_MAX) throw TooLong();
  MPI_Aint least = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(type, &least, &extent);
  return {displacement + range.begin / element * extent, static_cast<int>(elements), type};
}

const Cuts::Runs& Cuts::runs_of(MPI_Datatype type) {
  const auto [there, is_new] = runs_.try_emplace(type);
  if (!is_new) return there->second;
  const std::int64_t bytes = bytes_of(type);
  MPI_Aint least = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_true_extent(type, &least, &extent);
  if (bytes > INT_MAX || extent > std::numeric_limits<std::uint32_t>::max()) throw TooLong();
  if (!messages::is_derived(type) && extent == bytes) {
    there->second.push_back({least, bytes});
    return there->second;
  }
  Runs& runs = there->second;
  for (const std::uint32_t offset : places_of(type, bytes, least, extent)) {
    const MPI_Aint place = least + static_cast<MPI_Aint>(offset);
    if (runs.empty() || runs.back().place + runs.back().bytes != place) runs.push_back({place, 0});
    ++runs.back().bytes;
  }
  return runs;
}

// The end of one element, whole ones, and the beginning of one, from the address of the first.
MPI_Datatype Cuts::type_of(MPI_Datatype type, const DataRange& range) {
  std::vector<int> counts;
  std::vector<MPI_Aint> places;
  std::vector<MPI_Datatype> types;
  const auto add = [&](const std::int64_t count, const MPI_Aint place, MPI_Datatype of) {
    if (count > INT_MAX) throw TooLong();
    counts.push_back(static_cast<int>(count));
    places.push_back(place);
    types.push_back(of);
  };
  const std::int64_t element = bytes_of(type);
  MPI_Aint least = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(type, &least, &extent);
  const auto add_bytes_of = [&](const std::int64_t index, const DataRange& some) {
    std::int64_t before = 0;
    for (const Run& run : runs_of(type)) {
      const std::int64_t begin = std::max(some.begin - before, std::int64_t{0});
      const std::int64_t end = std::min(some.end - before, run.bytes);
      if (begin < end) add(end - begin, index * extent + run.place + begin, MPI_BYTE);
      before += run.bytes;
    }
  };
  const std::int64_t first_whole = (range.begin + element - 1) / element;
  const std::int64_t last_whole = range.end / element;  // the one after it
  const std::int64_t head = range.begin / element;
  if (range.begin % element != 0) {
    add_bytes_of(head, {range.begin - head * element,
                        std::min(range.end - head * element, element)});
  }
  if (last_whole > first_whole) add(last_whole - first_whole, first_whole * extent, type);
  if (range.end % element != 0 && last_whole >= first_whole) {
    add_bytes_of(last_whole, {0, range.end % element});
  }
  MPI_Datatype part = MPI_DATATYPE_NULL;
  if (PMPI_Type_create_struct(static_cast<int>(counts.size()), counts.data(), places.data(),
                              types.data(), &part) != MPI_SUCCESS ||
      PMPI_Type_commit(&part) != MPI_SUCCESS) {
    throw Error("imbrex: MPI cannot create the datatype of a part of a block");
  }
  types_.push_back(part);
  return part;
}

}  // namespace imbrex::mpi::blocks
