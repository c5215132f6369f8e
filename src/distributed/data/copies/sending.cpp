// SPDX-License-Identifier: BSD-3-Clause
// Copies that leave this rank: when a rank is offered a copy, which segment goes next, and what
// follows when a child hands its list back or fails.
#include <fmt/format.h>


#include "distributed/carrier/errors.hpp"
#include "distributed/data/copies/protocol.hpp"
#include "distributed/data/copies/transfer.hpp"
#include "imbrex/error.hpp"

namespace imbrex::distributed {

using State = Child::State;

namespace {

// The number of copies to one rank that were announced there and have not ended. It bounds the work
// of that rank; the other copies wait here, where the most urgent goes first.
constexpr std::size_t offers_max = 16;

[[nodiscard]] bool counts_as_offered(const State state) noexcept {
  return state != State::waits && state != State::postponed && state != State::done;
}

[[nodiscard]] bool may_follow(const State from, const State to) noexcept {
  switch (to) {
    case State::waits: return false;
    case State::offered: return from == State::waits;
    case State::postponed: return from == State::offered;
    case State::accepted: return from == State::offered || from == State::postponed;
    case State::failing: return from == State::offered || from == State::postponed ||
                                from == State::accepted;
    case State::stopping: return from != State::waits && from != State::done;
    case State::done: return from != State::done;
  }
  return false;
}

}  // namespace

// ---- the root --------------------------------------------------------------------------------

namespace {
void check_list(const DatumName& datum, const int root, const std::vector<Recipient>& to) {
  std::vector<std::int32_t> ranks;
  ranks.reserve(to.size());
  for (const Recipient& one : to) ranks.push_back(one.rank);
  std::ranges::sort(ranks);
  const auto twice = std::ranges::adjacent_find(ranks);
  const bool own = std::ranges::binary_search(ranks, root);
  if (twice == ranks.end() && !own && (ranks.empty() || ranks.front() >= 0)) return;
  throw Error(fmt::format("imbrex: rank {2} sends datum {0} of space {1:#x} to a list of ranks "
                          "that names rank {3}{4}", datum.datum, datum.space, root,
                          own ? root : twice != ranks.end() ? *twice : ranks.front(),
                          own ? ", itself" : twice != ranks.end() ? " twice" : ""));
}

// Cuts a list that is longer than a message into several. Each list first names the ranks on the
// root's node, so the first rank of another node leads it, though its node is then reached twice.
void cut(std::vector<Stop>& list) noexcept {
  const auto nodes = std::ranges::find_if(list, [](const Stop& one) { return one.leads != 0; });
  const auto mates = static_cast<std::size_t>(nodes - list.begin());
  for (std::size_t at = stops_max; at < list.size(); at += stops_max) {
    if (at > mates) list[at].leads = 1;
  }
}
}  // namespace

void Broadcasts::Protocol::send(const DatumName& datum, const std::vector<Recipient>& to,
                                const Bytes data, const Ended ended, void* const context) {
  const int root = transfers_.rank();
  check_list(datum, root, to);
  if (to.empty()) return ended(context, nullptr);
  auto made = std::make_unique<Passing>();
  Passing& passing = *made;
  passing.datum = datum;
  passing.root = root;
  passing.data = data.data();
  passing.bytes = data.size();
  passing.segment = data.size() >= options_.chain_from || data.size() > transfer_bytes_max
                        ? options_.segment
                        : data.size();
  passing.segments =
      data.empty() ? 1 : (data.size() + passing.segment - 1) / passing.segment;
  passing.here = passing.segments;
  passing.kind = choose(options_.kind, to.size(), passing.segments);
  passing.ended = ended;
  passing.context = context;
  passing.open = 1;  // stands for this call
  Work work;
  if (const std::lock_guard guard(mutex_); true) {
    const Space& space = spaces_[datum.space];
    if (space.state != Space::State::open && space.state != Space::State::opening) {
      throw Error(fmt::format("imbrex: rank {} sends {}, but the space is not open on that rank",
                              root, text_of(datum)));
    }
    std::vector<Stop> list = arrange(root, to, space.nodes);
    cut(list);
    ++counters_.sends;
    if (to.size() > 1) ++counters_.broadcasts;
    roots_.insert(made.release());
    add_children(passing, list, work);
  }
  run(work);
  Work last;
  if (const std::lock_guard guard(mutex_); true) close_part(passing, last);
  run(last);
  transfers_.flush();
}

// ---- children --------------------------------------------------------------------------------

void Broadcasts::Protocol::add_children(Passing& passing, const std::span<const Stop> list,
                                        Work& work) {
  if (!passing.why.empty()) return send_failed(passing, list, passing.why, work);
  const bool is_here = passing.here == passing.segments;
  for (std::size_t first = 0; first < list.size(); first += stops_max) {
    const auto part = list.subspan(first, std::min(stops_max, list.size() - first));
    for (Branch& branch : branches(passing.kind, part)) {
      auto turn = turn_of(branch.to);
      for (const Stop& one : branch.rest) turn = std::min(turn, turn_of(one));
      const std::size_t bytes =
          sizeof(DataHead) + branch.rest.size() * sizeof(Stop) + passing.bytes;
      const bool is_inline = is_here && passing.bytes <= options_.inline_max &&
                             passing.segments == 1 && bytes <= message_bytes_max;
      passing.children.push_back(std::unique_ptr<Child>(
          new Child{passing, branch.to, std::move(branch.rest), turn, children_++}));
      Child& child = *passing.children.back();
      ++(passing.arrival == nullptr ? counters_.copies_as_root : counters_.copies_as_relay);
      if (is_inline) {
        child.state = State::done;
        ++counters_.copies_inline;
        (passing.arrival == nullptr ? counters_.bytes_as_root : counters_.bytes_as_relay) +=
            passing.bytes;
        ask(child, true, work);
      } else {
        ++passing.open;
        Peer& peer = peers_[child.rank()];
        peer.waiting.insert(&child);
        ask_next(peer, work);
      }
    }
  }
}

void Broadcasts::Protocol::ask_next(Peer& peer, Work& work) {
  while (peer.offers < offers_max && !peer.waiting.empty()) {
    Child& child = **peer.waiting.begin();
    set_state(child, State::offered, work);
    ask(child, false, work);
  }
}

void Broadcasts::Protocol::ask(Child& child, const bool is_inline, Work& work) {
  const Passing& passing = child.passing;
  Message header = message(DataMessage::copy, child.rank(),
                           {passing.datum, passing.root, child.to.ticket});
  change(header, [&](DataHead& head) {
    head.token = is_inline ? 0 : reinterpret_cast<std::uintptr_t>(&child);
    head.bytes = passing.bytes;
    head.segment = passing.segment;
    head.count = static_cast<std::uint16_t>(child.list.size());
    head.kind = passing.kind;
    head.is_inline = is_inline;
  });
  append(header.head, std::as_bytes(std::span(child.list)));
  if (is_inline) header.data = {passing.data, passing.bytes};
  header.child = &child;
  work.messages.push_back(std::move(header));
}

// The only function that changes the state, and the counts that depend on it.
void Broadcasts::Protocol::set_state(Child& child, const State state, Work& work) {
  const State before = child.state;
  if (!may_follow(before, state)) {
    throw Error(fmt::format("imbrex: a copy to rank {} goes from state {} to {}: a defect of "
                            "imbrex, or another version of imbrex on that rank",
                            child.rank(), static_cast<int>(before), static_cast<int>(state)));
  }
  child.state = state;
  Peer& peer = peers_[child.rank()];
  if (before == State::waits) peer.waiting.erase(&child);
  if (before == State::accepted) peer.accepted.erase(&child);
  if (state == State::accepted) peer.accepted.insert(&child);
  if (counts_as_offered(state) && !counts_as_offered(before)) ++peer.offers;
  if (!counts_as_offered(state) && counts_as_offered(before)) {
    --peer.offers;
    ask_next(peer, work);
  }
  if (state == State::done) close_part(child.passing, work);
}

void Broadcasts::Protocol::close_part(Passing& passing, Work& work) {
  --passing.open;
  if (passing.arrival != nullptr) {
    hold(*passing.arrival, work);
  } else if (passing.open == 0) {
    roots_.erase(&passing);
    work.ended.push_back(&passing);
  }
}

// ---- segments --------------------------------------------------------------------------------

// Sends the segments that may go to this rank, the most urgent first. The window keeps the link
// busy while this rank does not poll, and is no wider: segments in flight together arrive together,
// and are passed on late.
void Broadcasts::Protocol::pump(Peer& peer, Work& work) {
  for (Child* const child : peer.accepted) {
    Passing& passing = child->passing;
    const std::size_t window =
        passing.kind == TreeKind::binary ? 2 * std::size_t{options_.window} : options_.window;
    while (child->has_landing() && child->started < passing.here && passing.under_way < window) {
      if (peer.under_way >= options_.window) return;
      ++peer.under_way;
      ++passing.under_way;
      ++child->under_way;
      work.transfers.push_back(std::unique_ptr<Transfer>(
          new Transfer{*this, *child, child->landings[child->next_landing++],
                       passing.part(child->started++), false}));
    }
  }
}

// One child is served before the next, so that it begins early to pass segments on; in a binary
// tree, where both children pass on equally much, each segment goes to both.
void Broadcasts::Protocol::pump(Passing& passing, Work& work) {
  std::vector<Child*> order;
  for (const auto& child : passing.children) {
    if (child->state == State::accepted) order.push_back(child.get());
  }
  if (passing.kind == TreeKind::binary) std::ranges::stable_sort(order, {}, &Child::started);
  for (Child* const child : order) pump(peers_[child->rank()], work);
}

void Broadcasts::Protocol::Transfer::ended(void* const context,
                                           const std::exception_ptr error) noexcept {
  std::unique_ptr<Transfer> self(static_cast<Transfer*>(context));
  Protocol& protocol = self->protocol;
  protocol.sent(std::move(self), error);
}

void Broadcasts::Protocol::sent(const std::unique_ptr<Transfer> transfer,
                                const std::exception_ptr& error) noexcept {
  Child& child = transfer->child;
  Passing& passing = child.passing;
  Work work;
  if (const std::lock_guard guard(mutex_); true) {
    Peer& peer = peers_[child.rank()];
    --child.under_way;
    if (!transfer->is_nothing) {
      --passing.under_way;
      --peer.under_way;
    }
    if (error == nullptr && !transfer->is_nothing) {
      ++child.sent;
      (passing.arrival == nullptr ? counters_.bytes_as_root : counters_.bytes_as_relay) +=
          transfer->data.size();
    } else if (error != nullptr && !transfer->is_nothing) {
      child.landings.push_back(transfer->landing);  // it has still to be ended
      if (child.state == State::accepted) fail(child, what_of(error), work);
      if (child.state == State::stopping) end_landings(child, work);
    }
    if (child.state == State::accepted && child.sent == passing.segments) {
      set_state(child, State::done, work);
    } else if (child.state == State::stopping && child.under_way == 0) {
      set_state(child, State::done, work);
    }
    pump(passing, work);
    pump(peer, work);
  }
  run(work);
}

// ---- answers of children ---------------------------------------------------------------------

void Broadcasts::Protocol::on_land(Child& child, const std::span<const Landing> landings) {
  Work work;
  if (const std::lock_guard guard(mutex_); true) {
    child.has_answered = true;
    child.landings.insert(child.landings.end(), landings.begin(), landings.end());
    if (child.state == State::offered || child.state == State::postponed) {
      set_state(child, State::accepted, work);
    }
    pump(peers_[child.rank()], work);
  }
  run(work);
}

void Broadcasts::Protocol::on_back(Child& child) {
  Work work;
  if (const std::lock_guard guard(mutex_); true) {
    child.has_answered = true;
    counters_.served_again += child.list.size();
    add_children(child.passing, child.list, work);
    if (child.state == State::offered) set_state(child, State::postponed, work);
  }
  run(work);
}

void Broadcasts::Protocol::on_stop(Child& child, const DataHead& head, const std::string& why) {
  Work work;
  if (const std::lock_guard guard(mutex_); true) {
    if (child.state != State::failing) note_error(child, why);
    if (!std::exchange(child.has_answered, true) && !head.took_list) {
      counters_.served_again += child.list.size();
      add_children(child.passing, child.list, work);
    }
    set_state(child, State::stopping, work);
    end_landings(child, work);
    if (child.under_way == 0) set_state(child, State::done, work);
    pump(child.passing, work);
  }
  run(work);
}

// ---- failures --------------------------------------------------------------------------------

void Broadcasts::Protocol::end_landings(Child& child, Work& work) {
  while (child.has_landing()) {
    ++child.under_way;
    work.transfers.push_back(std::unique_ptr<Transfer>(
        new Transfer{*this, child, child.landings[child.next_landing++], {}, true}));
  }
}

void Broadcasts::Protocol::note_error(Child& child, const std::string& why) {
  ++counters_.failed;
  Passing& passing = child.passing;
  if (passing.arrival != nullptr || passing.error != nullptr) return;
  passing.error = std::make_exception_ptr(
      Error(fmt::format("imbrex: the copy of {} from rank {} to rank {} has failed: {}",
                        text_of(passing.datum), passing.root, child.rank(), why)));
}

// The data of the child do not come, or cannot be sent.
void Broadcasts::Protocol::fail(Child& child, const std::string& why, Work& work) {
  switch (child.state) {
    case State::failing:
    case State::stopping:
    case State::done: return;
    case State::waits: {
      note_error(child, why);
      const Stop to = child.to;
      send_failed(child.passing, std::span(&to, 1), why, work);
      send_failed(child.passing, child.list, why, work);
      return set_state(child, State::done, work);
    }
    case State::offered:
    case State::postponed:
    case State::accepted: break;
  }
  note_error(child, why);
  Message failed = failed_message(child.passing, child.to, why);
  change(failed, [&](DataHead& head) { head.token = reinterpret_cast<std::uintptr_t>(&child); });
  work.messages.push_back(std::move(failed));
  set_state(child, State::failing, work);
}

void Broadcasts::Protocol::send_failed(const Passing& passing, const std::span<const Stop> list,
                                       const std::string& why, Work& work) {
  for (const Stop& one : list) work.messages.push_back(failed_message(passing, one, why));
}

void Broadcasts::Protocol::send_failure(const DatumName& datum, const std::vector<Recipient>& to,
                                        const std::string& why) {
  Passing none;
  none.datum = datum;
  none.root = transfers_.rank();
  Work work;
  for (const Recipient& one : to) {
    Stop stop;
    stop.rank = static_cast<std::uint32_t>(one.rank);
    stop.ticket = one.ticket;
    work.messages.push_back(failed_message(none, stop, why));
  }
  run(work);
  transfers_.flush();
}

Broadcasts::Protocol::Message Broadcasts::Protocol::failed_message(const Passing& passing,
                                                                   const Stop& to,
                                                                   const std::string& why) const {
  Message failed = message(DataMessage::failed, static_cast<int>(to.rank),
                         {passing.datum, passing.root, to.ticket});
  append(failed.head, text_bytes(why));
  return failed;
}

// ---- messages and work -----------------------------------------------------------------------

Broadcasts::Protocol::Message Broadcasts::Protocol::message(const DataMessage what, const int to,
                                                            const CopyName& name) const {
  DataHead head{};
  head.datum = name.datum;
  head.root = name.root;
  head.ticket = name.ticket;
  head.message = what;
  Message made;
  made.to = to;
  append(made.head, bytes_of(head));
  return made;
}

void Broadcasts::Protocol::send(Message& message) noexcept {
  try {
    try {
      transfers_.send(message.to, message.head, message.data);
    } catch (...) {
      if (message.child == nullptr) throw;
      // That rank cannot be reached; the ranks behind it perhaps can.
      Work work;
      if (const std::lock_guard guard(mutex_); true) {
        Child& child = *message.child;
        note_error(child, detail::thrown_text(std::current_exception()));
        add_children(child.passing, child.list, work);
        if (child.state == State::offered) set_state(child, State::done, work);
      }
      run(work);
    }
  } catch (...) {  // only the end of the program can report it
    report_at_end(std::current_exception());
  }
}

void Broadcasts::Protocol::run(Work& work) noexcept {
  for (Message& one : work.messages) send(one);
  for (Arrival* const one : work.offers) offer(*one);
  for (std::unique_ptr<Transfer>& one : work.transfers) {
    Transfer& transfer = *one;
    try {
      transfers_.deliver(transfer.landing, transfer.data, &Transfer::ended, &transfer);
      (void)one.release();
    } catch (...) {
      sent(std::move(one), std::current_exception());
    }
  }
  for (Passing* const one : work.ended) {
    const std::unique_ptr<Passing> passing(one);
    passing->ended(passing->context, passing->error);
  }
  for (Arrival* const one : work.held) notify_reader(*one);
}

}  // namespace imbrex::distributed
