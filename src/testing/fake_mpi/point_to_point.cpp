// SPDX-License-Identifier: BSD-3-Clause
// fake_mpi: sends, receives and probes.
#include "simulation.hpp"

namespace imbrex::fake_mpi {

namespace {

struct Arguments {
  Request::Kind kind;
  void* buffer;
  int count;
  MPI_Datatype type;
  int peer;
  int tag;
  MPI_Comm comm;
  bool synchronous = false;
  bool persistent = false;
};

bool valid_peer(const Comm& comm, int peer, bool wildcards) {
  if (peer == MPI_PROC_NULL || (wildcards && peer == MPI_ANY_SOURCE)) return true;
  return peer >= 0 && peer < comm.peers;
}

// A program that declares that it uses no wildcard must not use one, nor may a tool for it.
void check_hints(Lock& lock, const Comm& comm, int peer, int tag) {
  const auto asserted = [&](const char* key) {
    const auto found = comm.info.find(key);
    return found != comm.info.end() && found->second == "true";
  };
  if ((peer == MPI_ANY_SOURCE && asserted("mpi_assert_no_any_source")) ||
      (tag == MPI_ANY_TAG && asserted("mpi_assert_no_any_tag"))) {
    lock->breach("a wildcard is used on a communicator that asserts to have none");
  }
}

bool valid_tag(int tag, bool wildcards) { return tag >= 0 || (wildcards && tag == MPI_ANY_TAG); }

int start(const char* function, const Arguments& it, MPI_Request* request) {
  Lock lock(function);
  *request = MPI_REQUEST_NULL;
  Comm* const comm = find_comm(lock, it.comm);
  if (comm == nullptr) return raise(lock, nullptr, MPI_ERR_COMM);
  if (const int code = lock.fault(); code != MPI_SUCCESS) return raise(lock, comm, code);
  const bool receives = it.kind == Request::Kind::receive;
  std::size_t bytes = 0;
  if (it.count < 0) return raise(lock, comm, MPI_ERR_COUNT);
  if (!find_size(lock, it.type, &bytes)) return raise(lock, comm, MPI_ERR_TYPE);
  if (!valid_peer(*comm, it.peer, receives)) return raise(lock, comm, MPI_ERR_RANK);
  if (it.peer != MPI_PROC_NULL && !valid_tag(it.tag, receives)) {
    return raise(lock, comm, MPI_ERR_TAG);
  }
  if (receives) check_hints(lock, *comm, it.peer, it.tag);
  Request& made = lock->add_request(it.kind, comm);
  made.buffer = it.buffer;
  made.bytes = bytes * static_cast<std::size_t>(it.count);
  made.peer = it.peer;
  made.tag = it.tag;
  made.synchronous = it.synchronous;
  made.persistent = it.persistent;
  made.active = !it.persistent;
  if (made.active) lock->activate(made);
  *request = made.handle;
  return MPI_SUCCESS;
}

// The blocking functions: the thread has nothing else to do.
int start_and_wait(const char* function, const Arguments& it, MPI_Status* status) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = start(function, it, &request);
  return code != MPI_SUCCESS ? code : PMPI_Wait(&request, status);
}

void describe(const Message& message, MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = message.sending.source;
  status->MPI_TAG = message.sending.tag;
  status->fake_bytes = static_cast<MPI_Count>(message.sending.bytes.size());
  status->fake_cancelled = 0;
}

void describe_null(MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = MPI_PROC_NULL;
  status->MPI_TAG = MPI_ANY_TAG;
  status->fake_bytes = 0;
  status->fake_cancelled = 0;
}

// Both probes; `message` is null for probes that leave the message in place.
int probe(const char* function, int peer, int tag, MPI_Comm handle, int* flag,
          MPI_Message* message, MPI_Status* status) {
  Lock lock(function);
  Comm* const comm = find_comm(lock, handle);
  if (comm == nullptr) return raise(lock, nullptr, MPI_ERR_COMM);
  if (const int code = lock.fault(); code != MPI_SUCCESS) return raise(lock, comm, code);
  if (!valid_peer(*comm, peer, true)) return raise(lock, comm, MPI_ERR_RANK);
  *flag = 1;
  if (peer == MPI_PROC_NULL) {
    describe_null(status);
    if (message != nullptr) *message = MPI_MESSAGE_NO_PROC;
    return MPI_SUCCESS;
  }
  if (!valid_tag(tag, true)) return raise(lock, comm, MPI_ERR_TAG);
  check_hints(lock, *comm, peer, tag);
  lock->progress();
  Message* const found = lock->find_unexpected(*comm, peer, tag);
  *flag = found != nullptr ? 1 : 0;
  if (found == nullptr) return MPI_SUCCESS;
  describe(*found, status);
  if (message == nullptr) return MPI_SUCCESS;
  lock->take(*found);
  found->extracted = true;
  found->handle = *message = reinterpret_cast<MPI_Message>(lock->next_handle++);
  lock->extracted[number_of(*message)] = found;
  return MPI_SUCCESS;
}

int receive_matched(const char* function, void* buffer, int count, MPI_Datatype type,
                    MPI_Message* message, MPI_Request* request) {
  Lock lock(function);
  *request = MPI_REQUEST_NULL;
  if (*message == MPI_MESSAGE_NO_PROC) {
    Request& made = lock->add_request(Request::Kind::receive,
                                      lock->comms.at(number_of(MPI_COMM_SELF)).get());
    made.peer = MPI_PROC_NULL;
    lock->activate(made);
    *message = MPI_MESSAGE_NULL;
    *request = made.handle;
    return MPI_SUCCESS;
  }
  const auto found = lock->extracted.find(number_of(*message));
  if (found == lock->extracted.end()) {
    lock->breach("a message that is null, unknown or received");
    return raise(lock, nullptr, MPI_ERR_REQUEST);
  }
  Message& matched = *found->second;
  if (const int code = lock.fault(); code != MPI_SUCCESS) return raise(lock, matched.comm, code);
  std::size_t bytes = 0;
  if (!find_size(lock, type, &bytes)) return raise(lock, matched.comm, MPI_ERR_TYPE);
  lock->extracted.erase(found);
  *message = MPI_MESSAGE_NULL;
  Request& made = lock->add_request(Request::Kind::receive, matched.comm);
  made.buffer = buffer;
  made.bytes = bytes * static_cast<std::size_t>(count);
  made.peer = matched.sending.source;
  made.tag = matched.sending.tag;
  lock->check_buffers(made);
  lock->hand_over(made);
  lock->match(made, matched);
  *request = made.handle;
  return MPI_SUCCESS;
}

Arguments sending(const void* buffer, int count, MPI_Datatype type, int peer, int tag,
                  MPI_Comm comm, bool synchronous, bool persistent) {
  return {Request::Kind::send, const_cast<void*>(buffer), count,       type,
          peer,                tag,                       comm,        synchronous,
          persistent};
}

}  // namespace
}  // namespace imbrex::fake_mpi

