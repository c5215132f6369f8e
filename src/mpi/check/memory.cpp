// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/memory.hpp"

#include <algorithm>
#include <climits>

#include "mpi/abi/inquiries.hpp"

namespace imbrex::mpi::check {

namespace {
constexpr std::uintptr_t looked_into_max = std::uintptr_t{64} << 20;
}

Memory::Memory(const void* buffer, const MPI_Count count, MPI_Datatype type) : count_(count) {
  const MPI_Count size = bytes_of(type);
  if (count <= 0 || size <= 0) return;  // a wrong type is MPI's to refuse
  MPI_Count lower = 0;
  MPI_Count true_lower = 0;
  MPI_Count extent = 0;
  MPI_Count true_extent = 0;
  PMPI_Type_get_extent_x(type, &lower, &extent);
  PMPI_Type_get_true_extent_x(type, &true_lower, &true_extent);
  const MPI_Count last = (count - 1) * extent;  // an extent may be negative
  lower_ = true_lower + std::min<MPI_Count>(last, 0);
  const MPI_Count upper = true_lower + true_extent + std::max<MPI_Count>(last, 0);
  begin_ = reinterpret_cast<std::uintptr_t>(buffer) + static_cast<std::uintptr_t>(lower_);
  end_ = begin_ + static_cast<std::uintptr_t>(upper - lower_);
  if (static_cast<MPI_Count>(end_ - begin_) != size * count) gaps_ = copy_of(type);
}

Memory::~Memory() {
  if (gaps_ != MPI_DATATYPE_NULL) PMPI_Type_free(&gaps_);
}

bool Memory::is_large() const noexcept {
  return gaps_ != MPI_DATATYPE_NULL && (end_ - begin_ > looked_into_max || count_ > INT_MAX);
}

// One entry for each byte from begin to end that the datatype covers: MPI itself writes them, when
// it unpacks a message of ones into zeroed memory.
std::vector<char> Memory::touched() const {
  if (gaps_ == MPI_DATATYPE_NULL) return std::vector<char>(end_ - begin_, 1);
  int bytes = 0;
  PMPI_Pack_size(static_cast<int>(count_), gaps_, MPI_COMM_SELF, &bytes);
  const std::vector<char> packed(static_cast<std::size_t>(bytes), '\xff');
  std::vector<char> bits(end_ - begin_, 0);
  const std::uintptr_t origin =
      reinterpret_cast<std::uintptr_t>(bits.data()) - static_cast<std::uintptr_t>(lower_);
  int position = 0;
  PMPI_Unpack(packed.data(), bytes, &position, reinterpret_cast<void*>(origin),
              static_cast<int>(count_), gaps_, MPI_COMM_SELF);
  return bits;
}

std::uintptr_t Memory::meet(const Memory& one, const Memory& other) {
  const std::uintptr_t begin = std::max(one.begin_, other.begin_);
  const std::uintptr_t end = std::min(one.end_, other.end_);
  if (begin >= end || one.is_large() || other.is_large()) return 0;
  if (one.gaps_ == MPI_DATATYPE_NULL && other.gaps_ == MPI_DATATYPE_NULL) return begin;
  const std::vector<char> first = one.touched();
  const std::vector<char> second = other.touched();
  for (std::uintptr_t byte = begin; byte < end; ++byte) {
    if (first[byte - one.begin_] != 0 && second[byte - other.begin_] != 0) return byte;
  }
  return 0;
}

}  // namespace imbrex::mpi::check
