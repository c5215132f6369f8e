// SPDX-License-Identifier: BSD-3-Clause
// Persistent receives, and persistent sends of long messages. The program's handle is MPI's own.
// While the communicator posts, a start of a receive is MPI's, too; otherwise an operation of this
// library is behind the handle until it is waited for.
#include <memory>
#include <utility>

#include "mpi/abi/inquiries.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/messages/calls/receives.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/matching/communicators.hpp"
#include "mpi/messages/matching/receive.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/messages/requests/persistent.hpp"
#include "mpi/messages/requests/request_table.hpp"
#include "mpi/messages/sends/outgoing.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex::mpi::messages {

namespace {

void remember(const Arguments& it, MPI_Request request) {
  if (!in_service() || it.wanted.source == MPI_PROC_NULL) return;
  Communicator* const communicator = communicator_of(it.comm);
  if (communicator == nullptr) return;
  auto persistent = std::make_unique<Persistent>(
      Persistent{it, communicator->is_derived(it.type), *communicator});
  // The program may free its type while the request lives.
  if (persistent->owns_type) persistent->arguments.type = copy_of(it.type);
  requests().know(request, {*persistent.release()});
}

// Only long messages are started here; a start by MPI lets earlier messages go before.
void remember_send(const Arguments& it, const SendMode mode, MPI_Request request) {
  if (!in_service() || it.wanted.source == MPI_PROC_NULL || !sends::is_long(it.count, it.type)) {
    return;
  }
  Communicator* const communicator = communicator_of(it.comm);
  if (communicator == nullptr) return;
  auto persistent = std::make_unique<Persistent>(
      Persistent{it, communicator->is_derived(it.type), *communicator});
  if (persistent->owns_type) persistent->arguments.type = copy_of(it.type);
  persistent->sends = true;
  persistent->mode = mode;
  requests().know(request, {*persistent.release()});
}

std::unique_ptr<Receive> make_receive(Persistent& it) {
  auto receive = std::make_unique<Receive>("MPI_Start", it.arguments, it.communicator,
                                           Receive::Kind::data, true);
  receive->owner = it;
  return receive;
}

int start(Persistent& it, MPI_Request* request) {
  // The communicator is freed, and its object serves another.
  if (it.communicator.handle() != it.arguments.comm) return PMPI_Start(request);
  std::unique_ptr<Receive> receive;
  int code = MPI_SUCCESS;
  Arrived arrived;
  const auto post = [&] { code = PMPI_Start(request); };
  for (;;) {
    if (it.communicator.matching()) receive = make_receive(it);
    const Envelope wanted = it.arguments.wanted;
    switch (it.communicator.begin(wanted, receive.get(), &arrived, post)) {
      case Begun::posted:
        if (switches.traces_messages) {
          trace_posted(*request, call_of("MPI_Start", it.arguments), nullptr);
        }
        if (code == MPI_SUCCESS && !std::exchange(it.posted, true)) it.communicator.count_open(+1);
        return code;
      case Begun::queued:
        it.active = receive.release();
        return MPI_SUCCESS;
      case Begun::held:
        if (receive == nullptr) receive = make_receive(it);
        it.active = receive.get();
        receive.release()->matched_here(arrived);
        return MPI_SUCCESS;
      case Begun::again:
        break;
    }
  }
}

Persistent* persistent_of(MPI_Request request) noexcept {
  if (request == MPI_REQUEST_NULL || !requests().has_substitutes()) return nullptr;
  return requests().find(request).persistent();
}

int start_one(MPI_Request* request) {
  Persistent* const persistent = persistent_of(*request);
  if (persistent == nullptr || !in_service()) {
    sends::let_go_before_any();
    return PMPI_Start(request);
  }
  return persistent->sends ? sends::start(*persistent, request) : start(*persistent, request);
}

int start_all(int count, MPI_Request requests[]) {
  if (!in_service() || !messages::requests().has_substitutes()) {
    sends::let_go_before_any();
    return PMPI_Startall(count, requests);
  }
  for (int i = 0; i < count; ++i) {
    const int code = start_one(&requests[i]);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

}  // namespace

}  // namespace imbrex::mpi::messages

// ---- what programs call ----------------------------------------------------------------------

#define IMBREX_RECV_INIT(suffix, Count)                                                           \
  IMBREX_FUNCTION(Recv_init##suffix)(void* buffer, Count count, MPI_Datatype type, int source,    \
                                     int tag, MPI_Comm comm, MPI_Request* request) {              \
    const int code =                                                                              \
        PMPI_Recv_init##suffix(buffer, count, type, source, tag, comm, request);                  \
    if (code == MPI_SUCCESS) {                                                                    \
      imbrex::mpi::messages::remember({buffer, count, type, {source, tag}, comm}, *request);       \
    }                                                                                             \
    return code;                                                                                  \
  }

IMBREX_RECV_INIT(, int)
#if MPI_VERSION >= 4
IMBREX_RECV_INIT(_c, MPI_Count)
#endif

#define IMBREX_SEND_INIT(name, mode, Count)                                                       \
  IMBREX_FUNCTION(name)(const void* buffer, Count count, MPI_Datatype type, int peer, int tag,    \
                        MPI_Comm comm, MPI_Request* request) {                                    \
    const int code = PMPI_##name(buffer, count, type, peer, tag, comm, request);                  \
    if (code == MPI_SUCCESS) {                                                                    \
      using namespace imbrex::mpi::messages;                                                       \
      remember_send({const_cast<void*>(buffer), count, type, {peer, tag}, comm}, SendMode::mode,  \
                    *request);                                                                    \
    }                                                                                             \
    return code;                                                                                  \
  }

IMBREX_SEND_INIT(Send_init, standard, int)
IMBREX_SEND_INIT(Ssend_init, synchronous, int)
IMBREX_SEND_INIT(Rsend_init, ready, int)
#if MPI_VERSION >= 4
IMBREX_SEND_INIT(Send_init_c, standard, MPI_Count)
IMBREX_SEND_INIT(Ssend_init_c, synchronous, MPI_Count)
IMBREX_SEND_INIT(Rsend_init_c, ready, MPI_Count)
#endif

IMBREX_FUNCTION(Start)(MPI_Request* request) {
  if (request == nullptr) return PMPI_Start(request);
  return imbrex::mpi::messages::start_one(request);
}
IMBREX_FUNCTION(Startall)(int count, MPI_Request requests[]) {
  if (count > 0 && requests == nullptr) return PMPI_Startall(count, requests);
  return imbrex::mpi::messages::start_all(count, requests);
}
