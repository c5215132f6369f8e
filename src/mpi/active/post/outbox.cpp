// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/active/post/outbox.hpp"

#include <mutex>
#include <string>
#include <utility>

#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/abi/completion_calls.hpp"

namespace imbrex::mpi::active {

namespace {
constexpr int full_max = 8;  // packets that wait for a rank, before senders must wait
}

void Outbox::open() {
  peers_ = std::make_unique<Peer[]>(static_cast<std::size_t>(wire_.ranks));
  for (int rank = 0; rank < wire_.ranks; ++rank) peers_[static_cast<std::size_t>(rank)].rank = rank;
}

// ---- any thread --------------------------------------------------------------------------------

void Outbox::send(const int to, const std::uint32_t id, const std::span<const std::byte> head,
                  const std::span<const std::byte> body) {
  const bool waits = !holder_.is_here();
  Peer& peer = peers_[static_cast<std::size_t>(to)];
  Appended done = Appended::not_at_all;
  while ((done = append(peer, id, head, body, !waits)) == Appended::not_at_all) {
    wait_for_room(peer);
  }
  if (done == Appended::next && waits) flush();
}

bool Outbox::try_send(const int to, const std::uint32_t id, const std::span<const std::byte> head,
                      const std::span<const std::byte> body) {
  return append(peers_[static_cast<std::size_t>(to)], id, head, body, false) !=
         Appended::not_at_all;
}

void Outbox::close_filling(Peer& peer) noexcept {
  (peer.first == nullptr ? peer.first : peer.last->next) = peer.filling;
  peer.last = std::exchange(peer.filling, nullptr);
}

Outbox::Appended Outbox::append(Peer& peer, const std::uint32_t id,
                                const std::span<const std::byte> head,
                                const std::span<const std::byte> body, const bool always) {
  bool lists = false;
  bool is_full = false;
  {
    const std::lock_guard guard(peer.lock);
    if (!always && peer.full >= full_max) return Appended::not_at_all;
    if (peer.filling != nullptr && !peer.filling->has_room(head.size() + body.size())) {
      close_filling(peer);
      ++peer.full;
      is_full = true;
    }
    if (peer.filling == nullptr) peer.filling = take_packet();
    peer.filling->append(id, head, body);
    traffic().sent.fetch_add(1, std::memory_order_relaxed);
    lists = !std::exchange(peer.listed, true);
  }
  if (lists) list(peer);
  return is_full ? Appended::next : Appended::with_others;
}

void Outbox::list(Peer& peer) noexcept {
  work_.begin(OpenWork::Kind::listed);
  if (peer.rank == wire_.rank) {
    own_.store(true, std::memory_order_release);  // pairs with take_all_of_own()
  } else {
    push(peer);
  }
}

void Outbox::push(Peer& peer) noexcept {
  peer.next = lists_.load(std::memory_order_relaxed);
  while (!lists_.compare_exchange_weak(peer.next, &peer, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
}

// Returns when there may be room. A task lets other tasks run meanwhile; a thread that cannot
// suspend polls.
void Outbox::wait_for_room(Peer& peer) {
  flush();
  if (!detail::in_task()) {
    if (poll_() == 0) threads::wait_for_lock();
    return;
  }
  Waiter waiter;
  {
    const std::lock_guard guard(peer.lock);
    if (peer.full < full_max) return;
    waiter.next = std::exchange(peer.waiters, &waiter);
  }
  detail::await(waiter.event,
                {.kind = detail::WaitKind::mpi, .what = "active::send", .peer = peer.rank});
}

void Outbox::wake(Waiter* waiters) noexcept {
  while (waiters != nullptr) detail::fire(std::exchange(waiters, waiters->next)->event);
}

void Outbox::flush() noexcept {
  if (holder_.is_here()) {
    transmit();
  } else if (has_listed() && holder_.try_take()) {
    transmit();
    release_holder();
  }
}

// ---- the holder --------------------------------------------------------------------------------

void Outbox::transmit() noexcept {
  Peer* peer = lists_.exchange(nullptr, std::memory_order_acquire);  // pairs with push()
  while (peer != nullptr) {
    Peer* const next = peer->next;  // before it may be listed again
    serve(*peer);
    peer = next;
  }
}

void Outbox::serve(Peer& peer) noexcept {
  for (;;) {
    Packet* packet = nullptr;
    Waiter* woken = nullptr;
    {
      const std::lock_guard guard(peer.lock);
      if (peer.first == nullptr && peer.filling == nullptr) {
        peer.listed = false;
        break;
      }
      if (!credits_.spend(peer.rank)) return;
      if (peer.first == nullptr) {
        packet = std::exchange(peer.filling, nullptr);
      } else {
        packet = std::exchange(peer.first, peer.first->next);
        --peer.full;
      }
      if (peer.full < full_max) woken = std::exchange(peer.waiters, nullptr);
    }
    start(peer.rank, *packet);
    wake(woken);
  }
  work_.end(OpenWork::Kind::listed);
}

void Outbox::start(const int to, Packet& packet) noexcept {
  const std::span<const std::byte> bytes = packet.seal(credits_.take_owed(to));
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = PMPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to,
                              Wire::tag_of_packets, wire_.comm, &request);
  if (code != MPI_SUCCESS) wire_.fail("MPI_Isend to rank " + std::to_string(to), code);
  ++packets_sent_;
  work_.begin(OpenWork::Kind::packet);
  in_flight_.push_back({request, &packet, to});
}

void Outbox::return_credit() noexcept {
  credits_.return_due([this](const int rank) { start(rank, *take_packet()); });
}

// MPI mostly ends the oldest first; memory that is freed a little later does no harm.
void Outbox::forget_sent() noexcept {
  while (!in_flight_.empty()) {
    InFlight& oldest = in_flight_.front();
    int done = 0;
    const Outcome outcome = completion::Test(&oldest.request, &done, MPI_STATUS_IGNORE);
    if (outcome.code != MPI_SUCCESS) {
      wire_.fail("MPI_Isend to rank " + std::to_string(oldest.to), outcome.code);
    }
    if (done == 0) return;
    give(*oldest.packet);
    in_flight_.pop_front();
    work_.end(OpenWork::Kind::packet);
  }
}

// A thread that has listed a peer meanwhile may have found the flag taken.
void Outbox::release_holder() noexcept {
  for (;;) {
    holder_.give_back();
    if (!has_listed() || !holder_.try_take()) return;
    transmit();
  }
}

Outbox::Taken Outbox::take_all_of_own() noexcept {
  Peer& own = peers_[static_cast<std::size_t>(wire_.rank)];
  own_.store(false, std::memory_order_relaxed);
  const std::lock_guard guard(own.lock);
  if (own.filling != nullptr) close_filling(own);
  own.last = nullptr;
  own.full = 0;
  own.listed = false;
  return {std::exchange(own.first, nullptr), std::exchange(own.waiters, nullptr)};
}

// ---- packets -----------------------------------------------------------------------------------

Packet* Outbox::take_packet() {
  {
    const std::lock_guard guard(free_lock_);
    if (free_ != nullptr) {
      Packet* const packet = std::exchange(free_, free_->next);
      packet->next = nullptr;
      packet->clear();
      return packet;
    }
  }
  return new Packet;
}

void Outbox::give(Packet& packet) noexcept {
  const std::lock_guard guard(free_lock_);
  packet.next = std::exchange(free_, &packet);
}

}  // namespace imbrex::mpi::active
