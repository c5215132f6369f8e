// SPDX-License-Identifier: BSD-3-Clause
// The state of fake_mpi: communicators, messages, requests, and the matching of messages and
// receives. Used by the files that define PMPI_*; one lock around all of it.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "fake_mpi.hpp"
#include "quiet.hpp"

namespace imbrex::fake_mpi {

template <class Handle>
[[nodiscard]] std::uintptr_t number_of(Handle handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle);
}

struct Comm;
struct Request;

// A message to this rank. It lives as long as the world.
struct Message {
  std::uint64_t number = 0;
  Comm* comm = nullptr;
  Sending sending;
  bool arrived = false;
  bool extracted = false;     // by Mprobe or Improbe
  bool matched = false;       // a receive has it
  Request* sender = nullptr;  // a synchronous send of this rank that waits for the match
  MPI_Message handle = MPI_MESSAGE_NULL;
};

struct Topology {
  int kind = MPI_UNDEFINED;
  std::vector<int> sizes;  // of a Cartesian one, by dimension
  std::vector<int> periods;
  std::vector<int> sources;  // of a distributed graph
  std::vector<int> destinations;
};

struct Comm {
  MPI_Comm handle = MPI_COMM_NULL;
  MPI_Comm origin = MPI_COMM_NULL;  // the communicator that it is a duplicate of
  int rank = 0;
  int size = 1;
  int peers = 1;  // ranks that messages come from: the size, or that of the remote group
  bool between_groups = false;
  bool freed = false;
  MPI_Errhandler handler = MPI_ERRORS_ARE_FATAL;
  std::string name;
  std::map<std::string, std::string> info;
  std::map<int, void*> attributes;
  Topology topology;
  bool starts_collective = false;  // a thread is in such a call
  std::map<int, std::deque<Message*>> under_way;  // by source
  std::deque<Message*> unexpected;                // in the order of arrival
  std::deque<Request*> posted;                    // in the order of posting
  std::vector<const Message*> arrived;
};

struct Request {
  enum class Kind { send, receive, general, collective };

  MPI_Request handle = MPI_REQUEST_NULL;
  Kind kind = Kind::send;
  Comm* comm = nullptr;
  bool persistent = false;
  bool active = true;
  bool complete = false;
  bool freed = false;      // by the user; destroyed when it is complete
  pthread_t user{};  // a thread that is in a call with it

  void* buffer = nullptr;
  std::size_t bytes = 0;
  int peer = 0;
  int tag = 0;
  bool synchronous = false;
  int rounds = 0;              // of progress until it is complete
  Message* message = nullptr;  // a receive's

  MPI_Status status = {};
  int code = MPI_SUCCESS;

  MPI_Grequest_query_function* query = nullptr;
  MPI_Grequest_free_function* release = nullptr;
  MPI_Grequest_cancel_function* cancel = nullptr;
  void* extra = nullptr;
};

struct Keyval {
  MPI_Comm_copy_attr_function* copy;
  MPI_Comm_delete_attr_function* forget;
  void* extra;
};

struct Fault {
  std::string function;
  int after;
  int code;
};

// Invariants: (1) a message that has arrived is in `unexpected`, extracted, or matched; (2) a
// receive that is active is in `posted` or has a message; (3) no message in `unexpected` fits a
// request in `posted`.
struct World {
  // Guards everything below, which only a Lock accesses: the analysis of base/guarded.hpp does not
  // follow that. Released while functions of the user run.
  std::mutex mutex;
  Settings settings;
  std::mt19937_64 random;
  bool initialised = false;
  bool finalised = false;
  std::uintptr_t next_handle = 0x1000;
  std::unordered_map<std::uintptr_t, std::unique_ptr<Comm>> comms;
  std::unordered_map<std::uintptr_t, std::unique_ptr<Request>> requests;
  std::vector<MPI_Request> request_handles;                // handles without a meaning any more
  std::unordered_map<std::uintptr_t, Message*> extracted;  // by handle
  std::unordered_map<std::uintptr_t, std::size_t> types;   // derived ones: their sizes
  std::unordered_map<std::uintptr_t, MPI_Comm_errhandler_function*> handlers;
  std::unordered_map<std::uintptr_t, std::map<std::string, std::string>> infos;
  std::unordered_map<std::uintptr_t, std::vector<int>> groups;  // ranks of MPI_COMM_WORLD
  std::set<int> lost;                              // ranks of MPI_COMM_WORLD
  std::map<int, Keyval> keyvals;
  std::vector<std::unique_ptr<Message>> messages;  // by number - 1
  std::vector<Request*> moving;                    // transfers that end after some rounds
  std::vector<Sent> sent;
  std::vector<Begun> begun;
  std::map<std::size_t, Request*> staying;  // by the place in `sent`: until end_send()
  std::vector<Fault> faults;
  std::map<std::string, std::uint64_t> calls;
  std::vector<std::string> breaches;
  int rounds_without_arrival = 0;

  void breach(const std::string& what);
  [[nodiscard]] bool chance(int percent);

  // ---- messages
  Message& add_message(const Sending& sending, Comm& comm);
  bool arrive(Comm& comm, int source);
  bool arrive_any();
  [[nodiscard]] Message* find_unexpected(const Comm& comm, int source, int tag) const;
  void take(Message& message);  // takes it out of `unexpected`
  void match(Request& receive, Message& message);
  void progress();

  // ---- requests
  Request& add_request(Request::Kind kind, Comm* comm);
  void activate(Request& request);     // a send or receive begins
  void hand_over(Request& request);    // the caller hands the request to the thread that makes the
                                       // transfer
  void post(Request& receive);
  void dispatch(Request& send);
  void lose(int rank);
  // Ends `receive`, which no message has met, if a lost rank might have sent one.
  [[nodiscard]] bool fails_for_lost(Request& receive);
  void finish(Request& request);       // the transfer is over
  void forget(Request& request);
  void check_buffers(const Request& request);
};

[[nodiscard]] World& world() noexcept;

// Within a PMPI_ function: holds the lock.
class Lock {
 public:
  explicit Lock(const char* function);
  ~Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  World* operator->() const noexcept { return &world_; }
  [[nodiscard]] World& operator*() const noexcept { return world_; }
  // The code that this call shall fail with, or MPI_SUCCESS.
  [[nodiscard]] int fault();
  void give_way();  // to other threads, for a moment
  template <class F>
  auto unlocked(F&& f) {
    lock_.unlock();
    auto result = loudly(f);
    lock_.lock();
    return result;
  }

 private:
  template <class F>
  static auto loudly(F& f) {
    const Loud loud;
    return f();
  }

  Quiet quiet_;  // before the lock is taken, after it is released
  World& world_;
  const char* function_;
  std::unique_lock<std::mutex> lock_;
};

// Null if the handle names no communicator; a breach is then noted.
[[nodiscard]] Comm* find_comm(Lock& lock, MPI_Comm comm);
[[nodiscard]] bool find_size(Lock& lock, MPI_Datatype type, std::size_t* bytes);

// Calls the error handler of `comm` and returns `code`.
int raise(Lock& lock, Comm* comm, int code);

// A communicator of the same members, without attributes and topology.
Comm& make_like(Lock& lock, const Comm& comm, int size);

void empty_status(MPI_Status& status);

}  // namespace imbrex::fake_mpi
