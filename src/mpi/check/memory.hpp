// SPDX-License-Identifier: BSD-3-Clause
// The memory that a buffer of MPI covers: exactly, also if its datatype leaves gaps. Used by
// checks.cpp; knows no operation.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

namespace imbrex::mpi::check {

// Thread safety: none.
class Memory {
 public:
  // Keeps the datatype, if needed, until its own end. REQUIRES: a valid datatype; count >= 0.
  Memory(const void* buffer, MPI_Count count, MPI_Datatype type);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // The memory reaches from the first byte to behind the last.
  [[nodiscard]] std::uintptr_t begin() const noexcept { return begin_; }
  [[nodiscard]] std::uintptr_t end() const noexcept { return end_; }
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }

  // The first byte that both cover; 0 if there is none. Buffers with gaps of more than 64 MiB from
  // end to end are not compared: they count as apart.
  [[nodiscard]] static std::uintptr_t meet(const Memory& one, const Memory& other);

 private:
  [[nodiscard]] bool is_large() const noexcept;
  [[nodiscard]] std::vector<char> touched() const;

  std::uintptr_t begin_ = 0;
  std::uintptr_t end_ = 0;
  MPI_Count count_;
  MPI_Count lower_ = 0;                     // offset of the first byte from the buffer's address
  MPI_Datatype gaps_ = MPI_DATATYPE_NULL;   // the datatype, if it leaves gaps; owned
};

}  // namespace imbrex::mpi::check
