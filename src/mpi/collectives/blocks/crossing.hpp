// SPDX-License-Identifier: BSD-3-Clause
// A defect of Open MPI 4: if two processes have more than one TCP connection, messages in both
// directions that use a rendezvous may never end. Such a message is one in synchronous mode that
// MPI would otherwise send eagerly. MPI itself does so with long messages of derived types, which
// this library cannot prevent. Knows no MPI.
#pragma once

#include <cstdint>

namespace imbrex::mpi::blocks {

// The facts from outside of MPI. Null: not set.
struct Signs {
  bool is_affected = false;           // the MPI has Quirk::connections_cross
  int networks = 0;                   // number of interfaces that are up, without loopbacks
  const char* links = nullptr;        // OMPI_MCA_btl_tcp_links
  const char* eager_limit = nullptr;  // OMPI_MCA_btl_tcp_eager_limit
};
[[nodiscard]] Signs look(bool is_affected);

// The number of bytes up to which a message must not be sent in synchronous mode; 0 if all may.
[[nodiscard]] std::int64_t at_once_most(const Signs& signs) noexcept;

}  // namespace imbrex::mpi::blocks
