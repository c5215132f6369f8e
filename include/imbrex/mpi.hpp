// SPDX-License-Identifier: BSD-3-Clause
// The functions that imbrex adds to MPI for C++ programs. Plain blocking calls need no function of
// this header: in a task they suspend the task.
#pragma once

#include "imbrex/detail/language.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "imbrex/detail/access.hpp"
#include "imbrex/error.hpp"
#include "imbrex/future.hpp"

#pragma GCC visibility push(default)

namespace imbrex {

namespace detail {
// Some MPIs use pointers as handles; the program treats them as objects.
template <class T>
  requires(std::is_pointer_v<T> &&
           (std::is_same_v<T, MPI_Request> || std::is_same_v<T, MPI_Message> ||
            std::is_same_v<T, MPI_Comm> || std::is_same_v<T, MPI_Win> ||
            std::is_same_v<T, MPI_File> || std::is_same_v<T, MPI_Datatype>))
inline constexpr bool is_handle<T> = true;
}  // namespace detail

/// Suspends the running task until `request` completes and sets it to MPI_REQUEST_NULL (a
/// persistent request becomes inactive), as MPI_Wait would; outside a task it is MPI_Wait. Throws
/// MpiError. Any thread, but a request must not be waited for in two places.
MPI_Status await(MPI_Request& request);

/// Takes the request over, sets it to MPI_REQUEST_NULL, and returns at once. Any thread; never
/// suspends. The future's get() throws MpiError if the operation fails. Buffers must live until the
/// future is ready. Persistent requests are refused: by Error at once if the request is inactive or
/// complete, else by the future.
[[nodiscard]] Future<MPI_Status> when(MPI_Request& request);

/// Asks MPI to cancel the operation behind a future of when(). The future is ready some time later,
/// cancelled or not, as its status tells (MPI_Test_cancelled). A cancel that comes too late is no
/// error. The time grows with the number of requests in flight. Any thread; never suspends. Throws
/// Error for an empty future.
void cancel(const Future<MPI_Status>& future);

/// Takes the request over and returns at once. The running task, once its body has ended, keeps its
/// dependents waiting for the request, too. (TAMPI_Iwait.) If the request fails, the task fails:
/// its future's get(), and the finish() around it, throw MpiError. Never suspends. Throws Error
/// outside a task, and for a persistent request.
void release_after(MPI_Request& request);

/// The innermost finish() around the running code owns the request: it waits for it, also when the
/// running task has long ended, and throws MpiError if it fails. Takes the request over and returns
/// at once; buffers must live until that finish() has ended. Never suspends. Throws Error if there
/// is no finish() around, and for a persistent request. (Chatterjee et al., IPDPS 2013, figure 3.)
void finish_owns(MPI_Request& request);

/// A message that has arrived and is taken out of MPI's matching: no other receive can get it. The
/// program must receive it; if it destroys the object before, a message on standard error names it.
/// Thread safety: as an int.
class ArrivedMessage {
 public:
  /// Takes the results of MPI_Mprobe.
  ArrivedMessage(MPI_Message message, const MPI_Status& status) noexcept
      : message_(message), status_(status) {}
  ArrivedMessage(ArrivedMessage&& other) noexcept;
  ArrivedMessage& operator=(ArrivedMessage other) noexcept;
  ~ArrivedMessage();

  /// The rank that sent the message, its tag, its number of elements of `type` (as MPI_Get_count:
  /// MPI_UNDEFINED if the bytes are no whole elements), and its status. Never suspend.
  [[nodiscard]] int source() const noexcept { return status_.MPI_SOURCE; }
  [[nodiscard]] int tag() const noexcept { return status_.MPI_TAG; }
  [[nodiscard]] int count(MPI_Datatype type) const;
  [[nodiscard]] const MPI_Status& status() const noexcept { return status_; }

  /// Receives the message, once, as MPI_Mrecv. Const, so that tasks that share a future may call
  /// it. Throws MpiError. Suspends.
  MPI_Status receive(void* buffer, int count, MPI_Datatype type) const;

