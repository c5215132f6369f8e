// SPDX-License-Identifier: BSD-3-Clause
// The findings of IMBREX_CHECK=1: buffers that overlap while both operations are in flight, and
// collectives on one communicator in no order. double_wait.hpp finds requests that two tasks wait
// for, ranks/ finds collectives that ranks begin in different orders. A finding is printed, and the
// program goes on. The call itself, or buffers.hpp, tells the memory that an operation uses.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "imbrex/detail/observation.hpp"
#include "mpi/check/ranks/ranks.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/check/ranks/findings.hpp"

namespace imbrex::mpi::check {

void start();

struct Use;

// Memory of a call.
struct Buffer {
  const void* address;  // null: unknown
  MPI_Count count;
  MPI_Datatype type;
  bool writes;  // the call writes this memory
};
using Buffers = std::vector<Buffer>;

// A call in flight, which uses its buffers from begin() on for as long as this lives.
class Guard {
 public:
  Guard() = default;
  // Begins: the call's count and type give the size of `buffer`.
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

// A call is in flight from the call that returns `request` until the request is known to have
// completed.
void begin_request(MPI_Request request, const Call& call, const Buffers& buffers);
void end_request(MPI_Request request) noexcept;
// The collective of `request` is open for that time.
void keep_open(MPI_Request request, Compared collective);

// For a persistent request, in flight from start_request() on. forget_request(): the request is
// freed, or its handle is reused.
void prepare_request(MPI_Request request, const Call& call, const Buffers& buffers);
void start_request(MPI_Request request);
void forget_request(MPI_Request request) noexcept;

// The running task is about to start this persistent request.
void post_request(MPI_Request request);
// Whether the completion of one of these requests may depend on another rank. That of a send of
// standard mode does not, since MPI may have buffered the message.
[[nodiscard]] bool are_nonlocal(int count, const MPI_Request* requests);

// Called for the call that made `request` and returns `code`, which these functions return, too.
// They call the functions above if the call has succeeded and IMBREX_CHECK is on. `find_buffers()`
// returns the memory that the call uses.
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
// begun() with one buffer, of the call's count and type.
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

}  // namespace imbrex::mpi::check
