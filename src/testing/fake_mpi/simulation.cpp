// SPDX-License-Identifier: BSD-3-Clause
// The state of fake_mpi, and its strings.
#include "simulation.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace imbrex::fake_mpi {

namespace {

bool fits(int source, int tag, const Message& message) {
  return (source == MPI_ANY_SOURCE || source == message.sending.source) &&
         (tag == MPI_ANY_TAG || tag == message.sending.tag);
}

Comm& add_comm(World& world, MPI_Comm handle, int rank, int size) {
  auto comm = std::make_unique<Comm>();
  comm->handle = handle;
  comm->rank = rank;
  comm->size = size;
  comm->peers = size;
  Comm& added = *comm;
  world.comms[number_of(handle)] = std::move(comm);
  return added;
}

}  // namespace

World& world() noexcept {
  static World& the_world = *new World;  // threads may still poll while the program ends
  return the_world;
}

// ---- strings ---------------------------------------------------------------------------------

void reset(const Settings& settings) {
  World& it = world();
  const std::lock_guard guard(it.mutex);
  it.settings = settings;
  it.random.seed(settings.seed);
  it.initialised = it.finalised = false;
  it.comms.clear();
  it.requests.clear();
  it.extracted.clear();
  it.types.clear();
  it.infos.clear();
  it.groups.clear();
  it.lost.clear();
  it.messages.clear();
  it.moving.clear();
  it.sent.clear();
  it.begun.clear();
  it.staying.clear();
  it.faults.clear();
  it.calls.clear();
  it.breaches.clear();
  it.rounds_without_arrival = 0;
  add_comm(it, MPI_COMM_WORLD, 0, settings.ranks).name = "MPI_COMM_WORLD";
  add_comm(it, MPI_COMM_SELF, 0, 1).name = "MPI_COMM_SELF";
}

std::uint64_t send(const Sending& sending) {
  Lock lock("fake send");
  Comm* const comm = find_comm(lock, sending.comm);
  return comm == nullptr ? 0 : lock->add_message(sending, *comm).number;
}

bool arrive(MPI_Comm comm, int source) {
  Lock lock("fake arrive");
  Comm* const found = find_comm(lock, comm);
  return found != nullptr && lock->arrive(*found, source);
}

bool arrive_any() {
  const Lock lock("fake arrive");
  return lock->arrive_any();
}

bool has_matched(std::uint64_t message) {
  const Lock lock("fake has_matched");
  return lock->messages.at(message - 1)->matched;
}

std::vector<Sending> arrived(MPI_Comm comm) {
  const Lock lock("fake arrived");
  std::vector<Sending> all;
  for (const Message* const message : lock->comms.at(number_of(comm))->arrived) {
    all.push_back(message->sending);
  }
  return all;
}

int count_sent(MPI_Comm comm) {
  const Lock lock("fake count_sent");
  int count = 0;
  for (const auto& message : lock->messages) count += message->sending.comm == comm ? 1 : 0;
  return count;
}

MPI_Comm named(const std::string& name) {
  const Lock lock("fake named");
  for (const auto& [number, comm] : lock->comms) {
    if (comm->name == name && !comm->freed) return comm->handle;
  }
  return MPI_COMM_NULL;
}

MPI_Comm duplicate_named(MPI_Comm comm, const std::string& name) {
  const Lock lock("fake duplicate_named");
  for (const auto& [number, one] : lock->comms) {
    if (one->origin == comm && one->name == name && !one->freed) return one->handle;
  }
  return MPI_COMM_NULL;
}

std::uint64_t peek(const std::uint64_t& buffer) {
  const Lock lock("fake peek");
  return buffer;
}

int under_way() {
  const Lock lock("fake under_way");
  std::size_t count = 0;
  for (const auto& [number, comm] : lock->comms) {
    for (const auto& [source, stream] : comm->under_way) count += stream.size();
  }
  return static_cast<int>(count);
}

