// SPDX-License-Identifier: BSD-3-Clause
// MPI_Sendrecv, MPI_Isendrecv and the variants with `_replace`: a receive and a send at once.
#include <atomic>
#include <climits>
#include <memory>
#include <new>
#include <utility>

#include "mpi/abi/standard.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/messages/calls/receives.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/messages/requests/generalized_request.hpp"
#include "mpi/messages/requests/program_handles.hpp"
#include "mpi/messages/requests/request_table.hpp"
#include "mpi/messages/sends/outgoing.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex::mpi::messages {

namespace {

struct Sending {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
  int destination;
  int tag;
  MPI_Comm comm;
};

// Sends by MPI's own call.
int isend(const Sending& it, MPI_Request* request) {
  sends::let_go_before(it.comm, it.destination);
  const Callback callback;
#if MPI_VERSION >= 4
  if (it.count > INT_MAX) {
    return PMPI_Isend_c(it.buffer, it.count, it.type, it.destination, it.tag, it.comm, request);
  }
#endif
  return PMPI_Isend(it.buffer, static_cast<int>(it.count), it.type, it.destination, it.tag, it.comm,
                    request);
}

// The send of isend(), when it has its turn.
int isend_in_turn(const Call& call, const void* buffer, MPI_Request* request) {
  if (!sends::passes(call.count, call.type)) {
    const sends::Outgoing outgoing{buffer,   call.count, call.type,             call.peer,
                                   call.tag, call.comm,  sends::Mode::standard};
    if (const sends::Route route = sends::route_of(outgoing, sends::Asks::nothing)) {
      return sends::isend(call, outgoing, route, request);
    }
  }
  return isend({buffer, call.count, call.type, call.peer, call.tag, call.comm}, request);
}

// MPICH 4 gives the non-blocking receive a status of zeros.
void set_no_process(const Arguments& it, MPI_Status* status) {
  (void)PMPI_Recv(nullptr, 0, it.type, MPI_PROC_NULL, it.wanted.tag, it.comm, status);
}

// Each part is waited for by itself, so that the error handler of `comm` is called.
int exchange(const char* name, const Sending& sending, const Arguments& it, MPI_Status* status) {
  const Call receive = call_of(name, it);
  const Call send{.name = name,
                  .comm = sending.comm,
                  .peer = sending.destination,
                  .tag = sending.tag,
                  .count = sending.count,
                  .type = sending.type,
                  .kind = Kind::send};
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int code = irecv(receive, it, &requests[0]);
  if (code != MPI_SUCCESS) return code;
  const Outcome begun = isend_in_turn(send, sending.buffer, &requests[1]);
  if (begun.code != MPI_SUCCESS) {
    // The caller may use the buffer only when MPI does not use it any more.
    (void)cancel(&requests[0]);
    (void)wait(receive, &requests[0], MPI_STATUS_IGNORE);
    return end_call(send, begun);
  }
  MPI_Status received = {};
  try {
    code = wait(receive, &requests[0], &received);
  } catch (...) {  // of the error handler: the caller may not use the buffer of the send yet
    (void)wait(send, &requests[1], MPI_STATUS_IGNORE);
    throw;
  }
  const int sent = wait(send, &requests[1], MPI_STATUS_IGNORE);
  if (code == MPI_SUCCESS) code = sent;
  if (it.wanted.source == MPI_PROC_NULL) set_no_process(it, &received);
  copy_status(received, status);
  return code;
}

int fail(MPI_Comm comm, int code) {
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

// Outgoing data in memory of their own, so that both directions may go at once.
struct Packed {
  std::unique_ptr<char[]> memory;
  MPI_Count bytes = 0;
};

int pack(const Sending& it, Packed* packed) {
  if (it.count < 0) return fail(it.comm, MPI_ERR_COUNT);  // MPI_Pack_size returns another error
                                                          // code
  const auto allocate = [&](MPI_Count bytes) {
    packed->memory.reset(new (std::nothrow) char[static_cast<std::size_t>(bytes)]);
    return packed->memory != nullptr;
  };
#if MPI_VERSION >= 4
  MPI_Count size = 0;
  int code = PMPI_Pack_size_c(it.count, it.type, it.comm, &size);
  if (code != MPI_SUCCESS) return code;
  if (!allocate(size)) return fail(it.comm, MPI_ERR_NO_MEM);
  return PMPI_Pack_c(it.buffer, it.count, it.type, packed->memory.get(), size, &packed->bytes,
                     it.comm);
#else
  int size = 0;
  int end = 0;
  int code = PMPI_Pack_size(static_cast<int>(it.count), it.type, it.comm, &size);
  if (code != MPI_SUCCESS) return code;
  if (!allocate(size)) return fail(it.comm, MPI_ERR_NO_MEM);
  code = PMPI_Pack(it.buffer, static_cast<int>(it.count), it.type, packed->memory.get(), size, &end,
                   it.comm);
  packed->bytes = end;
  return code;
#endif
}

Sending sending_of(const Packed& packed, const Sending& it) {
  return {packed.memory.get(), packed.bytes, MPI_PACKED, it.destination, it.tag, it.comm};
}

int replace(const char* name, const Sending& sending, const Arguments& it, MPI_Status* status) {
  Packed packed;
  const int code = pack(sending, &packed);
  if (code != MPI_SUCCESS) return code;
  return exchange(name, sending_of(packed, sending), it, status);
}

#if IMBREX_MPI_4

// One request for a send and a receive, if the receive waits here. The program's request stands for
// `both`, which ends when `receive` and the send have ended. Thread safety: as its parts; the last
// of the two ends it.
struct Pair : Operation, Listener {
  Pair(const char* name, const Arguments& it, Communicator& communicator, Packed its_packed)
      : both(std::make_unique<Receive>(name, it, communicator, Receive::Kind::data, true)
                 .release()),
        receive(std::make_unique<Receive>(name, it, communicator, Receive::Kind::data, true)),
        packed(std::move(its_packed)) {
    call = {.name = name};
    complete = &Pair::send_ended;
    fire = &Pair::receive_ended;
  }
  static void send_ended(Operation& self) noexcept { static_cast<Pair&>(self).end_part(); }
  static void receive_ended(Listener& self) noexcept { static_cast<Pair&>(self).end_part(); }

  void end_part() noexcept {
    if (left.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const std::unique_ptr<Pair> owned(this);
    const bool failed = receive->code != MPI_SUCCESS;
    both->end_like(failed || code == MPI_SUCCESS ? static_cast<Operation&>(*receive) : *this,
                   failed ? receive->code : code);
  }

  Receive* both;  // the program's, from its request
  std::unique_ptr<Receive> receive;
  Packed packed;
  std::atomic<int> left{2};  // acq_rel: the last part sees the results of both
};

int begin_pair(std::unique_ptr<Pair> pair, const Sending& sending, const Arguments& it,
               MPI_Request* request) {
  Token* const token = take_token(*pair->both);
  const int code = token != nullptr ? isend(sending, &pair->request) : MPI_ERR_NO_MEM;
  if (code != MPI_SUCCESS) {
    if (token != nullptr) give_token(*token);
    delete pair->both;
    return token != nullptr ? code : fail(it.comm, code);
  }
  Pair& self = *pair.release();
  self.both->give_handle(*token);
  *request = token->request;
  engine().expect();
  Receive& receive = *self.receive;
  Arrived arrived;
  int posted = MPI_SUCCESS;
  const Begun begun = receive.communicator.begin(it.wanted, &receive, &arrived,
                                                 [&] { posted = post(it, &receive.request); });
  if (begun == Begun::held) receive.matched_here(arrived);
  if (begun == Begun::posted) {
    engine().expect();
    if (posted == MPI_SUCCESS) {
      engine().hand_over(receive);
    } else {
      receive.end_failed(posted);
    }
  }
  engine().add(self);
  if (!receive.attend(self)) self.end_part();
  return MPI_SUCCESS;
}

template <class Post>
int isendrecv_anywhere(const char* name, const Sending& sending, const Arguments& it,
                       bool pack_first, MPI_Request* request, Post mpis_own) {
  sends::let_go_before(sending.comm, sending.destination);
  Communicator* const communicator = place_of(it);
  if (communicator == nullptr) return mpis_own();
  if (!communicator->matching()) {
    int code = MPI_SUCCESS;
    const Begun begun = communicator->begin_unless_held(it.wanted, [&] { code = mpis_own(); });
    if (begun == Begun::posted) {
      if (code == MPI_SUCCESS) requests().know(*request, {*communicator}, it.wanted);
      return code;
    }
  }
  Packed packed;
  if (pack_first) {
    const int code = pack(sending, &packed);
    if (code != MPI_SUCCESS) return code;
  }
  auto pair = std::make_unique<Pair>(name, it, *communicator, std::move(packed));
  const Sending outgoing = pack_first ? sending_of(pair->packed, sending) : sending;
  return begin_pair(std::move(pair), outgoing, it, request);
}

template <class Post>
int isendrecv(const char* name, const Sending& sending, const Arguments& it, bool pack_first,
              MPI_Request* request, Post mpis_own) {
  const int code = isendrecv_anywhere(name, sending, it, pack_first, request, mpis_own);
  if (code == MPI_SUCCESS && switches.traces_messages &&
      !has<Quirk::isendrecv_has_no_status>()) {
    trace_posted(*request, call_of(name, it), substitute(*request));
  }
  return code;
}

#endif

}  // namespace
}  // namespace imbrex::mpi::messages

// ---- what programs call ----------------------------------------------------------------------

#define IMBREX_EXCHANGES(suffix, Count)                                                           \
  IMBREX_FUNCTION(Sendrecv##suffix)(                                                              \
      const void* send_buffer, Count send_count, MPI_Datatype send_type, int destination,         \
      int send_tag, void* buffer, Count count, MPI_Datatype type, int source, int tag,            \
      MPI_Comm comm, MPI_Status* status) {                                                        \
    using namespace imbrex::mpi::messages;                                                         \
    const Sending sending{send_buffer, send_count, send_type, destination, send_tag, comm};       \
    return exchange("MPI_Sendrecv" #suffix, sending,                                              \
                    {buffer, count, type, {source, tag}, comm}, status);                          \
  }                                                                                               \
  IMBREX_FUNCTION(Sendrecv_replace##suffix)(                                                      \
      void* buffer, Count count, MPI_Datatype type, int destination, int send_tag, int source,    \
      int tag, MPI_Comm comm, MPI_Status* status) {                                               \
    return imbrex::mpi::messages::replace("MPI_Sendrecv_replace" #suffix,                          \
                                         {buffer, count, type, destination, send_tag, comm},      \
                                         {buffer, count, type, {source, tag}, comm}, status);     \
  }

IMBREX_EXCHANGES(, int)
#if MPI_VERSION >= 4
IMBREX_EXCHANGES(_c, MPI_Count)
#endif

#if IMBREX_MPI_4

#define IMBREX_ISENDRECV(suffix, Count)                                                           \
  IMBREX_FUNCTION(Isendrecv##suffix)(                                                             \
      const void* send_buffer, Count send_count, MPI_Datatype send_type, int destination,         \
      int send_tag, void* buffer, Count count, MPI_Datatype type, int source, int tag,            \
      MPI_Comm comm, MPI_Request* request) {                                                      \
    using namespace imbrex::mpi::messages;                                                         \
    const Sending sending{send_buffer, send_count, send_type, destination, send_tag, comm};       \
    const Arguments receive{buffer, count, type, {source, tag}, comm};                            \
    const char* const name = "MPI_Isendrecv" #suffix;                                             \
    return isendrecv(name, sending, receive, false, request, [&] {                                \
      return PMPI_Isendrecv##suffix(send_buffer, send_count, send_type, destination, send_tag,    \
                                    buffer, count, type, source, tag, comm, request);             \
    });                                                                                           \
  }                                                                                               \
  IMBREX_FUNCTION(Isendrecv_replace##suffix)(                                                     \
      void* buffer, Count count, MPI_Datatype type, int destination, int send_tag, int source,    \
      int tag, MPI_Comm comm, MPI_Request* request) {                                             \
    using namespace imbrex::mpi::messages;                                                         \
    const Sending sending{buffer, count, type, destination, send_tag, comm};                      \
    const Arguments receive{buffer, count, type, {source, tag}, comm};                            \
    const char* const name = "MPI_Isendrecv_replace" #suffix;                                     \
    return isendrecv(name, sending, receive, true, request, [&] {                                 \
      return PMPI_Isendrecv_replace##suffix(buffer, count, type, destination, send_tag, source,   \
                                            tag, comm, request);                                  \
    });                                                                                           \
  }

IMBREX_ISENDRECV(, int)
#if MPI_VERSION >= 4
IMBREX_ISENDRECV(_c, MPI_Count)
#endif
#endif
