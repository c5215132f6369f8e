// SPDX-License-Identifier: BSD-3-Clause
// The sending side of active messages: messages of any thread are collected in packets for each
// rank, and the holder starts the packets.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/completion.hpp"
#include "mpi/active/post/credits.hpp"
#include "mpi/active/post/holder.hpp"
#include "mpi/active/post/open_work.hpp"
#include "mpi/active/post/packet.hpp"
#include "mpi/active/post/wire.hpp"

namespace imbrex::mpi::active {

// Thread safety: any thread calls send(), try_send(), flush() and relist(); the holder calls the
// rest.
// Invariants:
//   (1) a peer is listed, and so counted as open work, from the first message until none of its
//       messages waits here: it is in `lists_`, being served, or starved.
//   (2) packets for a peer are started in the order of its queue, by one thread at a time: MPI
//       keeps that order.
class Outbox {
 public:
  // `poll()` makes progress for a thread that cannot suspend.
  Outbox(const Wire& wire, Holder& holder, OpenWork& work, Credits& credits,
         int (*poll)() noexcept) noexcept
      : wire_(wire), holder_(holder), work_(work), credits_(credits), poll_(poll) {}
  void open();

  // Copies the message. REQUIRES: `to` is a rank, and a packet has room for the message. Suspends.
  void send(int to, std::uint32_t id, std::span<const std::byte> head,
            std::span<const std::byte> body);
  // send(), but returns false instead of waiting: nothing is sent then. Makes no call of MPI.
  [[nodiscard]] bool try_send(int to, std::uint32_t id, std::span<const std::byte> head,
                              std::span<const std::byte> body);
  // Starts the collected messages, unless another thread is the holder. Never waits.
  void flush() noexcept;
  // A starved rank has got credit.
  void relist(const int rank) noexcept { push(peers_[static_cast<std::size_t>(rank)]); }

  // Starts the listed packets, as far as there is credit.
  void transmit() noexcept;
  // Sends the credit that no packet has returned.
  void return_credit() noexcept;
  // Takes back the packets that MPI has sent.
  void forget_sent() noexcept;
  // Releases the flag of the holder, and starts the packets that have been listed meanwhile.
  void release_holder() noexcept;
  // Calls visit(packet) for the messages that this rank has sent to itself up to now, without those
  // that the visits send. `visit` returns the number of messages; so does this function.
  template <class Visit>
  int take_own(Visit visit) noexcept;
  [[nodiscard]] std::int64_t packets_sent() const noexcept { return packets_sent_; }

 private:
  struct Waiter {
    detail::EventWord event;
    Waiter* next = nullptr;
  };
  struct alignas(64) Peer {
    base::SpinLock lock;
    Packet* filling IMBREX_GUARDED_BY(lock) = nullptr;  // null, or has messages
    Packet* first IMBREX_GUARDED_BY(lock) = nullptr;    // full packets, in order
    Packet* last IMBREX_GUARDED_BY(lock) = nullptr;
    int full IMBREX_GUARDED_BY(lock) = 0;
    bool listed IMBREX_GUARDED_BY(lock) = false;        // see (1)
    Waiter* waiters IMBREX_GUARDED_BY(lock) = nullptr;
    Peer* next = nullptr;  // in a list
    int rank = 0;
  };
  struct InFlight {
    MPI_Request request;
    Packet* packet;
    int to;
  };
  // The result of append().
  enum class Appended : std::uint8_t {
    not_at_all,  // there is no room
    with_others, // in a packet that may take more
    next         // in a new packet, after a full one
  };
  struct Taken {
    Packet* packets;
    Waiter* waiters;
  };

  [[nodiscard]] Appended append(Peer& peer, std::uint32_t id, std::span<const std::byte> head,
                                std::span<const std::byte> body, bool always);
  void wait_for_room(Peer& peer);
  void list(Peer& peer) noexcept;
  void push(Peer& peer) noexcept;
  [[nodiscard]] bool has_listed() const noexcept {
    return lists_.load(std::memory_order_relaxed) != nullptr;
  }
  void serve(Peer& peer) noexcept;
  void start(int to, Packet& packet) noexcept;
  [[nodiscard]] Taken take_all_of_own() noexcept;
  static void wake(Waiter* waiters) noexcept;
  static void close_filling(Peer& peer) noexcept IMBREX_REQUIRES(peer.lock);
  [[nodiscard]] Packet* take_packet();
  void give(Packet& packet) noexcept;

  const Wire& wire_;
  Holder& holder_;
  OpenWork& work_;
  Credits& credits_;
  int (*const poll_)() noexcept;
  std::unique_ptr<Peer[]> peers_;      // by rank; this rank has its own messages
  std::atomic<Peer*> lists_{nullptr};  // pushed by any thread, emptied by the holder
  std::atomic<bool> own_{false};       // messages to this rank itself wait

  base::SpinLock free_lock_;
  Packet* free_ IMBREX_GUARDED_BY(free_lock_) = nullptr;  // at most as many as were in use at once

  // Only the holder uses the following.
  std::deque<InFlight> in_flight_;  // at most all ranks' credits, and a few packets without
                                    // messages
  std::int64_t packets_sent_ = 0;
};

// ---- inline ----------------------------------------------------------------------------------

template <class Visit>
int Outbox::take_own(Visit visit) noexcept {
  if (!own_.load(std::memory_order_relaxed)) return 0;
  const Taken taken = take_all_of_own();
  int count = 0;
  for (Packet* packet = taken.packets; packet != nullptr;) {
    Packet* const next = packet->next;
    count += visit(packet->seal(0));
    give(*packet);
    packet = next;
  }
  wake(taken.waiters);
  if (count != 0) work_.end(OpenWork::Kind::listed);
  return count;
}

}  // namespace imbrex::mpi::active
