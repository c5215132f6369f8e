// SPDX-License-Identifier: BSD-3-Clause
// What IMBREX_CHECK=1 looks for: buffers that overlap while both operations are under way,
// collectives on one communicator in no order; in double_wait.hpp, requests that two tasks wait
// for; in ranks/, collectives that ranks begin in different orders. A finding is printed, and the
// program goes on. Which memory an operation uses is said by the call itself, or by buffers.hpp.
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
  bool writes;  // the call writes it
};
using Buffers = std::vector<Buffer>;

// A call that is under way, and uses its buffers, from begin() on for as long as this lives.
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
// The collective that `request` stands for is open as long.
void keep_open(MPI_Request request, Compared collective);

// For a persistent request: the same from start_request() on. forget_request(): the request is
// freed, or its handle is another's.
void prepare_request(MPI_Request request, const Call& call, const Buffers& buffers);
void start_request(MPI_Request request);
void forget_request(MPI_Request request) noexcept;

// Called for the call that made `request` and returns `code`, which these return too. They do the
// above if the call has succeeded and IMBREX_CHECK is on. `find_buffers()` gives the memory that
// the call uses.
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
// The same with one buffer, of the call's count and type.
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
