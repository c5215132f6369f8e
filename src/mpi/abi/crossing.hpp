// SPDX-License-Identifier: BSD-3-Clause
// A defect of Open MPI 4: where two processes have more than one TCP connection, messages in both
// directions whose senders wait for the receiver's answer may never end. Such a message is one in
// synchronous mode that MPI would else send at once; MPI does so itself with long ones of derived
// types, which nobody here can help. Knows no MPI.
#pragma once

#include <cstdint>
#include <string_view>

namespace imbrex::mpi::crossing {

// What one finds out of outside of MPI. Null: not set.
struct Signs {
  std::string_view library;           // by MPI_Get_library_version
  int networks = 0;                   // interfaces that are up, without loopbacks
  const char* links = nullptr;        // OMPI_MCA_btl_tcp_links
  const char* eager_limit = nullptr;  // OMPI_MCA_btl_tcp_eager_limit
};
[[nodiscard]] Signs look(std::string_view library);

// Bytes: what is not longer must not be sent in synchronous mode; 0 where all may be.
[[nodiscard]] std::int64_t at_once_most(const Signs& signs) noexcept;

}  // namespace imbrex::mpi::crossing