std::vector<Sent> sent(const std::size_t after) {
  const Lock lock("fake sent");
  return std::vector<Sent>(lock->sent.begin() + static_cast<std::ptrdiff_t>(after),
                           lock->sent.end());
}

std::vector<Begun> begun() {
  const Lock lock("fake begun");
  return lock->begun;
}

bool end_send(const std::size_t place) {
  const Lock lock("fake end_send");
  const auto found = lock->staying.find(place);
  if (found == lock->staying.end()) return false;
  found->second->rounds = 0;
  lock->moving.push_back(found->second);
  lock->staying.erase(found);
  return true;
}

void fail(const char* function, int after, int code) {
  const Lock lock("fake fail");
  lock->faults.push_back({function, after, code});
}

void lose(const int rank) {
  const Lock lock("fake lose");
  lock->lose(rank);
}

std::vector<std::string> breaches() {
  const Lock lock("fake breaches");
  return lock->breaches;
}

MPI_Comm intercommunicator(int remote) {
  const Lock lock("fake intercommunicator");
  const MPI_Comm handle = reinterpret_cast<MPI_Comm>(lock->next_handle++);
  Comm& comm = add_comm(*lock, handle, 0, 1);
  comm.between_groups = true;
  comm.peers = remote;
  return handle;
}

std::uint64_t calls(const char* function) {
  const Lock lock("fake calls");
  return lock->calls[function];
}

// ---- in every call ---------------------------------------------------------------------------

Lock::Lock(const char* function)
    : world_(world()), function_(function), lock_(world_.mutex) {
  ++world_.calls[function];
  if (world_.chance(world_.settings.yields)) give_way();
}

int Lock::fault() {
  for (auto fault = world_.faults.begin(); fault != world_.faults.end(); ++fault) {
    if (fault->function != function_ || fault->after-- != 0) continue;
    const int code = fault->code;
    world_.faults.erase(fault);
    return code;
  }
  return MPI_SUCCESS;
}

void Lock::give_way() {
  lock_.unlock();
  sched_yield();
  lock_.lock();
}

Comm* find_comm(Lock& lock, MPI_Comm comm) {
  const auto found = lock->comms.find(number_of(comm));
  if (found == lock->comms.end() || found->second->freed) {
    lock->breach("a communicator that is null, unknown or freed");
    return nullptr;
  }
  return found->second.get();
}

bool find_size(Lock& lock, MPI_Datatype type, std::size_t* bytes) {
  const std::uintptr_t number = number_of(type);
  if (number >= 0x10000 && number < 0x20000) {
    *bytes = number % 256;
    return true;
  }
  const auto found = lock->types.find(number);
  if (found == lock->types.end()) {
    lock->breach("a type that is null, unknown or freed");
    return false;
  }
  *bytes = found->second;
  return true;
}

int raise(Lock& lock, Comm* comm, int code) {
  if (comm == nullptr) comm = lock->comms.at(number_of(MPI_COMM_WORLD)).get();
  if (comm->handler == MPI_ERRORS_RETURN) return code;
  const auto found = lock->handlers.find(number_of(comm->handler));
  if (found == lock->handlers.end()) {
    std::fprintf(stderr, "fake_mpi: error %d on a communicator with MPI_ERRORS_ARE_FATAL\n", code);
    std::abort();
  }
  MPI_Comm handle = comm->handle;
  return lock.unlocked([&] {
    found->second(&handle, &code, nullptr);
    return code;
  });
}

void empty_status(MPI_Status& status) {
  status.MPI_SOURCE = MPI_ANY_SOURCE;
  status.MPI_TAG = MPI_ANY_TAG;
  status.MPI_ERROR = MPI_SUCCESS;
  status.fake_bytes = 0;
  status.fake_cancelled = 0;
}

void World::breach(const std::string& what) {
  std::fprintf(stderr, "fake_mpi: breach: %s\n", what.c_str());
  breaches.push_back(what);
}

