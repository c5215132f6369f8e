// SPDX-License-Identifier: BSD-3-Clause
// A defect of Open MPI 4: if two processes have more than one TCP connection, messages in both
// directions that use a rendezvous may never end. Such a message is one in synchronous mode that
// MPI would otherwise send eagerly. MPI itself does so with long messages of derived types, which
// this library cannot prevent. Knows no MPI.
#pragma once

#include <cstdint>
#include <string_view>

namespace imbrex::mpi::crossing {

// The facts from outside of MPI. Null: not set.
struct Signs {
  std::string_view library;           // from MPI_Get_library_version
  int networks = 0;                   // number of interfaces that are up, without loopbacks
  const char* links = nullptr;        // OMPI_MCA_btl_tcp_links
  const char* eager_limit = nullptr;  // OMPI_MCA_btl_tcp_eager_limit
};
[[nodiscard]] Signs look(std::string_view library);

// The number of bytes up to which a message must not be sent in synchronous mode; 0 if all may.
[[nodiscard]] std::int64_t at_once_most(const Signs& signs) noexcept;

}  // namespace imbrex::mpi::crossing
