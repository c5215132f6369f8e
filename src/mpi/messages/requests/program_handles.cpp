// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/requests/program_handles.hpp"

#include <memory>

#include "mpi/abi/switches.hpp"
#include "mpi/check/checks.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/messages/requests/generalized_request.hpp"
#include "mpi/messages/requests/request_table.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex::mpi::messages {

Substitute* substitute(MPI_Request request) noexcept {
  if (request == MPI_REQUEST_NULL || !requests().has_substitutes()) return nullptr;
  const Known known = requests().find(request);
  if (const Token* const token = known.token()) return token->operation;
  if (const Persistent* const persistent = known.persistent()) return persistent->active;
  return nullptr;
}

namespace {

void take_result(Substitute& operation, MPI_Request* request, MPI_Status* status) noexcept {
  const MPI_Request handle = *request;
  check::end_request(handle);
  copy_status(operation.status, status);
  if (Token* const token = operation.token()) {
    give_token(*token);
    *request = MPI_REQUEST_NULL;
  } else if (Persistent* const persistent = operation.persistent()) {
    persistent->active = nullptr;
  }
  if (operation.code == MPI_SUCCESS && switches.traces_messages) {
    trace_completed(operation, handle, 0);
  }
}

}  // namespace

void give_up(Substitute& operation, MPI_Request& request) noexcept {
  check::end_request(request);
  request = MPI_REQUEST_NULL;
  operation.take_handle();
}

int conclude(Substitute& operation, MPI_Request* request, MPI_Status* status) {
  const std::unique_ptr<Substitute> owned(&operation);
  take_result(operation, request, status);
  if (operation.code == MPI_SUCCESS) return MPI_SUCCESS;
  operation.forget_freed();
  return raise_error(operation);
}

int conclude_quietly(Substitute& operation, MPI_Request* request, MPI_Status* status) noexcept {
  const std::unique_ptr<Substitute> owned(&operation);
  take_result(operation, request, status);
  return operation.code;
}

namespace {

struct Orphan : Listener {
  explicit Orphan(Substitute& its) : operation(&its) { fire = &Orphan::end; }
  std::unique_ptr<Substitute> operation;

  static void end(Listener& self) noexcept { delete static_cast<Orphan*>(&self); }
};

}  // namespace

void let_go(Substitute& operation) noexcept {
  Token* const token = operation.token();
  Orphan* const orphan = std::make_unique<Orphan>(operation).release();
  operation.take_handle();
  // A done operation has announced its token, which is given back before the operation ends.
  const bool waits = operation.attend(*orphan);
  if (token != nullptr) give_token(*token);
  if (!waits) Orphan::end(*orphan);
}

bool is_let_go(const Substitute& operation) noexcept {
  const Listener* const listener = operation.listener();
  return listener != nullptr && listener->fire == &Orphan::end;
}

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

}  // namespace imbrex::mpi::messages