bool World::chance(int percent) {
  return percent > 0 && random() % 100 < static_cast<std::uint64_t>(percent);
}

// ---- messages --------------------------------------------------------------------------------

Message& World::add_message(const Sending& sending, Comm& comm) {
  auto message = std::make_unique<Message>();
  message->number = messages.size() + 1;
  message->comm = &comm;
  message->sending = sending;
  comm.under_way[sending.source].push_back(message.get());
  messages.push_back(std::move(message));
  return *messages.back();
}

bool World::arrive(Comm& comm, int source) {
  std::deque<Message*>& stream = comm.under_way[source];
  if (stream.empty()) return false;
  rounds_without_arrival = 0;
  Message& message = *stream.front();
  stream.pop_front();
  message.arrived = true;
  comm.arrived.push_back(&message);
  for (auto receive = comm.posted.begin(); receive != comm.posted.end(); ++receive) {
    Request& request = **receive;
    if (!fits(request.peer, request.tag, message)) continue;
    comm.posted.erase(receive);
    match(request, message);
    return true;
  }
  comm.unexpected.push_back(&message);
  return true;
}

bool World::arrive_any() {
  std::vector<std::pair<Comm*, int>> streams;
  for (const auto& [number, comm] : comms) {
    for (const auto& [source, stream] : comm->under_way) {
      if (!stream.empty()) streams.emplace_back(comm.get(), source);
    }
  }
  if (streams.empty()) return false;
  std::sort(streams.begin(), streams.end(), [](const auto& one, const auto& two) {
    return std::pair(number_of(one.first->handle), one.second) <
           std::pair(number_of(two.first->handle), two.second);
  });
  const auto& [comm, source] = streams[random() % streams.size()];
  return arrive(*comm, source);
}

Message* World::find_unexpected(const Comm& comm, int source, int tag) const {
  for (Message* message : comm.unexpected) {
    if (fits(source, tag, *message)) return message;
  }
  return nullptr;
}

void World::take(Message& message) {
  std::erase(message.comm->unexpected, &message);
}

void World::hand_over(Request& request) {
  const Loud loud;
  transferred(&request);
}

void World::match(Request& receive, Message& message) {
  message.matched = true;
  receive.message = &message;
  receive.rounds = message.sending.rounds;
  moving.push_back(&receive);
  if (message.sender != nullptr) moving.push_back(std::exchange(message.sender, nullptr));
}

void World::progress() {
  for (std::size_t i = 0; i < moving.size();) {
    Request& request = *moving[i];
    if (request.rounds-- > 0) {
      ++i;
      continue;
    }
    moving[i] = moving.back();
    moving.pop_back();
    finish(request);
  }
  if (settings.patience > 0 && ++rounds_without_arrival >= settings.patience) {
    rounds_without_arrival = 0;
    (void)arrive_any();
  }
}

// ---- requests --------------------------------------------------------------------------------

Request& World::add_request(Request::Kind kind, Comm* comm) {
  auto request = std::make_unique<Request>();
  if (settings.handles_again && !request_handles.empty()) {
    request->handle = request_handles.back();
    request_handles.pop_back();
  } else {
    request->handle = reinterpret_cast<MPI_Request>(next_handle++);
  }
  request->kind = kind;
  request->comm = comm;
  empty_status(request->status);
  Request& added = *request;
  requests[number_of(added.handle)] = std::move(request);
  return added;
}

void World::activate(Request& request) {
  request.active = true;
  request.complete = false;
  request.code = MPI_SUCCESS;
  request.message = nullptr;
  empty_status(request.status);
  if (request.peer == MPI_PROC_NULL) {
    request.status.MPI_SOURCE = MPI_PROC_NULL;
    request.complete = true;
    return;
  }
  check_buffers(request);
  hand_over(request);
  if (request.kind == Request::Kind::receive) {
    post(request);
  } else {
    dispatch(request);
  }
}

