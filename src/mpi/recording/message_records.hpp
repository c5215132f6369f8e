// SPDX-License-Identifier: BSD-3-Clause
// Messages in the trace: senders, receivers and sizes, in ranks of MPI_COMM_WORLD. A policy that
// measures the paths behind messages gets the same information.
//
// Thread safety: any thread. Nothing here suspends.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "imbrex/detail/completion.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/engine.hpp"

namespace imbrex::mpi {

void start_messages() noexcept;
// In MPI_Finalize: frees MPI's objects for them.
void end_messages() noexcept;

// The processes of a communicator. The object stays when the communicator is freed, which a program
// may do while messages are in flight. Null for MPI_COMM_NULL.
struct Members;
[[nodiscard]] const Members* members_of(MPI_Comm comm);
// The rank in MPI_COMM_WORLD of the member that messages to `peer` go to; MPI_UNDEFINED if it is
// outside.
[[nodiscard]] int in_world(const Members& members, int peer) noexcept;

// Nothing is recorded for MPI_PROC_NULL, nor for processes outside of MPI_COMM_WORLD. REQUIRES, for
// all functions below: switches.traces_messages.
// Returns the number by which records name the request of `send`, or 0 for a blocking call.
std::uint32_t trace_sent(const Call& send) noexcept;
// trace_begun(): `request` stands for the send with this number. trace_over(): a call that has sent
// and received ends, and so does the send with this number.
void trace_begun(MPI_Request request, std::uint32_t number);
void trace_over(std::uint32_t number) noexcept;
// A message of this task has left, after it had waited here for this time.
void trace_waited(const Call& send, std::uint64_t task, std::uint64_t waited_ns) noexcept;
// `task`: an id, or 0: the running one.
void trace_received(const Members* members, const MPI_Status& status, std::uint64_t task) noexcept;

// trace_posted(): `request` stands for this receive; `ours`: the operation of a receive that imbrex
// matches, or null for a receive of MPI. trace_receive(): as trace_posted(), for a receive of a
// message that MPI_Mprobe has found. trace_completed(): the request has completed; nothing is
// recorded if it is unknown.
void trace_posted(MPI_Request request, const Call& receive, const Operation* ours);
void trace_receive(MPI_Request request, const Members* members);
void trace_completed(MPI_Request request, const MPI_Status& status, std::uint64_t task) noexcept;

// trace_matched(): a receive that imbrex matches begins. trace_ended(): it ends.
// trace_completed(): an operation of imbrex for `request` has completed; MPI_REQUEST_NULL if the
// program does not have the handle any more.
void trace_matched(const Operation* receive, MPI_Comm comm);
void trace_completed(const Operation& operation, MPI_Request request, std::uint64_t task) noexcept;
void trace_ended(const Operation* receive) noexcept;

// The running task is about to wait for these requests.
enum class WaitsFor : std::uint8_t { all, any, some };
void trace_waiting(const char* call, WaitsFor what, int count,
                   const MPI_Request* requests) noexcept;
// The program hands over `request`, and gets `future`. `ours`: as for trace_posted().
void trace_given(MPI_Request request, const detail::Completion* future,
                 const Operation* ours) noexcept;

// trace_send_init(): `request` is a persistent send. trace_start(): it starts.
void trace_send_init(MPI_Request request, const Call& send);
void trace_start(MPI_Request request) noexcept;
// The program frees `request`.
void trace_freed(MPI_Request request) noexcept;

// trace_found(): Mprobe or Improbe has found a message. trace_taken(): returns where a message was
// found that is received now.
void trace_found(MPI_Message found, const Members* members);
[[nodiscard]] const Members* trace_taken(MPI_Message taken) noexcept;

// While it lives, this task is in a collective. The call gives the size of its data.
class TracedCollective {
 public:
  explicit TracedCollective(const Call& call) noexcept;
  ~TracedCollective() {
    if (call_ != nullptr) [[unlikely]] end();
  }
  TracedCollective(const TracedCollective&) = delete;
  TracedCollective& operator=(const TracedCollective&) = delete;

 private:
  void end() noexcept;
  const char* call_ = nullptr;
  std::uint64_t bytes_ = 0;
  std::uint32_t communicator_ = 0;
  int root_ = -1;
};

// Parts of a collective that imbrex carries out by messages of its own. These have a communicator
// of their own in the trace, since their tags are not the program's. `future`: of the part. Each
// returns the number of the part for trace_part_ended(); 0: nothing is recorded.
// trace_part_sent(): `passes_on`: imbrex sends what the part that has just ended here has brought.
std::uint32_t trace_part_posted(const Call& receive, const detail::Completion* future) noexcept;
std::uint32_t trace_part_sent(const Call& send, const detail::Completion* future,
                              bool passes_on) noexcept;
std::uint32_t trace_part_reduced(const Call& reduction, const detail::Completion* future) noexcept;
// `task`: the id of the task that has begun the collective.
void trace_part_ended(const Call& part, std::uint32_t number, std::uint64_t task) noexcept;

// Records a non-blocking collective that has begun. Returns `code`.
int trace_begun_collective(const Call& call, int code, const MPI_Request* request);

}  // namespace imbrex::mpi
