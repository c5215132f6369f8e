// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/matching/persistent.hpp"

#include <memory>

#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/matching/request_table.hpp"

namespace imbrex::mpi::receive {

int free_persistent(Persistent& gone, MPI_Request* request) noexcept {
  const std::unique_ptr<Persistent> owned(&gone);
  requests().forget(*request);
  if (gone.active != nullptr) {
    gone.active->owner = {};
    let_go(*gone.active);
  }
  if (gone.posted) gone.communicator.count_open(-1);
  if (gone.owns_type) PMPI_Type_free(&gone.arguments.type);
  return PMPI_Request_free(request);
}

}  // namespace imbrex::mpi::receive