void World::post(Request& receive) {
  for (const auto& [number, message] : extracted) {
    if (settings.watch_held && message->comm == receive.comm &&
        fits(receive.peer, receive.tag, *message)) {
      breach("a receive is posted while a message that it fits is held");
    }
  }
  Message* const message = find_unexpected(*receive.comm, receive.peer, receive.tag);
  if (message == nullptr) {
    if (!fails_for_lost(receive)) receive.comm->posted.push_back(&receive);
    return;
  }
  take(*message);
  match(receive, *message);
}

void World::dispatch(Request& send) {
  const std::byte* const first = static_cast<const std::byte*>(send.buffer);
  const std::vector<std::byte> bytes(first, first + send.bytes);
  send.rounds = static_cast<int>(random() % static_cast<unsigned>(settings.send_rounds));
  Comm& comm = *send.comm;
  if (lost.contains(send.peer)) {
    send.code = MPIX_ERR_PROC_FAILED;
    moving.push_back(&send);
    return;
  }
  if (comm.between_groups || send.peer != comm.rank) {
    sent.push_back({comm.handle, send.peer, send.tag, bytes});
    if (settings.sends_stay) {
      staying[sent.size() - 1] = &send;
    } else {
      moving.push_back(&send);
    }
    return;
  }
  Message& message = add_message({.comm = comm.handle,
                                  .source = send.peer,
                                  .tag = send.tag,
                                  .bytes = bytes,
                                  .synchronous = send.synchronous,
                                  .rounds = static_cast<int>(random() % 4)},
                                 comm);
  if (send.synchronous) {
    message.sender = &send;
  } else {
    moving.push_back(&send);
  }
}

void World::lose(const int rank) {
  lost.insert(rank);
  for (const auto& [number, comm] : comms) {
    std::erase_if(comm->posted, [this](Request* const one) { return fails_for_lost(*one); });
  }
}

bool World::fails_for_lost(Request& receive) {
  if (lost.empty() || receive.comm->size < 2) return false;
  const bool wild = receive.peer == MPI_ANY_SOURCE;
  if (!wild && !lost.contains(receive.peer)) return false;
  receive.code = wild ? MPIX_ERR_PROC_FAILED_PENDING : MPIX_ERR_PROC_FAILED;
  receive.complete = true;
  return true;
}

void World::finish(Request& request) {
  request.complete = true;
  if (Message* const message = request.message; message != nullptr) {
    const Sending& from = message->sending;
    const std::size_t bytes = std::min(request.bytes, from.bytes.size());
    if (bytes != 0) {
      const Loud loud;
      told(&request);
      std::memcpy(request.buffer, from.bytes.data(), bytes);
      transferred(&request);
    }
    request.status.MPI_SOURCE = from.source;
    request.status.MPI_TAG = from.tag;
    request.status.fake_bytes = static_cast<MPI_Count>(bytes);
    request.code = from.bytes.size() > request.bytes ? static_cast<int>(MPI_ERR_TRUNCATE)
                                                     : from.error;
  }
  if (request.freed) forget(request);
}

void World::forget(Request& request) {
  request_handles.push_back(request.handle);
  requests.erase(number_of(request.handle));
}

void World::check_buffers(const Request& request) {
  if (request.bytes == 0) return;
  const std::uintptr_t first = number_of(request.buffer);
  const std::uintptr_t last = first + request.bytes;
  for (const auto& [number, other] : requests) {
    if (other.get() == &request || !other->active || other->complete || other->bytes == 0) continue;
    if (other->kind == Request::Kind::send && request.kind == Request::Kind::send) continue;
    const std::uintptr_t begin = number_of(other->buffer);
    if (first < begin + other->bytes && begin < last) {
      breach("the buffers of two operations that are under way overlap");
    }
  }
}

}  // namespace imbrex::fake_mpi
