// SPDX-License-Identifier: BSD-3-Clause
// Active messages over MPI: packets to and from every rank, credits, and the handlers. The argument
// for its correctness stands in docs/design/active.md. active.hpp is what others see of it.
#pragma once

#include <mpi.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/completion.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "mpi/active/post/packet.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/traffic.hpp"

namespace imbrex::mpi::active {

using Handler = void (*)(void* context, int from, std::span<const std::byte> message) noexcept;
using Ended = void (*)(void* context, std::exception_ptr error) noexcept;

// Thread safety: open() and close() in MPI_Init and MPI_Finalize, the rest by any thread between.
// Invariants: (1) the thread that holds `traffic().handling`, the holder, alone makes calls of MPI
// for packets, and calls handlers; it is never waited for, but in close(). (2) A peer is listed,
// and so counted in `open_work_`, from the first message until none of its messages waits here.
// (3) As many packets with messages may be under way to a peer as it has given credit for; one
// without messages, which only returns credit, needs none.
class Post {
 public:
  static constexpr std::size_t ids = 64;

  // Collective.
  void open();
  // Returns when every message of every rank has been handled, and what it led to as well.
  void close();
  // The program ends without MPI_Finalize: no handler is called any more.
  void abandon() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }

  // False if there is one.
  [[nodiscard]] bool set_handler(std::uint32_t id, Handler handler, void* context);
  // REQUIRES: `to` is a rank, and a packet has room for the message. Suspends.
  void send(int to, std::uint32_t id, std::span<const std::byte> head,
            std::span<const std::byte> body);
  // The same, but where it would have to wait it sends nothing, and is false. Makes no call of MPI.
  [[nodiscard]] bool try_send(int to, std::uint32_t id, std::span<const std::byte> head,
                              std::span<const std::byte> body);
  void flush() noexcept;
  // How many messages and transfers came to their end.
  int poll() noexcept;

  // The tag of a transfer. Throws MpiError.
  [[nodiscard]] int offer(int from, std::span<std::byte> memory, Ended ended, void* context);
  void deliver(int to, int tag, std::span<const std::byte> data, Ended ended, void* context);

  void expect() noexcept;
  void expect_no_more() noexcept;

 private:
  struct Waiter {
    detail::EventWord event;
    Waiter* next = nullptr;
  };
  // A rank as this one sees it.
  struct alignas(64) Peer {
    base::SpinLock lock;
    Packet* filling IMBREX_GUARDED_BY(lock) = nullptr;  // null, or has messages
    Packet* first IMBREX_GUARDED_BY(lock) = nullptr;    // full ones, in order
    Packet* last IMBREX_GUARDED_BY(lock) = nullptr;
    int full IMBREX_GUARDED_BY(lock) = 0;
    bool listed IMBREX_GUARDED_BY(lock) = false;        // see (2)
    Waiter* waiters IMBREX_GUARDED_BY(lock) = nullptr;
    // The holder's.
    int credit = 0;             // packets that may still go there
    bool starved = false;       // listed, and there is no credit
    std::uint32_t owed = 0;     // packets from there that were handled, credit not yet returned
    Peer* next = nullptr;       // in a list
    int rank = 0;
  };
  struct Slot {
    MPI_Request request = MPI_REQUEST_NULL;
    alignas(64) std::byte bytes[packet_bytes];
  };
  struct Sending {
    MPI_Request request;
    Packet* packet;
    int to;
  };
  struct Kept {
    int from;
    std::vector<std::byte> bytes;
  };
  struct Registered {
    std::atomic<Handler> handler{nullptr};  // release pairs with the look of the holder
    void* context = nullptr;                // set before
  };
  struct Transfer;

  // What is begun here and must end before MPI_Finalize does. Each kind is counted in its own bits
  // of `open_work_`, so that one look at one word tells whether all kinds are at zero.
  enum class Work : std::uint64_t {
    kept = 1,                          // handlers that were set, whose kept messages wait
    listed = std::uint64_t{1} << 4,    // peers for which messages wait here; see (2)
    packet = std::uint64_t{1} << 24,   // packets in flight from here
    transfer = std::uint64_t{1} << 44  // transfers whose function is still to be called
  };
  static constexpr std::uint64_t bits_of_a_kind = 20;

