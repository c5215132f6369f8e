// SPDX-License-Identifier: BSD-3-Clause
// The things that imbrex adds to MPI for C++ programs. Plain blocking calls need nothing of this:
// in a task they suspend the task.
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
#include "imbrex/detail/distributed/members.hpp"  // open_messages()
#include "imbrex/error.hpp"
#include "imbrex/future.hpp"

#pragma GCC visibility push(default)

namespace imbrex {

namespace detail {
// Some MPIs make pointers of their handles: to a program they are objects like others.
template <class T>
  requires(std::is_pointer_v<T> &&
           (std::is_same_v<T, MPI_Request> || std::is_same_v<T, MPI_Message> ||
            std::is_same_v<T, MPI_Comm> || std::is_same_v<T, MPI_Win> ||
            std::is_same_v<T, MPI_File> || std::is_same_v<T, MPI_Datatype>))
inline constexpr bool is_handle<T> = true;
}  // namespace detail

/// Suspends the running task until `request` completes and sets it to MPI_REQUEST_NULL (a
/// persistent one becomes inactive), as MPI_Wait would; outside a task it is MPI_Wait.
/// Throws MpiError. Do not wait for one request in two places.
MPI_Status await(MPI_Request& request);

/// Takes the request over, sets it to MPI_REQUEST_NULL, and returns at once. Any thread. The
/// future's get() throws MpiError if the operation fails. Buffers must live until it is ready. A
/// persistent request is refused: by Error at once if it is inactive or complete, else by the
/// future.
[[nodiscard]] Future<MPI_Status> when(MPI_Request& request);

/// Asks MPI to cancel the operation behind a future of when(), which is ready some time later,
/// cancelled or not, as its status tells (MPI_Test_cancelled). Too late is no error. Takes time in
/// proportion to what is under way. Throws Error for an empty future.
void cancel(const Future<MPI_Status>& future);

/// Takes the request over and returns at once; the running task, once its body has ended, keeps its
/// dependents waiting for it too. (TAMPI_Iwait.) If the request fails, so does the task: its
/// future's get(), and the finish() around it, throw MpiError. Throws Error outside a task, and for
/// a persistent request.
void release_after(MPI_Request& request);

/// The innermost finish() around the running code owns the request: it waits for it, also when the
/// running task has long ended, and throws MpiError if it fails. Takes the request over and returns
/// at once; buffers must live until that finish() has ended. Throws Error if there is no finish()
/// around, and for a persistent request. (Chatterjee et al., IPDPS 2013, figure 3.)
void finish_owns(MPI_Request& request);

/// A message that is here, and taken out of MPI's matching: nobody else can receive it. It must be
/// received; one that is destroyed before is named on standard error.
/// Thread safety: as an int.
class ArrivedMessage {
 public:
  /// As MPI_Mprobe gives them.
  ArrivedMessage(MPI_Message message, const MPI_Status& status) noexcept
      : message_(message), status_(status) {}
  ArrivedMessage(ArrivedMessage&& other) noexcept;
  ArrivedMessage& operator=(ArrivedMessage other) noexcept;
  ~ArrivedMessage();

  /// The rank that has sent it, its tag, how many elements of `type` it has (as MPI_Get_count:
  /// MPI_UNDEFINED if they are no whole ones), and all of its status. Never suspend.
  [[nodiscard]] int source() const noexcept { return status_.MPI_SOURCE; }
  [[nodiscard]] int tag() const noexcept { return status_.MPI_TAG; }
  [[nodiscard]] int count(MPI_Datatype type) const;
  [[nodiscard]] const MPI_Status& status() const noexcept { return status_; }

  /// As MPI_Mrecv, once. Const, so that tasks which share a future may. Throws MpiError. Suspends.
  MPI_Status receive(void* buffer, int count, MPI_Datatype type) const;

 private:
  mutable MPI_Message message_;  // null once received or moved away
  MPI_Status status_;
};

/// Returns at once; the future is ready when a message has arrived that a receive with these
/// arguments, made now, would get (wildcards included). A task that takes the future by .in()
/// starts only then: it costs no stack and no worker while it waits. get() throws MpiError.
[[nodiscard]] Future<ArrivedMessage> when_arrived(int source, int tag, MPI_Comm comm);

namespace detail {
struct OrderScope;
}  // namespace detail

/// Collectives of tasks that run at the same time, on one communicator: every rank must start them
/// in the same order, and tasks run in any. While one of these lives, the collectives that the task
/// calls, blocking ones, those that give a request, and the objects of collective.hpp, are started
/// in an order that all ranks share. Ended by the task that made it; of several the innermost
/// counts, and tasks that are spawned within have none of it. docs/user/ordered.md has the rules.
class Ordered {
 public:
  /// As ordered() and ordered_as_spawned() below, which make it.
  explicit Ordered(std::uint64_t key);
  explicit Ordered(std::string_view key);
  Ordered(const void* object, std::size_t bytes, int count);
  ~Ordered();
  Ordered(const Ordered&) = delete;
  Ordered& operator=(const Ordered&) = delete;

 private:
  std::unique_ptr<detail::OrderScope> scope_;
};

/// By keys: on rank 0 of each communicator the collectives start in the order in which tasks come
/// to them, and on the others each waits until it is the next of those. The n-th collective of a
/// key on a communicator is the n-th of that key on all ranks. All ranks must use it for the same
/// collectives. The task suspends while it waits; only starts are ordered, so that any number of
/// collectives is under way.
[[nodiscard]] inline Ordered ordered(const std::uint64_t key) { return Ordered(key); }
[[nodiscard]] inline Ordered ordered(const std::string_view key) { return Ordered(key); }

/// By an access of the running task that excludes others, .inout(object) or .out(object), which is
/// released when `count` collectives have been started: the next task that declared one runs from
/// then on, while these are under way. So they start in the order in which the tasks were spawned,
/// which must be the same on all ranks. If the task declared no such access, the call of the
/// collective fails with MPI_ERR_OTHER.
template <class T>
[[nodiscard]] Ordered ordered_as_spawned(T&& object, const int count = 1) {
  const void* address = nullptr;
  std::size_t its_bytes = 0;
  detail::end_named<T>(object, [&](const void* const begin, const std::size_t bytes) {
    address = begin;
    its_bytes = bytes;
  });
  return {address, its_bytes, count};
}

/// Says who makes MPI progress in this process, from MPI_Init on (IMBREX_PROGRESS).
struct ProgressReport {
  std::string asked;          // the mode that was asked for
  std::string runs;           // the mode that runs
  std::string mode;           // the same, and why if it is another
  std::uint64_t polls = 0;    // by the thread of its own, if the mode has one
  double seconds = 0;         // of processor time of that thread
  std::uint64_t notices = 0;  // completions noticed inside MPI, in the callback modes
  // Since time_progress(). Polls by workers and that thread; in the callback modes the calls in
  // which MPI was asked for completions, or told of one. These may come within a poll, whose time
  // they are then part of.
  std::uint64_t timed_polls = 0;
  double timed_polls_s = 0;
  std::uint64_t timed_callbacks = 0;
  double timed_callbacks_s = 0;
};
/// What holds now; any thread, from MPI_Init on. Never suspends.
[[nodiscard]] ProgressReport progress_report();
/// From now on polls and callbacks are counted, each with two looks at the clock.
void time_progress() noexcept;

}  // namespace imbrex

#pragma GCC visibility pop