 private:
  mutable MPI_Message message_;  // null once received or moved away
  MPI_Status status_;
};

/// Returns at once; the future is ready when a message has arrived that a receive with these
/// arguments, made now, would get (wildcards included). A task that takes the future by .in()
/// starts only then: it costs no stack and no worker while it waits. get() throws MpiError. Any
/// thread; never suspends.
[[nodiscard]] Future<ArrivedMessage> when_arrived(int source, int tag, MPI_Comm comm);

namespace detail {
struct OrderScope;
}  // namespace detail

/// Orders the collectives of tasks that run at the same time on one communicator. MPI requires that
/// every rank starts them in the same order, and tasks run in any order. While a CollectiveOrder
/// lives, the collectives that its task calls start in an order that all ranks share: blocking
/// ones, non-blocking ones, and the objects of collective.hpp. The task that made it destroys it;
/// the innermost one counts; spawned tasks do not inherit it. docs/user/ordered.md has the rules.
class CollectiveOrder {
 public:
  /// For order_collectives() and order_collectives_as_spawned() below.
  explicit CollectiveOrder(std::uint64_t key);
  explicit CollectiveOrder(std::string_view key);
  CollectiveOrder(const void* object, std::size_t bytes, int count);
  ~CollectiveOrder();
  CollectiveOrder(const CollectiveOrder&) = delete;
  CollectiveOrder& operator=(const CollectiveOrder&) = delete;

 private:
  std::unique_ptr<detail::OrderScope> scope_;
};

/// Order by keys: on rank 0 of each communicator, collectives start in the order in which tasks
/// come to them; on other ranks each collective waits for its turn in that order. The n-th
/// collective of a key on a communicator is the n-th of that key on all ranks. All ranks must use
/// order_collectives() for the same collectives. The task suspends while it waits. Only starts are
/// ordered, so any number of collectives may be in flight.
[[nodiscard]] inline CollectiveOrder order_collectives(const std::uint64_t key) {
  return CollectiveOrder(key);
}
[[nodiscard]] inline CollectiveOrder order_collectives(const std::string_view key) {
  return CollectiveOrder(key);
}

/// Order by an exclusive access of the running task, .inout(object) or .out(object). The access is
/// released when `count` collectives have been started: the next task with such an access then
/// runs, while they are in flight. Collectives so start in the order in which the tasks were
/// spawned, which must be the same on all ranks. If the task declared no such access, the call of
/// the collective fails with MPI_ERR_OTHER.
template <class T>
[[nodiscard]] CollectiveOrder order_collectives_as_spawned(T&& object, const int count = 1) {
  const void* address = nullptr;
  std::size_t its_bytes = 0;
  detail::end_named<T>(object, [&](const void* const begin, const std::size_t bytes) {
    address = begin;
    its_bytes = bytes;
  });
  return {address, its_bytes, count};
}

/// Tells which thread makes MPI progress in this process, from MPI_Init on (IMBREX_PROGRESS).
struct ProgressReport {
  std::string asked;          // the mode that IMBREX_PROGRESS asks for
  std::string runs;           // the mode that runs
  std::string mode;           // the mode that runs, and the reason if it is another one
  std::uint64_t polls = 0;    // by the progress thread, if the mode has one
  double seconds = 0;         // of processor time of the progress thread
  std::uint64_t notices = 0;  // completions noticed inside MPI, in the callback modes
  // Since time_progress(). Polls by workers and by the progress thread; in the callback modes also
  // the calls in which imbrex asks MPI for completions, or MPI reports one. Such a call may come
  // within a poll, and its time is then a part of the poll's time.
  std::uint64_t timed_polls = 0;
  double timed_polls_s = 0;
  std::uint64_t timed_callbacks = 0;
  double timed_callbacks_s = 0;
};
/// Returns the present report. Any thread, from MPI_Init on. Never suspends.
[[nodiscard]] ProgressReport progress_report();
/// From this call on polls and callbacks are counted and timed, with two reads of the clock each.
/// Any thread; never suspends.
void time_progress() noexcept;

}  // namespace imbrex

#pragma GCC visibility pop