  [[nodiscard]] bool is_holder() const noexcept;
  // The flag guards who calls handlers, and no variable.
  [[nodiscard]] bool try_hold() noexcept IMBREX_LOCKS_NOT_SEEN;
  void release() noexcept IMBREX_LOCKS_NOT_SEEN;
  // What append() has done.
  enum class Appended : std::uint8_t {
    not_at_all,  // there is no room
    with_others, // to a packet that may take more
    next         // to a new one, behind one that is full
  };
  [[nodiscard]] Appended append(Peer& peer, std::uint32_t id, std::span<const std::byte> head,
                                std::span<const std::byte> body, bool always);
  void wait_for_room(Peer& peer, int to);
  void list(Peer& peer) noexcept;
  void push(Peer& peer) noexcept;
  [[nodiscard]] Packet* take_packet();
  void give(Packet& packet) noexcept;

  [[nodiscard]] int receive() noexcept;
  [[nodiscard]] int take_own() noexcept;
  [[nodiscard]] int take_kept() noexcept;
  [[nodiscard]] int take_ended() noexcept;
  [[nodiscard]] int handle(int from, std::span<const std::byte> packet) noexcept;
  void dispatch(std::uint32_t id, int from, std::span<const std::byte> message) noexcept;
  void transmit() noexcept;
  void serve(Peer& peer) noexcept;
  void start(Peer& peer, Packet& packet) noexcept;
  void return_credit() noexcept;
  void forget_sent() noexcept;
  void begin_work(Work kind) noexcept;
  void end_work(Work kind) noexcept;
  void describe_work(std::string& text) const;
  void end(Transfer& transfer) noexcept;

  struct Sums {
    std::int64_t sent = 0;
    std::int64_t handled = 0;
  };
  [[nodiscard]] Sums settle() noexcept;
  void hold() noexcept;
  void report_kept() noexcept;
  [[noreturn]] void fail(const std::string& call, int code) const noexcept;
  void require(const char* call, int code) const noexcept;

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int ranks_ = 1;
  int window_ = 1;  // packets
  int tag_last_ = 32767;
  std::atomic<bool> open_{false};  // release in open() pairs with is_open()
  std::unique_ptr<Peer[]> peers_;
  std::unique_ptr<Slot[]> slots_;

  std::atomic<Peer*> lists_{nullptr};       // pushed by any thread, emptied by the holder
  std::atomic<bool> own_{false};            // messages to this rank itself wait
  std::atomic<bool> look_at_kept_{false};
  std::atomic<std::uint64_t> open_work_{0};  // what is begun here and not ended; any thread
  std::atomic<int> expecting_{0};           // any thread; far below 0 once closed
  std::atomic<pthread_t> holder_{};         // the holder; others compare it with themselves
  std::array<Registered, ids> handlers_;

  base::SpinLock free_lock_;
  Packet* free_ IMBREX_GUARDED_BY(free_lock_) = nullptr;  // no more than were under way at once
  base::SpinLock ended_lock_;
  Transfer* first_ended_ IMBREX_GUARDED_BY(ended_lock_) = nullptr;
  Transfer* last_ended_ IMBREX_GUARDED_BY(ended_lock_) = nullptr;
  std::mutex tags_lock_;
  int last_tag_ IMBREX_GUARDED_BY(tags_lock_) = 0;
  std::unordered_set<int> tags_ IMBREX_GUARDED_BY(tags_lock_);

  // The holder's.
  std::size_t oldest_ = 0;            // slot
  std::deque<Sending> sending_;       // at most all ranks' credits, and a few without messages
  std::vector<Peer*> owing_;          // those to whom credit is to be returned
  std::array<std::deque<Kept>, ids> kept_;  // no bound: messages whose handler is not there yet
  std::int64_t packets_sent_ = 0;     // and what has been delivered
  std::int64_t packets_handled_ = 0;  // and what has landed
  std::atomic<std::int64_t> delivered_{0};  // any thread
  detail::Guest guest_;
};

// The one of this process; never destroyed.
[[nodiscard]] Post& post() noexcept;

// What this process has asked for before MPI_Init; there, one wish of any rank is the wish of all.
struct Wishes {
  [[nodiscard]] bool want() noexcept {
    messages.store(true, std::memory_order_relaxed);
    return true;
  }
  [[nodiscard]] bool want_calls() noexcept {
    calls.store(true, std::memory_order_relaxed);
    return want();
  }

  std::atomic<bool> messages{false};  // any thread; relaxed: whoever calls MPI_Init comes later
  std::atomic<bool> calls{false};     // likewise
  void (*take_calls)() = nullptr;     // set while the library is loaded
  bool calls_agreed = false;          // written in MPI_Init, before Post::open()
};
inline constinit Wishes wishes;

}  // namespace imbrex::mpi::active
