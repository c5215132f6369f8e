// SPDX-License-Identifier: BSD-3-Clause
// The state of a communicator: whether its receives are posted to MPI or matched here, the waiting
// receives, and the unexpected messages. The argument why MPI's rules hold is in
// docs/design/receives.md.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/guarded.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/threads/ship.hpp"
#include "mpi/messages/matching/match_queue.hpp"
#include "mpi/messages/matching/receive.hpp"

namespace imbrex::mpi::messages {

// The state of a receive that a call has begun.
enum class Begun : std::uint8_t {
  posted,  // by MPI
  held,    // its message was here already
  queued,  // it waits in the queue
  again    // it must wait in the queue, and the caller passed no object for the queue
};

// A part of a partial collective that has ended, for events.
struct EndedPart {
  MPI_Comm comm;
  bool incoming;
  int peer;
  int block;
  int part;
  const void* address;
  const char* call;
  int code;
};

// An observer of a communicator. Any thread calls the functions.
struct Watcher {
  // A message has arrived on `comm`; `request` is its receive's handle, or null. The caller holds
  // locks: further work goes to `round`, as a complete operation.
  void (*incoming)(Round& round, MPI_Comm comm, const MPI_Status& status, MPI_Request request);
  // The send `call` has begun; another handle may replace `*request`.
  void (*outgoing)(const Call& call, MPI_Request* request);
  // The caller holds no lock.
  void (*ended)(const EndedPart& part);
};

// Thread safety: any thread uses every member.
// Invariants, under the lock:
//   (1) no held message could serve a queued receive.
//   (2) a receive is posted only while nothing is queued and no held message could serve it.
//   (3) only draw() takes messages from MPI without a request for them, and only while something is
//       queued, or the communicator is watched.
class Communicator final : public Feed {
 public:
  Communicator() = default;

  // True if receives are matched here. Without the lock this is a guess.
  [[nodiscard]] bool matching() const noexcept {
    return state_.load(std::memory_order_relaxed) == State::matching;
  }

  // Begins a receive. `post()` gives it to MPI. `receive` may be null while matching() was false.
  template <class Post>
  [[nodiscard]] Begun begin(Envelope wanted, Receive* receive, Arrived* arrived, Post post);

  // begin() for a receive that cannot take a held message: returns `posted` or `again`.
  template <class Post>
  [[nodiscard]] Begun begin_unless_held(Envelope wanted, Post post);

  // Searches a message, first among the held ones, then MPI's. It is taken away if `take`.
  [[nodiscard]] int look(Envelope wanted, bool take, int* found, Arrived* arrived);
  // Queues a receive of kind `message` or `probe`, for which the communicator begins to match here.
  // If receives cannot be matched here, the engine polls MPI for this one alone.
  [[nodiscard]] Begun begin_probe(Envelope wanted, Receive& receive, Arrived* arrived);

  // True if `receive` was still queued; then it has ended as cancelled.
  [[nodiscard]] bool cancel(Receive& receive) noexcept;
  // cancel() for the queued receive of kind `data` for whose listener `is_it` is true; false: there
  // is none.
  [[nodiscard]] bool cancel_of(const std::function<bool(const Listener&)>& is_it);

  // Counts the posted receives that are not complete. The number is a guess; it decides when to
  // match here.
  void count_open(int change) noexcept { open_.fetch_add(change, std::memory_order_relaxed); }

  // True if MPI would accept these arguments, for a receive that may wait.
  [[nodiscard]] bool accepts(const Arguments& arguments) const noexcept;
  // accepts() for the envelope: a probe has nothing more.
  [[nodiscard]] bool accepts(const Envelope& wanted) const noexcept {
    return (wanted.source == MPI_ANY_SOURCE || (wanted.source >= 0 && wanted.source < peers_)) &&
           (wanted.tag == MPI_ANY_TAG || (wanted.tag >= 0 && wanted.tag <= tag_max_));
  }
  // accepts() for a message that is sent.
  [[nodiscard]] bool accepts_send(const Arguments& it) const noexcept {
    return it.wanted.source >= 0 && it.wanted.tag >= 0 && accepts(it);
  }
  // True if the communicator asserts that no receive names any tag: MPI then keeps only the order
  // of messages with equal tags.
  [[nodiscard]] bool asserts_no_any_tag();
  // The library's own communicators carry no info keys, so this function sets the assertion.
  void assert_no_any_tag() noexcept {
    any_tag_.store(Permission::no, std::memory_order_relaxed);
  }
  // The info of the communicator may have changed.
  void forget_assertions() noexcept {
    any_tag_.store(Permission::unknown, std::memory_order_relaxed);
  }
  // messages::is_derived, which remembers the last named type.
  [[nodiscard]] bool is_derived(MPI_Datatype type) noexcept;

  // From now on `watcher`, which stays, is told of each message that arrives, also if a receive
  // waits for it, and of each send that returns a request. False if receives cannot be matched
  // here.
  [[nodiscard]] bool watch(const Watcher& watcher);
  void end_watch();
  // The watcher; null if there is none.
  [[nodiscard]] const Watcher* watcher() const noexcept {
    return watcher_.load(std::memory_order_acquire);  // pairs with watch()
  }
  // False if no communicator of this process is watched. A guess for a call that begins now.
  [[nodiscard]] static bool any_watched() noexcept {
    return watched_.load(std::memory_order_relaxed) != 0;
  }

  // From now on all receives are MPI's own: the communicator asserts that it has no wildcards.
  void stop_matching();
  // stop_matching(), because the communicator is about to be freed; if MPI can take no more
  // receives for it, all waiting ones end with an error.
  void close(bool may_post);

