// SPDX-License-Identifier: BSD-3-Clause
// Receives and probes, as programs call them: in tasks and elsewhere, on every thread, they go
// through the communicator, so that none overtakes a waiting receive or misses a held message. A
// thread outside of tasks polls while it waits.
#include "mpi/messages/calls/receives.hpp"

#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "mpi/abi/switches.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/messages/calls/probed.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/matching/communicators.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/messages/requests/generalized_request.hpp"
#include "mpi/messages/requests/program_handles.hpp"
#include "mpi/messages/requests/request_table.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex::mpi::messages {

Communicator* place_of(const Arguments& it) {
  if (!in_service() || it.wanted.source == MPI_PROC_NULL) return nullptr;
  Communicator* const communicator = communicator_of(it.comm);
  return communicator != nullptr && communicator->accepts(it) ? communicator : nullptr;
}

namespace {

// ---- receives --------------------------------------------------------------------------------

struct Started {
  Begun begun;
  int code = MPI_SUCCESS;
  MPI_Request request = MPI_REQUEST_NULL;  // unless the receive is queued
};

// Gives the receive to MPI, or queues the object that `make()` returns: only where it must, since
// the object may copy the type, which may call functions of the program. Null: out of memory.
template <class Make>
Started start(const Arguments& it, Communicator& communicator, Make make) {
  Started started{};
  Arrived arrived;
  Receive* receive = nullptr;
  do {
    if (communicator.matching() && (receive = make()) == nullptr) {
      return {.begun = Begun::posted, .code = MPI_ERR_NO_MEM};
    }
    started.begun = communicator.begin(it.wanted, receive, &arrived,
                                       [&] { started.code = post(it, &started.request); });
  } while (started.begun == Begun::again);
  if (started.begun == Begun::held) {
    started.code = receive_message(it, &arrived.message, &started.request);
  }
  return started;
}

// MPI has the receive.
int finish(const Call& call, Communicator& communicator, Started& started, MPI_Status* status) {
  int done = 0;
  Outcome outcome = started.code;
  if (outcome.code == MPI_SUCCESS) {
    const Callback callback(call);
    outcome = completion::Test(call.owes_handler(), &started.request, &done, status);
  }
  // An exception of an error handler leaves no request behind.
  struct Counted {
    Communicator& its_communicator;
    explicit Counted(Communicator& its) noexcept : its_communicator(its) { its.count_open(+1); }
    ~Counted() { its_communicator.count_open(-1); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
  };
  try {
    if (done != 0 || outcome.code != MPI_SUCCESS) {
      started.code = end_call(call, outcome);
    } else {
      const Counted counted(communicator);
      started.code = wait_pending(call, started.request, status, nullptr);
    }
    return end_kept(started.request, started.code);
  } catch (...) {
    (void)end_kept(started.request, MPI_ERR_OTHER);
    throw;
  }
}

// The receive waits in the queue of its communicator.
int finish(Receive& receive, MPI_Status* status) {
  wait_for(receive);
  copy_status(receive.status, status);
  return receive.code == MPI_SUCCESS ? MPI_SUCCESS : raise_error(receive);
}

// MPI answers at once: no process, or wrong arguments.
int recv_at_once(const Arguments& it, MPI_Status* status) {
  // MPICH 4 gives the non-blocking call a status of zeros.
  if (it.wanted.source == MPI_PROC_NULL) {
    return PMPI_Recv(it.buffer, 0, it.type, MPI_PROC_NULL, it.wanted.tag, it.comm, status);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = post(it, &request);
  return code == MPI_SUCCESS ? PMPI_Wait(&request, status) : code;
}

}  // namespace

int recv(const char* name, const Arguments& it, MPI_Status* status) {
  Communicator* const communicator = place_of(it);
  if (communicator == nullptr) return recv_at_once(it, status);
  std::optional<Receive> queued;
  Started started = start(it, *communicator, [&] {
    return &queued.emplace(name, it, *communicator, Receive::Kind::data, false);
  });
  return started.begun == Begun::queued
             ? finish(*queued, status)
             : finish(call_of(name, it), *communicator, started, status);
}

namespace {

int irecv_anywhere(const Call& call, const Arguments& it, MPI_Request* request) {
  Communicator* const communicator = request != nullptr ? place_of(it) : nullptr;
  if (communicator == nullptr) return post(it, request);
  std::unique_ptr<Receive> queued;
  Token* token = nullptr;
  const Started started = start(it, *communicator, [&]() -> Receive* {
    queued = std::make_unique<Receive>(call.name, it, *communicator, Receive::Kind::data,
                                       call.at_once);
    token = take_token(*queued);
    if (token == nullptr) return nullptr;
    queued->give_handle(*token);
    return queued.get();
  });
  if (started.begun == Begun::queued) {
    (void)queued.release();  // it may be complete already: conclude() ends it
    *request = token->request;
    return MPI_SUCCESS;
  }
  if (token != nullptr) give_token(*token);
  *request = started.request;
  // MPI's request for a held message: this library may have to call its communicator's handler.
  if (started.code == MPI_SUCCESS &&
      (started.begun == Begun::posted || has<Quirk::errors_reach_other_handlers>())) {
    requests().know(started.request, {*communicator}, it.wanted);
  }
  return started.code;
}

}  // namespace

int irecv(const Call& call, const Arguments& it, MPI_Request* request) {
  const int code = irecv_anywhere(call, it, request);
  if (code == MPI_SUCCESS && switches.traces_messages) {
    trace_posted(*request, call, substitute(*request));
  }
  return code;
}

// ---- probes ----------------------------------------------------------------------------------

namespace {

struct Probe {
  const char* name;
  Envelope wanted;
  MPI_Comm comm;
  bool take;
};

// The communicator that the probe searches. Null: MPI's own call returns at once.
Communicator* place_of(const Probe& it) {
  if (!in_service() || it.wanted.source == MPI_PROC_NULL) return nullptr;
  Communicator* const communicator = communicator_of(it.comm);
  return communicator != nullptr && communicator->accepts(it.wanted) ? communicator : nullptr;
}

int look_at_mpi(const Probe& it, int* found, Arrived* arrived) {
  const auto [source, tag] = it.wanted;
  return it.take
             ? PMPI_Improbe(source, tag, it.comm, found, &arrived->message, &arrived->status)
             : PMPI_Iprobe(source, tag, it.comm, found, &arrived->status);
}

int look(const Probe& it, int* found, Arrived* arrived) {
  Communicator* const communicator = place_of(it);
  const Callback callback({.name = it.name});
  if (communicator == nullptr) return look_at_mpi(it, found, arrived);
  return communicator->look(it.wanted, it.take, found, arrived);
}

int probe_queued(const Probe& it, Communicator& communicator, Arrived* arrived) {
  const Arguments arguments{nullptr, 0, MPI_DATATYPE_NULL, it.wanted, it.comm};
  Receive receive(it.name, arguments, communicator,
                  it.take ? Receive::Kind::message : Receive::Kind::probe, false);
  if (communicator.begin_probe(it.wanted, receive, arrived) == Begun::held) return MPI_SUCCESS;
  wait_for(receive);
  *arrived = {receive.message, receive.status};
  return receive.code == MPI_SUCCESS ? MPI_SUCCESS : raise_error(receive);
}

int probe(const Probe& it, Arrived* arrived) {
  int found = 0;
  auto ask = [&](int* done) {
    const int code = look(it, done, arrived);
    found = *done;
    return code;
  };
  if (!suspends()) return wait_until(call_of(it.name, {nullptr, 0, MPI_BYTE, it.wanted, it.comm}),
                                     question(ask));
  Outcome outcome = MPI_SUCCESS;
  if (ask_in_place({.name = it.name}, question(ask), &outcome)) {
    return end_call({.name = it.name}, outcome);
  }
  return probe_queued(it, *place_of(it), arrived);
}

void hand_out(const Probe& it, const Arrived& arrived, MPI_Message* message, MPI_Status* status) {
  if (message != nullptr) {
    *message = arrived.message;
    if (switches.traces_messages) trace_found(arrived.message, members_of(it.comm));
  }
  copy_status(arrived.status, status);
}

// MPI refuses a call that lacks a place for its result.
int refuse(const Probe& it, int* flag, MPI_Message* message, MPI_Status* status) {
  const auto [source, tag] = it.wanted;
  return it.take ? PMPI_Improbe(source, tag, it.comm, flag, message, status)
                 : PMPI_Iprobe(source, tag, it.comm, flag, status);
}

// Probe and Mprobe that do not wait.
int look_now(const Probe& it, int* flag, MPI_Message* message, MPI_Status* status) {
  if (flag == nullptr || (it.take && message == nullptr)) return refuse(it, flag, message, status);
  Arrived arrived{MPI_MESSAGE_NULL, {}};
  const int code = end_call({.name = it.name}, look(it, flag, &arrived));
  const bool found = code == MPI_SUCCESS && *flag != 0;
  if (found) hand_out(it, arrived, message, status);
  note_answer(found || code != MPI_SUCCESS, [&it] {
    const Probed probed(it.wanted.source, it.wanted.tag, it.comm);
    go_on_asking(it.name);
  });
  return code;
}

int look_long(const Probe& it, MPI_Message* message, MPI_Status* status) {
  if (it.take && message == nullptr) return refuse(it, nullptr, message, status);
  Arrived arrived{MPI_MESSAGE_NULL, {}};
  const int code = probe(it, &arrived);
  if (code != MPI_SUCCESS) return code;
  hand_out(it, arrived, message, status);
  return code;
}

}  // namespace
}  // namespace imbrex::mpi::messages

// ---- what programs call ----------------------------------------------------------------------

// Once with int and once, if MPI has it, with MPI_Count.
#define IMBREX_RECEIVES(suffix, Count)                                                            \
  IMBREX_FUNCTION(Recv##suffix)(void* buffer, Count count, MPI_Datatype type, int source,         \
                                int tag, MPI_Comm comm, MPI_Status* status) {                     \
    return imbrex::mpi::messages::recv("MPI_Recv" #suffix,                                         \
                                      {buffer, count, type, {source, tag}, comm}, status);        \
  }                                                                                               \
  IMBREX_FUNCTION(Irecv##suffix)(void* buffer, Count count, MPI_Datatype type, int source,        \
                                 int tag, MPI_Comm comm, MPI_Request* request) {                  \
    using namespace imbrex::mpi;                                                                  \
    const Call call{"MPI_Irecv" #suffix, comm, source, tag, count, type, Kind::receive, true};    \
    return messages::irecv(call, {buffer, count, type, {source, tag}, comm}, request);             \
  }                                                                                               \
  IMBREX_FUNCTION(Mrecv##suffix)(void* buffer, Count count, MPI_Datatype type,                    \
                                 MPI_Message* message, MPI_Status* status) {                      \
    const imbrex::mpi::Call call{.name = "MPI_Mrecv" #suffix, .count = count, .type = type};      \
    return imbrex::mpi::carry_out(call, status, [&](MPI_Request* request) {                       \
      return PMPI_Imrecv##suffix(buffer, count, type, message, request);                          \
    });                                                                                           \
  }

IMBREX_RECEIVES(, int)
#if MPI_VERSION >= 4
IMBREX_RECEIVES(_c, MPI_Count)
#endif

IMBREX_FUNCTION(Probe)(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  return imbrex::mpi::messages::look_long({"MPI_Probe", {source, tag}, comm, false}, nullptr,
                                         status);
}
IMBREX_FUNCTION(Mprobe)(int source, int tag, MPI_Comm comm, MPI_Message* message,
                          MPI_Status* status) {
  return imbrex::mpi::messages::look_long({"MPI_Mprobe", {source, tag}, comm, true}, message,
                                         status);
}
IMBREX_FUNCTION(Iprobe)(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  return imbrex::mpi::messages::look_now({"MPI_Iprobe", {source, tag}, comm, false}, flag, nullptr,
                                        status);
}
IMBREX_FUNCTION(Improbe)(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                           MPI_Status* status) {
  return imbrex::mpi::messages::look_now({"MPI_Improbe", {source, tag}, comm, true}, flag, message,
                                        status);
}
