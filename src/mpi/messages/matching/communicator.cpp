// SPDX-License-Identifier: BSD-3-Clause
// Communicators: where each receive goes, and the round that brings messages to waiting receives.
#include "mpi/messages/matching/communicator.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/abi/inquiries.hpp"

namespace imbrex::mpi::messages {

namespace {

// The most messages that one communicator takes from MPI in one round: few, so that its lock is
// held for a short time and completions are reported soon.
constexpr int messages_at_once = 8;
// The number of receives in a row that must find the queue short before receives are posted again:
// in a program that posts, waits and posts again an empty queue does not mean the end.
constexpr int calm_enough = 64;

// ---- may receives be matched here? -------------------------------------------------------------

// IMBREX_MATCH_ABOVE: the number of posted receives of one communicator.
constexpr int never = 1'000'000'000;
int match_above() noexcept {
  static const int value = static_cast<int>(detail::number_option("MATCH_ABOVE"));
  return value;
}

}  // namespace

bool info_asserts_no_wildcards(MPI_Info info) {
  return asserts(info, "mpi_assert_no_any_source") || asserts(info, "mpi_assert_no_any_tag");
}

bool asserts_no_wildcards(MPI_Comm comm) {
  MPI_Info info = MPI_INFO_NULL;
  if (PMPI_Comm_get_info(comm, &info) != MPI_SUCCESS || info == MPI_INFO_NULL) return false;
  const bool result = info_asserts_no_wildcards(info);
  PMPI_Info_free(&info);
  return result;
}

bool Communicator::may_match() {
  if (permission_ == Permission::unknown) {
    const bool yes = match_above() != never && !asserts_no_wildcards(handle_);
    permission_ = yes ? Permission::yes : Permission::no;
  }
  return permission_ == Permission::yes;
}

bool Communicator::asserts_no_any_tag() {
  Permission may = any_tag_.load(std::memory_order_relaxed);
  if (may == Permission::unknown) {
    MPI_Info info = MPI_INFO_NULL;
    if (PMPI_Comm_get_info(handle_, &info) != MPI_SUCCESS || info == MPI_INFO_NULL) return false;
    may = asserts(info, "mpi_assert_no_any_tag") ? Permission::no : Permission::yes;
    PMPI_Info_free(&info);
    any_tag_.store(may, std::memory_order_relaxed);
  }
  return may == Permission::no;
}

bool Communicator::crowded() {
  return open_.load(std::memory_order_relaxed) >= match_above() && may_match();
}

void Communicator::settle_state() {
  if (!matching()) {
    if (crowded()) {
      calm_ = 0;
      state_.store(State::matching, std::memory_order_relaxed);
    }
  } else if (calm_ >= calm_enough && !draws() && held_.empty() && !crowded()) {
    state_.store(State::posting, std::memory_order_relaxed);
  }
}

bool Communicator::accepts(const Arguments& it) const noexcept {
  return accepts(it.wanted) && it.count >= 0 && it.type != MPI_DATATYPE_NULL;
}

bool Communicator::is_derived(MPI_Datatype type) noexcept {
  if (type == named_type_.load(std::memory_order_relaxed)) return false;
  if (messages::is_derived(type)) return true;
  named_type_.store(type, std::memory_order_relaxed);
  return false;
}

// ---- the queue -------------------------------------------------------------------------------

void Communicator::enqueue(ReceiveQueue& queue, Envelope wanted, Receive& receive) {
  queue.push(receive.link, wanted, &receive);
  engine().expect();
  calm_ = 2 * static_cast<long>(queue_.size()) <= match_above() + 1L ? calm_ + 1 : 0;
  if (!std::exchange(listed_, true)) engine().add(*this);
}

bool Communicator::cancel(Receive& receive) noexcept {
  {
    const std::lock_guard guard(lock_);
    if (!receive.link.queued) return false;
    (receive.kind == Receive::Kind::probe ? probes_ : queue_).remove(receive.link);
  }
  receive.end_cancelled();
  return true;
}

// The owner of a queued receive cannot be told under the lock: that is done outside of the queue.
bool Communicator::cancel_of(const std::function<bool(const Listener&)>& is_it) {
  Receive* found = nullptr;
  {
    const std::lock_guard guard(lock_);
    queue_.for_each([&](const Link& link) {
      auto* const receive = static_cast<Receive*>(link.owner);
      const Listener* const listener = receive->listener();
      if (listener != nullptr && is_it(*listener)) found = receive;
    });
    if (found == nullptr) return false;
    queue_.remove(found->link);
  }
  found->end_cancelled();
  return true;
}

Arrived Communicator::take_held(Held<Arrived>& held) noexcept {
  const std::unique_ptr<Held<Arrived>> owned(&held);
  held_.remove(held);
  return held.message;
}

void Communicator::for_each(const std::function<void(const Operation&)>& visit) {
  const std::lock_guard guard(lock_);
  const auto each = [&](const Link& link) { visit(*static_cast<const Receive*>(link.owner)); };
  queue_.for_each(each);
  probes_.for_each(each);
}

// ---- messages --------------------------------------------------------------------------------

bool Communicator::draw(Round& round) {
  std::array<Arrived, messages_at_once> arrived;
  std::array<Receive*, messages_at_once> receives;
  int count = 0;
  {
    const std::lock_guard guard(lock_);
    if (!draws()) {
      listed_ = false;
      return false;
    }
    bool failed = false;
    count = take_from_mpi(arrived.data(), &failed);
    for (int i = 0; i < count; ++i) receives[i] = match(arrived[i], round);
    if (failed) {
      // This happens if a process has failed, for example. Each receive asks MPI for itself from
      // now on.
      std::vector<Receive*> refused;
      leave_matching(refused);
      for (Receive* const receive : refused) round.complete(*receive);
    }
  }
  for (int i = 0; i < count; ++i) {
    if (receives[i] != nullptr) receives[i]->fetch();
  }
  for (int i = 0; i < count; ++i) {
    if (receives[i] != nullptr) receives[i]->fetch_rest();
  }
  for (int i = 0; i < count; ++i) {
    if (receives[i] != nullptr) receives[i]->matched(arrived[i], round);
  }
  return true;
}

// The number of arrived messages. Data of a receive are not in near caches when many wait, so they
// are prefetched for all messages at once.
int Communicator::take_from_mpi(Arrived arrived[], bool* failed) {
  int count = 0;
  for (; count < messages_at_once; ++count) {
    int found = 0;
    Arrived& one = arrived[count];
    *failed = PMPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, handle_, &found, &one.message,
                           &one.status) != MPI_SUCCESS;
    if (*failed || found == 0) break;
    queue_.fetch_bucket({one.status.MPI_SOURCE, one.status.MPI_TAG});
  }
  for (int i = 0; i < count; ++i) {
    queue_.fetch_link({arrived[i].status.MPI_SOURCE, arrived[i].status.MPI_TAG});
  }
  return count;
}