using namespace imbrex::fake_mpi;

#define FAKE_MPI_SEND(name, synchronous)                                                         \
  int PMPI_##name(const void* buffer, int count, MPI_Datatype type, int peer, int tag,           \
                  MPI_Comm comm) {                                                               \
    return start_and_wait(                                                                       \
        #name, sending(buffer, count, type, peer, tag, comm, synchronous, false),                \
        MPI_STATUS_IGNORE);                                                                      \
  }
#define FAKE_MPI_START(name, synchronous, persistent)                                            \
  int PMPI_##name(const void* buffer, int count, MPI_Datatype type, int peer, int tag,           \
                  MPI_Comm comm, MPI_Request* request) {                                         \
    return start(#name, sending(buffer, count, type, peer, tag, comm, synchronous, persistent),  \
                 request);                                                                       \
  }

extern "C" {

FAKE_MPI_SEND(Send, false)
FAKE_MPI_SEND(Ssend, true)
FAKE_MPI_SEND(Rsend, false)
FAKE_MPI_SEND(Bsend, false)
FAKE_MPI_START(Isend, false, false)
FAKE_MPI_START(Issend, true, false)
FAKE_MPI_START(Irsend, false, false)
FAKE_MPI_START(Ibsend, false, false)
FAKE_MPI_START(Send_init, false, true)
FAKE_MPI_START(Ssend_init, true, true)
FAKE_MPI_START(Rsend_init, false, true)
FAKE_MPI_START(Bsend_init, false, true)

int PMPI_Irecv(void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
               MPI_Request* request) {
  return start("Irecv", {Request::Kind::receive, buffer, count, type, peer, tag, comm}, request);
}

int PMPI_Recv(void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Status* status) {
  return start_and_wait("Recv", {Request::Kind::receive, buffer, count, type, peer, tag, comm},
                        status);
}

int PMPI_Recv_init(void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                   MPI_Request* request) {
  return start("Recv_init",
               {Request::Kind::receive, buffer, count, type, peer, tag, comm, false, true},
               request);
}

int PMPI_Sendrecv(const void* out, int out_count, MPI_Datatype out_type, int to, int out_tag,
                  void* in, int in_count, MPI_Datatype in_type, int from, int in_tag,
                  MPI_Comm comm, MPI_Status* status) {
  MPI_Request receive = MPI_REQUEST_NULL;
  int code = PMPI_Irecv(in, in_count, in_type, from, in_tag, comm, &receive);
  if (code != MPI_SUCCESS) return code;
  code = PMPI_Send(out, out_count, out_type, to, out_tag, comm);
  const int received = PMPI_Wait(&receive, status);
  return code != MPI_SUCCESS ? code : received;
}

int PMPI_Iprobe(int peer, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  return probe("Iprobe", peer, tag, comm, flag, nullptr, status);
}

int PMPI_Improbe(int peer, int tag, MPI_Comm comm, int* flag, MPI_Message* message,
                 MPI_Status* status) {
  return probe("Improbe", peer, tag, comm, flag, message, status);
}

int PMPI_Probe(int peer, int tag, MPI_Comm comm, MPI_Status* status) {
  int flag = 0;
  int code = MPI_SUCCESS;
  while (flag == 0 && code == MPI_SUCCESS) {
    code = probe("Probe", peer, tag, comm, &flag, nullptr, status);
    if (flag == 0) Lock("Probe").give_way();
  }
  return code;
}

int PMPI_Mprobe(int peer, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  int flag = 0;
  int code = MPI_SUCCESS;
  while (flag == 0 && code == MPI_SUCCESS) {
    code = probe("Mprobe", peer, tag, comm, &flag, message, status);
    if (flag == 0) Lock("Mprobe").give_way();
  }
  return code;
}

int PMPI_Imrecv(void* buffer, int count, MPI_Datatype type, MPI_Message* message,
                MPI_Request* request) {
  return receive_matched("Imrecv", buffer, count, type, message, request);
}

int PMPI_Mrecv(void* buffer, int count, MPI_Datatype type, MPI_Message* message,
               MPI_Status* status) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = receive_matched("Mrecv", buffer, count, type, message, &request);
  return code != MPI_SUCCESS ? code : PMPI_Wait(&request, status);
}

}  // extern "C"
