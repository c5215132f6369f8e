// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/active/post/wire.hpp"

#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"
#include "mpi/engine/mpi_errors.hpp"

namespace imbrex::mpi::active {

void Wire::open() {
  require("MPI_Comm_dup", PMPI_Comm_dup(MPI_COMM_WORLD, &comm));
  PMPI_Comm_set_name(comm, "imbrex active messages");
  PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  PMPI_Comm_rank(comm, &rank);
  PMPI_Comm_size(comm, &ranks);
  void* largest = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&largest), &found);
  if (found != 0) tag_last = *static_cast<const int*>(largest);
}

void Wire::fail(const std::string& call, const int code) const noexcept {
  const std::string failed = describe_failed(comm);
  print(unprefixed(make_error(("active messages: " + call).c_str(), code,
                              detail::describe_current_task())) +
        (failed.empty() ? failed : ": " + failed) + "; all ranks are ended");
  abort_all(MPI_COMM_WORLD, 1);
}

}  // namespace imbrex::mpi::active
