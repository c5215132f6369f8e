// SPDX-License-Identifier: BSD-3-Clause
// What IMBREX_CHECK=1 looks for: buffers that overlap while both operations are under way, requests
// that two tasks wait for, collectives on one communicator in no order. A finding is printed, and
// the program goes on as it would; only the second wait for a request is refused. Which memory an
// operation uses is said by the call itself, or by buffers.hpp.
#pragma once

#include <mpi.h>

#include <atomic>
#include <vector>

#include "engine.hpp"

namespace imbrex::mpi::check {

// Written by MPI_Init only, before any task calls MPI.
extern bool enabled;
[[nodiscard]] inline bool on() noexcept { return enabled; }
void start();

struct Use;

// Memory of a call.
struct Buffer {
  const void* address;  // null: unknown
  MPI_Count count;
  MPI_Datatype type;
  bool writes;  // the call writes it
};
using Buffers = std::vector<Buffer>;

// From begin() on, as long as it lives, the call is under way and uses its buffers.
class Guard {
 public:
  Guard() = default;
  // Begins: the call's count and type say how much of `buffer` it uses.
  Guard(const Call& call, const void* buffer, bool writes) {
    if (on()) [[unlikely]] {
      begin(call, detail::current_task(), {{buffer, call.count, call.type, writes}});
    }
  }
  ~Guard() {
    if (use_ != nullptr) [[unlikely]] end();
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // REQUIRES: on(), and once.
  void begin(const Call& call, const detail::TaskLabel& task, const Buffers& buffers);

 private:
  void end() noexcept;
  Use* use_ = nullptr;
};

// The same from the call that returns `request` until it is known to have completed.
void begin_request(MPI_Request request, const Call& call, const Buffers& buffers);
void end_request(MPI_Request request) noexcept;

// For a persistent request: the same from start_request() on. forget_request(): it is freed, or
// another's.
void prepare_request(MPI_Request request, const Call& call, const Buffers& buffers);
void start_request(MPI_Request request);
void forget_request(MPI_Request request) noexcept;

// For the call that made `request` and returns `code`, which they return too: the above if it has
// succeeded and IMBREX_CHECK is on. `find_buffers()` gives the memory that the call uses.
template <class Find>
int begun(const Call& call, const MPI_Request* request, int code, Find find_buffers) {
  if (on() && code == MPI_SUCCESS) [[unlikely]] begin_request(*request, call, find_buffers());
  return code;
}
template <class Find>
int prepared(const Call& call, const MPI_Request* request, int code, Find find_buffers) {
  if (on() && code == MPI_SUCCESS) [[unlikely]] prepare_request(*request, call, find_buffers());
  return code;
}
// With one buffer, of the call's count and type.
inline int begun(const Call& call, const MPI_Request* request, int code, const void* buffer,
                 bool writes) {
  return begun(call, request, code,
               [&] { return Buffers{{buffer, call.count, call.type, writes}}; });
}
inline int prepared(const Call& call, const MPI_Request* request, int code, const void* buffer,
                    bool writes) {
  return prepared(call, request, code,
                  [&] { return Buffers{{buffer, call.count, call.type, writes}}; });
}

// While it lives the caller waits for these requests; where that is not asked for by IMBREX_CHECK,
// from enter() on: a wait that suspends enters in any case, since that costs little beside it.
class Waiting {
 public:
  Waiting(const char* call, int count, const MPI_Request requests[]) : call_(call) {
    if (on()) [[unlikely]] enter(count, requests);
  }
  ~Waiting() {
    if (!requests_.empty()) [[unlikely]] end();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // Does nothing the second time.
  void enter(int count, const MPI_Request requests[]);

  // Not MPI_SUCCESS if another task waits for one of them: then the call must return this. It has
  // been said, and the error handler called.
  [[nodiscard]] int code() const noexcept { return code_; }

  // By who finds the wait at its end, before the caller goes on: MPI may give the handles of what
  // is complete to others from then on.
  void set_over() noexcept { over_.store(true, std::memory_order_release); }
  // By who finds only some of the requests complete: those that are not in the array any more.
  void keep_only(int count, const MPI_Request still[]) noexcept;
  [[nodiscard]] bool over() const noexcept {
    return over_.load(std::memory_order_acquire);  // pairs with set_over()
  }

 private:
  void end() noexcept;
  const char* const call_;
  std::atomic<bool> over_{false};
  std::vector<MPI_Request> requests_;  // those that this one has entered
  int code_ = MPI_SUCCESS;
};

// The code of a Waiting for one request that another task waits for; else MPI_SUCCESS. To be asked
// before MPI is: if the request is complete, MPI would end it for the wrong one.
[[nodiscard]] int second_wait(const char* call, MPI_Request request);

}  // namespace imbrex::mpi::check
