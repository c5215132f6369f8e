// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/report/waits/mpi_waits.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <cstdint>

#include "mpi/abi/inquiries.hpp"

namespace imbrex::mpi::report {

std::string name_of(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (PMPI_Comm_get_name(comm, name, &length) == MPI_SUCCESS && length > 0) {
    return {name, static_cast<std::size_t>(length)};
  }
  int size = 0;
  PMPI_Comm_size(comm, &size);
#ifdef MPI_ABI_VERSION  // the standard's ABI leaves Fortran to others
  const int number = PMPI_Comm_toint(comm);
#else
  const int number = PMPI_Comm_c2f(comm);
#endif
  return fmt::format("communicator #{} of {} ranks", static_cast<std::uint32_t>(number), size);
}

Wait wait_of(const Call& call, const detail::TaskLabel& task) {
  Wait wait = wait_of(call);
  wait.task = detail::describe(task);
  return wait;
}

Wait wait_of(const Call& call) {
  Wait wait{.call = call.name, .task = {}};
  if (call.waits_here) wait.call += " (not sent yet: in imbrex's queue, see IMBREX_SENDS)";
  if (call.comm != MPI_COMM_NULL) wait.comm = name_of(call.comm);
  if (call.peer != Call::none) wait.peer = call.peer == MPI_ANY_SOURCE ? any : call.peer;
  if (call.tag != Call::none) wait.tag = call.tag == MPI_ANY_TAG ? any : call.tag;
  wait.receives = call.kind == Kind::receive;
  if (call.type != MPI_DATATYPE_NULL) {
    const std::int64_t bytes = bytes_of(call.count, call.type);
    wait.sized = bytes >= 0;
    if (wait.sized) wait.bytes = static_cast<std::uint64_t>(bytes);
  }
  return wait;
}

}  // namespace imbrex::mpi::report