  // Calls visit(status) for each message that is held, oldest first, under the lock.
  template <class Visit>
  void for_each_held(Visit visit) {
    const std::lock_guard guard(lock_);
    held_.for_each([&](const Held<Arrived>& held) { visit(held.message.status); });
  }
  [[nodiscard]] MPI_Comm handle() const noexcept { return handle_; }
  // A number that changes when the handle is freed, also if MPI reuses the handle for a new
  // communicator. Relaxed: the program itself orders the freeing of a handle with its uses.
  [[nodiscard]] std::uint32_t life() const noexcept {
    return life_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] MPI_Comm handle_unless_freed() const noexcept {
    return key_.load(std::memory_order_relaxed) != 0 ? handle_ : MPI_COMM_NULL;
  }

  bool draw(Round& round) override;
  void for_each(const std::function<void(const Operation&)>& visit) override;

 private:
  friend class Communicators;
  enum class State : std::uint8_t {
    posting,  // receives go to MPI at once
    matching  // receives wait here
  };
  enum class Permission : std::uint8_t {
    unknown,  // not determined yet
    yes,      // receives may be matched here
    no        // MPI must match
  };

  [[nodiscard]] bool may_match() IMBREX_REQUIRES(lock_);
  void drop_watch() IMBREX_REQUIRES(lock_);
  // True while draw() must not be left to waiting threads.
  [[nodiscard]] bool draws() const noexcept IMBREX_REQUIRES(lock_) {
    return !queue_.empty() || !probes_.empty() || watcher() != nullptr;
  }
  [[nodiscard]] bool crowded() IMBREX_REQUIRES(lock_);
  void settle_state() IMBREX_REQUIRES(lock_);
  void enqueue(ReceiveQueue& queue, Envelope wanted, Receive& receive)
      IMBREX_REQUIRES(lock_);
  [[nodiscard]] Arrived take_held(Held<Arrived>& held) noexcept IMBREX_REQUIRES(lock_);
  static void take_all(ReceiveQueue& queue, std::vector<Receive*>& all);
  void post_queued(std::vector<Receive*>& impossible) IMBREX_REQUIRES(lock_);
  void leave_matching(std::vector<Receive*>& failed) IMBREX_REQUIRES(lock_);
  [[nodiscard]] int take_from_mpi(Arrived arrived[], bool* failed) IMBREX_REQUIRES(lock_);
  [[nodiscard]] Receive* match(const Arrived& arrived, Round& round) IMBREX_REQUIRES(lock_);

  void name(MPI_Comm comm);

  threads::CallLock lock_;  // held over calls of MPI that do not block, and over no user code
  std::atomic<State> state_{State::posting};  // under the lock; matching() reads it without
  std::atomic<const Watcher*> watcher_{nullptr};  // under the lock; watcher() reads it without
  std::atomic<int> open_{0};                  // any thread; a guess, so relaxed
  std::atomic<Permission> any_tag_{Permission::unknown};  // any thread; every thread determines the
                                                          // same value
  std::atomic<std::uint32_t> life_{0};        // written under the lock
  std::atomic<MPI_Datatype> named_type_{MPI_BYTE};  // any thread; any recent value is right

  ReceiveQueue queue_ IMBREX_GUARDED_BY(lock_){{MPI_ANY_SOURCE, MPI_ANY_TAG}};
  ReceiveQueue probes_ IMBREX_GUARDED_BY(lock_){{MPI_ANY_SOURCE, MPI_ANY_TAG}};
  HeldMessages<Arrived> held_ IMBREX_GUARDED_BY(lock_){{MPI_ANY_SOURCE, MPI_ANY_TAG}};
  Permission permission_ IMBREX_GUARDED_BY(lock_) = Permission::unknown;
  bool listed_ IMBREX_GUARDED_BY(lock_) = false;  // the engine knows this feed
  int calm_ IMBREX_GUARDED_BY(lock_) = 0;  // number of receives in a row that found the queue short

  static inline std::atomic<int> watched_{0};  // communicators; written under the lock of each

  // Written while no other thread knows this object (Communicators).
  MPI_Comm handle_ = MPI_COMM_NULL;
  int peers_ = 0;
  int tag_max_ = 0;
  std::atomic<std::uintptr_t> key_{0};
  std::atomic<Communicator*> next_{nullptr};
};

// True if the program has promised to use no wildcard: MPI may then refuse this library's.
[[nodiscard]] bool info_asserts_no_wildcards(MPI_Info info);
[[nodiscard]] bool asserts_no_wildcards(MPI_Comm comm);

// ---- inline ----------------------------------------------------------------------------------

template <class Post>
Begun Communicator::begin(Envelope wanted, Receive* receive, Arrived* arrived, Post post) {
  const std::lock_guard guard(lock_);
  settle_state();
  if (!held_.empty()) {
    if (Held<Arrived>* const held = held_.find(wanted)) {
      *arrived = take_held(*held);
      return Begun::held;
    }
  }
  if (!matching()) {
    post();
    return Begun::posted;
  }
  if (receive == nullptr) return Begun::again;
  enqueue(queue_, wanted, *receive);
  return Begun::queued;
}

template <class Post>
Begun Communicator::begin_unless_held(Envelope wanted, Post post) {
  const std::lock_guard guard(lock_);
  settle_state();
  if (matching() || held_.find(wanted) != nullptr) return Begun::again;
  post();
  return Begun::posted;
}

}  // namespace imbrex::mpi::messages