// The receive that gets the message, or null: the message is then held.
Receive* Communicator::match(const Arrived& arrived, Round& round) {
  const Envelope envelope{arrived.status.MPI_SOURCE, arrived.status.MPI_TAG};
  Link* const link = queue_.find(envelope);
  Receive* const receive = link != nullptr ? static_cast<Receive*>(link->owner) : nullptr;
  if (const Watcher* const observer = watcher()) {
    observer->incoming(round, handle_, arrived.status,
                   receive != nullptr ? receive->handle() : MPI_REQUEST_NULL);
  }
  if (receive != nullptr) {
    queue_.remove(*link);
    return receive;
  }
  held_.push(*std::make_unique<Held<Arrived>>(Held<Arrived>{{}, arrived}).release(), envelope);
  while (Link* const waiting = probes_.find(envelope)) {
    Receive& probe = *static_cast<Receive*>(waiting->owner);
    probes_.remove(*waiting);
    probe.status = arrived.status;
    round.complete(probe);
  }
  return nullptr;
}

int Communicator::look(Envelope wanted, bool take, int* found, Arrived* arrived) {
  for (bool polled = false;; polled = true) {
    {
      const std::lock_guard guard(lock_);
      if (Held<Arrived>* const held = held_.find(wanted)) {
        *arrived = take ? take_held(*held) : held->message;
        *found = 1;
        return MPI_SUCCESS;
      }
      // A message that MPI still has belongs to no waiting receive.
      if (queue_.empty() && watcher() == nullptr) {
        return take ? PMPI_Improbe(wanted.source, wanted.tag, handle_, found, &arrived->message,
                                   &arrived->status)
                    : PMPI_Iprobe(wanted.source, wanted.tag, handle_, found, &arrived->status);
      }
    }
    *found = 0;
    if (polled) return MPI_SUCCESS;
    engine().poll();  // first the queued ones
  }
}

// ---- events ----------------------------------------------------------------------------------

// A watch counts as an operation: a waiting thread must draw.
bool Communicator::watch(const Watcher& its_watcher) {
  const std::lock_guard guard(lock_);
  if (!may_match()) return false;
  if (watcher_.exchange(&its_watcher, std::memory_order_release) != nullptr) return true;
  watched_.fetch_add(1, std::memory_order_relaxed);
  state_.store(State::matching, std::memory_order_relaxed);
  engine().expect();
  engine().attend();
  if (!std::exchange(listed_, true)) engine().add(*this);
  return true;
}

void Communicator::end_watch() {
  const std::lock_guard guard(lock_);
  drop_watch();
}

void Communicator::drop_watch() {
  if (watcher_.exchange(nullptr, std::memory_order_relaxed) == nullptr) return;
  watched_.fetch_sub(1, std::memory_order_relaxed);
  engine().leave_feed();
  engine().withdraw();
}

// ---- the end of matching ---------------------------------------------------------------------

