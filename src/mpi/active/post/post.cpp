// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/active/post/post.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/arch.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "imbrex/error.hpp"
#include "mpi/abi/completion_calls.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/engine/threads/ship.hpp"
#include "mpi/report/look.hpp"
#include "trace/races.hpp"

namespace imbrex::mpi::active {

namespace {

constexpr int tag_of_packets = 0;
constexpr std::size_t slots = 16;           // receives that are posted
constexpr int packets_for_each_poll = 64;   // so that a poll stays short
constexpr int full_max = 8;                 // packets that wait for a rank, before senders do
constexpr int window_max = 64;
constexpr std::size_t memory_max = std::size_t{64} << 20;  // of packets under way to one rank
constexpr int closed = -(1 << 30);

// Handlers may spawn tasks.
class InGuest {
 public:
  explicit InGuest(detail::Guest& guest) : guest_(guest) { detail::enter_as(guest_); }
  ~InGuest() { detail::leave_as(guest_); }
  InGuest(const InGuest&) = delete;
  InGuest& operator=(const InGuest&) = delete;

 private:
  detail::Guest& guest_;
};

}  // namespace

Post& post() noexcept {
  static Post& the_post = *new Post;
  return the_post;
}

// A rank that cannot be reached, most likely: nobody who waits for it can go on.
void Post::fail(const std::string& call, const int code) const noexcept {
  const std::string failed = describe_failed(comm_);
  say(unprefixed(make_error(("active messages: " + call).c_str(), code,
                            detail::describe_current_task())) +
      (failed.empty() ? failed : ": " + failed) + "; all ranks are ended");
  end_all(MPI_COMM_WORLD, 1);
}

void Post::require(const char* const call, const int code) const noexcept {
  if (code != MPI_SUCCESS) fail(call, code);
}

// ---- sending -----------------------------------------------------------------------------------

void Post::send(const int to, const std::uint32_t id, const std::span<const std::byte> head,
                const std::span<const std::byte> body) {
  const bool waits = !is_holder();
  Peer& peer = peers_[static_cast<std::size_t>(to)];
  Appended done = Appended::not_at_all;
  while ((done = append(peer, id, head, body, !waits)) == Appended::not_at_all) {
    wait_for_room(peer, to);
  }
  if (done == Appended::next && waits) flush();
}

bool Post::try_send(const int to, const std::uint32_t id, const std::span<const std::byte> head,
                    const std::span<const std::byte> body) {
  Peer& peer = peers_[static_cast<std::size_t>(to)];
  return append(peer, id, head, body, false) != Appended::not_at_all;
}

Post::Appended Post::append(Peer& peer, const std::uint32_t id,
                            const std::span<const std::byte> head,
                            const std::span<const std::byte> body, const bool always) {
  bool lists = false;
  bool is_full = false;
  {
    const std::lock_guard guard(peer.lock);
    if (!always && peer.full >= full_max) return Appended::not_at_all;
    if (peer.filling != nullptr && !peer.filling->has_room(head.size() + body.size())) {
      (peer.first == nullptr ? peer.first : peer.last->next) = peer.filling;
      peer.last = std::exchange(peer.filling, nullptr);
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

void Post::list(Peer& peer) noexcept {
  begin_work(Work::listed);
  if (peer.rank == rank_) {
    own_.store(true, std::memory_order_release);  // pairs with take_own()
  } else {
    push(peer);
  }
}

void Post::push(Peer& peer) noexcept {
  peer.next = lists_.load(std::memory_order_relaxed);
  while (!lists_.compare_exchange_weak(peer.next, &peer, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
}

// Returns when there may be room. A task lets others run meanwhile; a thread that cannot polls.
void Post::wait_for_room(Peer& peer, const int to) {
  flush();
  if (!detail::in_task()) {
    if (poll() == 0) progress::wait_for_lock();
    return;
  }
  Waiter waiter;
  {
    const std::lock_guard guard(peer.lock);
    if (peer.full < full_max) return;
    waiter.next = std::exchange(peer.waiters, &waiter);
  }
  detail::await(waiter.event, {.kind = detail::WaitKind::mpi, .what = "active::send", .peer = to});
}

void Post::flush() noexcept {
  if (is_holder()) {
    transmit();
  } else if (lists_.load(std::memory_order_relaxed) != nullptr && try_hold()) {
    transmit();
    release();
  }
}

// REQUIRES: the caller is the holder, as for all that follows.
void Post::transmit() noexcept {
  Peer* peer = lists_.exchange(nullptr, std::memory_order_acquire);  // pairs with push()
  while (peer != nullptr) {
    Peer* const next = peer->next;  // before it may be listed again
    serve(*peer);
    peer = next;
  }
}

void Post::serve(Peer& peer) noexcept {
  for (;;) {
    Packet* packet = nullptr;
    Waiter* woken = nullptr;
    {
      const std::lock_guard guard(peer.lock);
      if (peer.first == nullptr && peer.filling == nullptr) {
        peer.listed = false;
        break;
      }
      if (peer.credit == 0) {
        peer.starved = true;
        return;
      }
      if (peer.first == nullptr) {
        packet = std::exchange(peer.filling, nullptr);
      } else {
        packet = std::exchange(peer.first, peer.first->next);
        --peer.full;
      }
      if (peer.full < full_max) woken = std::exchange(peer.waiters, nullptr);
    }
    --peer.credit;
    start(peer, *packet);
    while (woken != nullptr) detail::fire(std::exchange(woken, woken->next)->event);
  }
  end_work(Work::listed);
}

void Post::start(Peer& peer, Packet& packet) noexcept {
  const std::span<const std::byte> bytes = packet.seal(std::exchange(peer.owed, 0));
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = PMPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, peer.rank,
                              tag_of_packets, comm_, &request);
  if (code != MPI_SUCCESS) fail("MPI_Isend to rank " + std::to_string(peer.rank), code);
  ++packets_sent_;
  begin_work(Work::packet);
  sending_.push_back({request, &packet, peer.rank});
}

// MPI lets go of the oldest first, mostly; memory that is free a little later harms nobody.
void Post::forget_sent() noexcept {
  while (!sending_.empty()) {
    Sending& oldest = sending_.front();
    int done = 0;
    const Outcome outcome = completion::Test(&oldest.request, &done, MPI_STATUS_IGNORE);
    if (outcome.code != MPI_SUCCESS) {
      fail("MPI_Isend to rank " + std::to_string(oldest.to), outcome.code);
    }
    if (done == 0) return;
    give(*oldest.packet);
    sending_.pop_front();
    end_work(Work::packet);
  }
}

Packet* Post::take_packet() {
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

void Post::give(Packet& packet) noexcept {
  const std::lock_guard guard(free_lock_);
  packet.next = std::exchange(free_, &packet);
}

// ---- handling ----------------------------------------------------------------------------------

bool Post::is_holder() const noexcept {
  // Only this thread stores its own name, so a stale value cannot equal it.
  return base::is_this_thread(holder_.load(std::memory_order_relaxed));
}

bool Post::try_hold() noexcept {
  if (engine().is_held_still() || !traffic().handling.try_lock()) return false;
  holder_.store(base::this_thread(), std::memory_order_relaxed);
  return true;
}

// Who has listed a peer meanwhile may have found the flag taken.
void Post::release() noexcept {
  do {
    holder_.store(pthread_t{}, std::memory_order_relaxed);
    traffic().handling.unlock();
    if (lists_.load(std::memory_order_relaxed) == nullptr || !try_hold()) return;
    transmit();
  } while (true);
}

int Post::poll() noexcept {
  if (!is_open() || is_holder() || !try_hold()) return 0;
  int count = 0;
  if (is_open()) {
    const trace::races::Outside of_the_task;
    const InGuest guest(guest_);
    if (look_at_kept_.load(std::memory_order_relaxed)) count += take_kept();
    count += receive();
    if (own_.load(std::memory_order_relaxed)) count += take_own();
    count += take_ended();
    transmit();
    if (!owing_.empty()) return_credit();
    forget_sent();
  }
  release();
  return count;
}

namespace {
std::string describe_receive(const int from) {
  return "the receive of a packet" + (from < 0 ? "" : " from rank " + std::to_string(from));
}
}  // namespace

// Receives are restarted in the order in which they were posted, and MPI fills the oldest first:
// so to ask for that one only keeps the order, and nothing is overlooked.
int Post::receive() noexcept {
  int count = 0;
  for (int i = 0; i < packets_for_each_poll; ++i) {
    Slot& slot = slots_[oldest_];
    int done = 0;
    MPI_Status status;
    status.MPI_SOURCE = MPI_ANY_SOURCE;
    const Outcome outcome = completion::Test(&slot.request, &done, &status);
    if (outcome.code != MPI_SUCCESS) fail(describe_receive(status.MPI_SOURCE), outcome.code);
    if (done == 0) break;
    int bytes = 0;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    count += handle(status.MPI_SOURCE, {slot.bytes, static_cast<std::size_t>(bytes)});
    const int code = PMPI_Start(&slot.request);
    if (code != MPI_SUCCESS) fail("MPI_Start", code);
    oldest_ = (oldest_ + 1) % slots;
  }
  return count;
}

// How much it has moved: at least 1.
int Post::handle(const int from, const std::span<const std::byte> packet) noexcept {
  Peer& peer = peers_[static_cast<std::size_t>(from)];
  const PacketHead head = head_of(packet);
  peer.credit += static_cast<int>(head.credit);
  if (head.credit != 0 && std::exchange(peer.starved, false)) push(peer);
  const bool well = for_each_message(
      packet, [&](const std::uint32_t id, const std::span<const std::byte> message) {
        dispatch(id, from, message);
      });
  if (!well) {
    say("active messages: what rank " + std::to_string(from) +
        " has sent is no packet: all ranks must run the same version of imbrex");
    end_all(MPI_COMM_WORLD, 1);
  }
  ++packets_handled_;
  const auto threshold = static_cast<std::uint32_t>(std::max(1, window_ / 2));
  if (head.messages != 0 && ++peer.owed == threshold) owing_.push_back(&peer);
  return std::max(1, static_cast<int>(head.messages));
}

void Post::dispatch(const std::uint32_t id, const int from,
                    const std::span<const std::byte> message) noexcept {
  if (id >= ids) return;  // a sender is not let do this
  const Handler handler = handlers_[id].handler.load(std::memory_order_acquire);
  if (handler == nullptr || !kept_[id].empty()) {
    kept_[id].push_back({from, {message.begin(), message.end()}});
    return;
  }
  handler(handlers_[id].context, from, message);
  std::atomic<std::uint64_t>& handled = traffic().handled;  // the holder alone writes it
  handled.store(handled.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

// Messages that this rank has sent to itself: those that are there now, not what they lead to.
int Post::take_own() noexcept {
  Peer& own = peers_[static_cast<std::size_t>(rank_)];
  Packet* packet = nullptr;
  Waiter* woken = nullptr;
  own_.store(false, std::memory_order_relaxed);
  {
    const std::lock_guard guard(own.lock);
    if (own.filling != nullptr) {
      (own.first == nullptr ? own.first : own.last->next) = own.filling;
    }
    packet = std::exchange(own.first, nullptr);
    own.last = own.filling = nullptr;
    own.full = 0;
    woken = std::exchange(own.waiters, nullptr);
    own.listed = false;
  }
  int count = 0;
  while (packet != nullptr) {
    Packet* const next = packet->next;
    (void)for_each_message(packet->seal(0),
                           [&](const std::uint32_t id, const std::span<const std::byte> message) {
                             dispatch(id, rank_, message);
                             ++count;
                           });
    give(*packet);
    packet = next;
  }
  while (woken != nullptr) detail::fire(std::exchange(woken, woken->next)->event);
  if (count != 0) end_work(Work::listed);
  return count;
}

// Credit goes back with messages if there are any; here is what they have not taken along.
void Post::return_credit() noexcept {
  for (Peer* const peer : owing_) {
    if (peer->owed >= static_cast<std::uint32_t>(std::max(1, window_ / 2))) {
      start(*peer, *take_packet());
    }
  }
  owing_.clear();
}

bool Post::set_handler(const std::uint32_t id, const Handler handler, void* const context) {
  static std::mutex setting;
  const std::lock_guard guard(setting);
  Registered& mine = handlers_[id];
  if (mine.handler.load(std::memory_order_relaxed) != nullptr) return false;
  mine.context = context;
  mine.handler.store(handler, std::memory_order_release);
  begin_work(Work::kept);
  if (look_at_kept_.exchange(true, std::memory_order_acq_rel)) end_work(Work::kept);
  return true;
}

int Post::take_kept() noexcept {
  (void)look_at_kept_.exchange(false, std::memory_order_acq_rel);  // pairs with set_handler()
  int count = 0;
  for (std::uint32_t id = 0; id < ids; ++id) {
    if (handlers_[id].handler.load(std::memory_order_acquire) == nullptr) continue;
    for (std::deque<Kept> kept = std::exchange(kept_[id], {}); !kept.empty(); kept.pop_front()) {
      dispatch(id, kept.front().from, kept.front().bytes);
      ++count;
    }
  }
  end_work(Work::kept);
  return count;
}

// ---- what is under way -------------------------------------------------------------------------

void Post::begin_work(const Work kind) noexcept {
  open_work_.fetch_add(static_cast<std::uint64_t>(kind), std::memory_order_relaxed);
  engine().want_polls();
}

void Post::end_work(const Work kind) noexcept {
  // release: pairs with settle()
  open_work_.fetch_sub(static_cast<std::uint64_t>(kind), std::memory_order_release);
  engine().call_off_polls(1);
}

// A line of a report, where something is begun here and has not ended: MPI_Finalize waits for it.
void Post::describe_work(std::string& text) const {
  const std::uint64_t open = open_work_.load(std::memory_order_relaxed);
  if (open == 0) return;
  constexpr std::uint64_t mask = (std::uint64_t{1} << bits_of_a_kind) - 1;
  const auto number = [open](const Work kind) {
    return open / static_cast<std::uint64_t>(kind) & mask;
  };
  std::string parts;
  const auto add = [&parts](const std::uint64_t count, const char* const what) {
    if (count != 0) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count, what);
  };
  add(number(Work::listed), "ranks for which messages wait here");
  add(number(Work::packet), "packets in flight from here");
  add(number(Work::transfer), "transfers that have not ended");
  add(open % static_cast<std::uint64_t>(Work::listed), "handlers for messages that came before");
  text += "active messages: not ended here: " + parts + "\n";
}

void Post::expect() noexcept {
  if (expecting_.fetch_add(1, std::memory_order_relaxed) >= 0) engine().want_polls();
}

void Post::expect_no_more() noexcept {
  if (expecting_.fetch_sub(1, std::memory_order_relaxed) > 0) engine().call_off_polls(1);
}

// ---- transfers ---------------------------------------------------------------------------------

// It is an operation of the engine's; what is to be called when it has ended is called as handlers
// are, by the holder.
struct Post::Transfer : Operation {
  Transfer(const char* const name, const MPI_Comm comm, const int peer, const int tag,
           const std::size_t bytes, const Kind kind) {
    call = {.name = name, .comm = comm, .peer = peer, .tag = tag,
            .count = static_cast<MPI_Count>(bytes), .type = MPI_BYTE, .kind = kind,
            .at_once = true, .throws = true};
    complete = [](Operation& self) noexcept { post().end(static_cast<Transfer&>(self)); };
  }
  [[nodiscard]] bool lands() const noexcept { return call.kind == Kind::receive; }

  Ended ended = nullptr;
  void* context = nullptr;
  Transfer* next_ended = nullptr;
};

int Post::offer(const int from, const std::span<std::byte> memory, const Ended ended,
                void* const context) {
  int tag = 0;
  {
    const std::lock_guard guard(tags_lock_);
    do {  // those that are open are few
      last_tag_ = last_tag_ < tag_last_ ? last_tag_ + 1 : tag_of_packets + 1;
    } while (!tags_.insert(last_tag_).second);
    tag = last_tag_;
  }
  auto transfer = std::make_unique<Transfer>("active::offer", comm_, from, tag, memory.size(),
                                             Kind::receive);
  transfer->ended = ended;
  transfer->context = context;
  const int code = PMPI_Irecv(memory.data(), static_cast<int>(memory.size()), MPI_BYTE, from, tag,
                              comm_, &transfer->request);
  if (code != MPI_SUCCESS) {
    const std::lock_guard guard(tags_lock_);
    tags_.erase(tag);
    throw make_error("active::offer", code, detail::describe_current_task());
  }
  engine().add(*transfer.release());
  detail::wake_poller();
  return tag;
}

void Post::deliver(const int to, const int tag, const std::span<const std::byte> data,
                   const Ended ended, void* const context) {
  auto transfer =
      std::make_unique<Transfer>("active::deliver", comm_, to, tag, data.size(), Kind::send);
  transfer->ended = ended;
  transfer->context = context;
  // It counts before it can arrive: see close().
  traffic().sent.fetch_add(1, std::memory_order_relaxed);
  delivered_.fetch_add(1, std::memory_order_relaxed);
  open_work_.fetch_add(static_cast<std::uint64_t>(Work::transfer), std::memory_order_relaxed);
  const int code = PMPI_Isend(data.data(), static_cast<int>(data.size()), MPI_BYTE, to, tag, comm_,
                              &transfer->request);
  if (code != MPI_SUCCESS) {
    traffic().sent.fetch_sub(1, std::memory_order_relaxed);
    delivered_.fetch_sub(1, std::memory_order_relaxed);
    open_work_.fetch_sub(static_cast<std::uint64_t>(Work::transfer), std::memory_order_relaxed);
    throw make_error("active::deliver", code, detail::describe_current_task());
  }
  engine().add(*transfer.release());
  detail::wake_poller();
}

// Called by the engine; what follows in the same poll calls the function.
void Post::end(Transfer& transfer) noexcept {
  if (transfer.lands()) {
    const std::lock_guard guard(tags_lock_);
    tags_.erase(transfer.call.tag);
    open_work_.fetch_add(static_cast<std::uint64_t>(Work::transfer), std::memory_order_relaxed);
  }
  engine().want_polls();
  const std::lock_guard guard(ended_lock_);
  (first_ended_ == nullptr ? first_ended_ : last_ended_->next_ended) = &transfer;
  last_ended_ = &transfer;
}

int Post::take_ended() noexcept {
  Transfer* first = nullptr;
  {
    const std::lock_guard guard(ended_lock_);
    first = std::exchange(first_ended_, nullptr);
    last_ended_ = nullptr;
  }
  int count = 0;
  for (; first != nullptr; ++count) {
    const std::unique_ptr<Transfer> transfer(std::exchange(first, first->next_ended));
    std::exception_ptr error;
    if (transfer->code != MPI_SUCCESS) {
      const std::string name = std::string(transfer->call.name) +
                               (transfer->lands() ? " from rank " : " to rank ") +
                               std::to_string(transfer->call.peer);
      error = std::make_exception_ptr(
          make_error(name.c_str(), transfer->code, detail::describe(transfer->task)));
    }
    transfer->ended(transfer->context, error);
    if (transfer->lands()) {
      ++packets_handled_;
      std::atomic<std::uint64_t>& handled = traffic().handled;
      handled.store(handled.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    end_work(Work::transfer);
  }
  return count;
}

// ---- begin and end -----------------------------------------------------------------------------

void Post::open() {
  require("MPI_Comm_dup", PMPI_Comm_dup(MPI_COMM_WORLD, &comm_));
  PMPI_Comm_set_name(comm_, "imbrex active messages");
  PMPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  PMPI_Comm_rank(comm_, &rank_);
  PMPI_Comm_size(comm_, &ranks_);
  void* largest = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&largest), &found);
  if (found != 0) tag_last_ = *static_cast<const int*>(largest);

  const std::size_t all = static_cast<std::size_t>(ranks_);
  window_ = std::clamp(static_cast<int>(memory_max / packet_bytes / all), 1, window_max);
  peers_ = std::make_unique<Peer[]>(all);
  for (std::size_t i = 0; i < all; ++i) {
    peers_[i].rank = static_cast<int>(i);
    peers_[i].credit = window_;
  }
  slots_ = std::make_unique<Slot[]>(slots);
  for (std::size_t i = 0; i < slots; ++i) {
    Slot& slot = slots_[i];
    require("MPI_Recv_init",
            PMPI_Recv_init(slot.bytes, packet_bytes, MPI_BYTE, MPI_ANY_SOURCE, tag_of_packets,
                           comm_, &slot.request));
    require("MPI_Start", PMPI_Start(&slot.request));
  }
  report::add_description(
      [](void* const self, std::size_t, std::string& text) noexcept {
        static_cast<const Post*>(self)->describe_work(text);
      },
      this);
  traffic().open.store(true, std::memory_order_relaxed);
  open_.store(true, std::memory_order_release);
}

// The four-counter method (Mattern, 1987): two waves, and a rank joins one only while it is
// passive, so that only a message could make it send. If as much was handled by the first wave as
// has been sent by the second, nothing was under way at the end of the first. What is counted are
// packets, also those that return credit, and transfers.
void Post::close() {
  std::int64_t last_handled = -1;
  for (;;) {
    const Sums mine = settle();
    Sums all;
    MPI_Request request = MPI_REQUEST_NULL;
    static_assert(sizeof(Sums) == 2 * sizeof(std::int64_t), "sent as numbers");
    require("MPI_Iallreduce",
            PMPI_Iallreduce(&mine, &all, 2, MPI_INT64_T, MPI_SUM, comm_, &request));
    for (int done = 0; done == 0;) {
      const Outcome outcome = completion::Test(true, &request, &done, MPI_STATUS_IGNORE);
      if (outcome.code != MPI_SUCCESS) fail("MPI_Iallreduce in MPI_Finalize", outcome.code);
      if (done != 0) break;
      if (detail::in_task()) detail::yield();
      if (poll() == 0) sched_yield();
    }
    if (all.sent == last_handled) break;
    last_handled = all.handled;
  }
  const int expected = expecting_.exchange(closed, std::memory_order_relaxed);
  if (expected > 0) engine().call_off_polls(expected);
  hold();
  open_.store(false, std::memory_order_release);
  traffic().open.store(false, std::memory_order_relaxed);
  report_kept();
  for (std::size_t i = 0; i < slots; ++i) {
    PMPI_Cancel(&slots_[i].request);
    PMPI_Wait(&slots_[i].request, MPI_STATUS_IGNORE);
    PMPI_Request_free(&slots_[i].request);
  }
  PMPI_Comm_free(&comm_);
  release();
}

void Post::abandon() noexcept {
  if (is_holder()) return;  // a handler ends the program
  hold();
  open_.store(false, std::memory_order_release);
  release();
}

// Returns once this rank is passive: no task is left, and nothing is begun here that has not ended.
Post::Sums Post::settle() noexcept {
  for (;;) {
    const std::uint64_t before = traffic().handled.load(std::memory_order_acquire);
    if (detail::in_task()) detail::drain();
    hold();
    const bool passive = open_work_.load(std::memory_order_acquire) == 0 &&
                         traffic().handled.load(std::memory_order_relaxed) == before;
    const Sums sums{packets_sent_ + delivered_.load(std::memory_order_relaxed), packets_handled_};
    release();
    if (passive) return sums;
    if (poll() == 0) sched_yield();
  }
}

// Waits for the flag: nothing that holds it waits for MPI_Finalize.
void Post::hold() noexcept {
  while (!try_hold()) progress::wait_for_lock();
}

void Post::report_kept() noexcept {
  for (std::uint32_t id = 0; id < ids; ++id) {
    if (kept_[id].empty()) continue;
    say("MPI_Finalize: " + std::to_string(kept_[id].size()) + " active messages for handler " +
        std::to_string(id) + ", the first of them from rank " +
        std::to_string(kept_[id].front().from) + ", have no handler on rank " +
        std::to_string(rank_) + ": call set_handler() there");
  }
}

}  // namespace imbrex::mpi::active