namespace {

// The engine's test of a single operation. REQUIRES: a Receive of kind `message` or `probe`.
bool ask_probe(Operation& operation) {
  Receive& self = static_cast<Receive&>(operation);
  int found = 0;
  Arrived arrived{MPI_MESSAGE_NULL, {}};
  self.take(self.communicator.look(self.link.key, self.kind == Receive::Kind::message, &found,
                                   &arrived));
  self.message = arrived.message;
  self.status = arrived.status;
  return found != 0 || self.code != MPI_SUCCESS;
}

}  // namespace

Begun Communicator::begin_probe(Envelope wanted, Receive& receive, Arrived* arrived) {
  const std::lock_guard guard(lock_);
  if (Held<Arrived>* const held = held_.find(wanted)) {
    *arrived = receive.kind == Receive::Kind::message ? take_held(*held) : held->message;
    return Begun::held;
  }
  if (!matching() && may_match()) {
    calm_ = 0;
    state_.store(State::matching, std::memory_order_relaxed);
  }
  if (matching()) {
    enqueue(receive.kind == Receive::Kind::message ? queue_ : probes_, wanted, receive);
  } else {
    receive.link.key = wanted;
    receive.ask = &ask_probe;
    engine().expect();
    engine().hand_over(receive);
  }
  return Begun::queued;
}

// Empties the queue into `all`, oldest first.
void Communicator::take_all(ReceiveQueue& queue, std::vector<Receive*>& all) {
  std::vector<Receive*> taken;
  queue.for_each([&](const Link& link) { taken.push_back(static_cast<Receive*>(link.owner)); });
  std::sort(taken.begin(), taken.end(), [](const Receive* a, const Receive* b) {
    return a->link.sequence < b->link.sequence;
  });
  for (Receive* const receive : taken) queue.remove(receive->link);
  all.insert(all.end(), taken.begin(), taken.end());
}

// The receives are posted in their order. Therefore, and because of invariant (1), MPI matches them
// as this library would have done.
void Communicator::post_queued(std::vector<Receive*>& impossible) {
  std::vector<Receive*> receives;
  take_all(queue_, receives);
  for (Receive* const receive : receives) {
    if (receive->kind != Receive::Kind::data) {
      impossible.push_back(receive);
      continue;
    }
    const Call& call = receive->call;
    receive->code = post({receive->buffer, call.count, call.type, receive->link.key, call.comm},
                         &receive->request);
    if (receive->code == MPI_SUCCESS) {
      engine().hand_over(*receive);
    } else {
      impossible.push_back(receive);
    }
  }
}

// Receives that MPI refuses go to `failed`, with their codes. The engine owns the others: any
// thread may end them from here on.
void Communicator::leave_matching(std::vector<Receive*>& failed) {
  permission_ = Permission::no;
  drop_watch();
  state_.store(State::posting, std::memory_order_relaxed);
  std::vector<Receive*> rest;
  post_queued(rest);
  take_all(probes_, rest);
  for (Receive* const receive : rest) {
    if (receive->code != MPI_SUCCESS) {
      failed.push_back(receive);
    } else {
      receive->ask = &ask_probe;
      engine().hand_over(*receive);
    }
  }
}

void Communicator::stop_matching() {
  std::vector<Receive*> failed;
  {
    const std::lock_guard guard(lock_);
    leave_matching(failed);
  }
  for (Receive* const receive : failed) receive->end_failed(receive->code);
}

void Communicator::close(bool may_post) {
  std::vector<Receive*> rest;
  {
    const std::lock_guard guard(lock_);
    life_.fetch_add(1, std::memory_order_relaxed);
    permission_ = Permission::no;
    drop_watch();
    state_.store(State::posting, std::memory_order_relaxed);
    if (may_post) post_queued(rest);
    take_all(queue_, rest);
    take_all(probes_, rest);
  }
  for (Receive* const receive : rest) receive->end_failed(MPI_ERR_COMM);
}

// ---- a new one -------------------------------------------------------------------------------

namespace {

int peers_of(MPI_Comm comm) {
  int between_groups = 0;
  int peers = 0;
  PMPI_Comm_test_inter(comm, &between_groups);
  (between_groups != 0 ? PMPI_Comm_remote_size : PMPI_Comm_size)(comm, &peers);
  return peers;
}

int tag_upper_bound() {
  void* value = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&value), &found);
  return found != 0 ? *static_cast<int*>(value) : 32767;
}

}  // namespace

// Messages held for the communicator that this object belonged to before are dropped: the program
// has lost them, too.
void Communicator::name(MPI_Comm comm) {
  const std::lock_guard guard(lock_);
  while (Held<Arrived>* const held = held_.find({MPI_ANY_SOURCE, MPI_ANY_TAG})) {
    (void)take_held(*held);
  }
  handle_ = comm;
  peers_ = peers_of(comm);
  tag_max_ = tag_upper_bound();
  permission_ = Permission::unknown;
  forget_assertions();
  state_.store(State::posting, std::memory_order_relaxed);
  open_.store(0, std::memory_order_relaxed);
  calm_ = 0;
}

}  // namespace imbrex::mpi::messages
