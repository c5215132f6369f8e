// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/sends/turns.hpp"

#include <algorithm>

namespace imbrex::mpi::sends {

namespace {

constexpr Time expected_most = 2'000'000'000;
// Messages in flight may share their link with messages to other processes.
constexpr double slower = 4;
constexpr std::int64_t bytes_of_pace = 65536;  // the time of shorter messages is mostly latency
// The fraction of the expected time of all messages to a process that a needless wait may add.
constexpr double share_of_wait = 1.0 / 16;
constexpr Time patience_least = 300'000;
// Receivers of parts are ready for them: a message that does not move waits for a processor.
constexpr Time patience_with_parts = 300'000'000;
constexpr Time patience_beside = 5'000'000;  // beside messages of others in flight, with the time
                                             // that these take
// A network that moves less than 0.5 MB/s does not count as moving. A single packet may be queued
// for this long.
constexpr std::uint64_t bytes_least = 4096;
constexpr Time time_of_byte = 2000;
constexpr Time time_of_packet = 20'000'000;
constexpr int looks_enough = 8;
// Processes that poll seldom must not keep a fast network waiting.
constexpr Time time_between_polls = 5'000'000;

}  // namespace

bool CameBefore::operator()(const Process* const one, const Process* const other) const noexcept {
  return one->number < other->number;
}

bool Turns::enter(Turn& turn, const std::pair<const void*, int> process, const Time now) {
  turn.sequence = ++sequence_;
  const auto there = channels_.find(turn.key);
  if (there == channels_.end() && !turn.is_long) return true;
  const auto [to, is_new] = processes_.try_emplace(process);
  if (is_new) to->second.number = processes_.size();
  turn.to = &to->second;
  if (there == channels_.end()) {
    const bool waits = !turn.to->channels.empty() || (turn.is_part && turn.to->waits());
    if (!waits && has_room(*turn.to, turn)) {
      admit(turn, now);
      return true;
    }
    if (!turn.to->waits()) turn.to->moved = now;  // until now no message had to wait
    turn.to->bytes_waiting += turn.bytes;
    Channel& channel = channels_[turn.key];
    channel = {
        .key = turn.key, .to = turn.to, .first = &turn, .last = &turn, .urgency = turn.urgency};
    turn.channel = &channel;
    queue(channel);
    return false;
  }
  Channel& channel = there->second;
  turn.channel = &channel;
  turn.to->bytes_waiting += turn.bytes;
  channel.last->next = &turn;
  channel.last = &turn;
  if (turn.urgency > channel.urgency) {
    take_from_queue(channel);
    channel.urgency = turn.urgency;
    queue(channel);
  }
  return false;
}

Turn* Turns::next(const Time now) noexcept {
  if (!loose_.empty()) return &pop(*loose_.back());
  if (waiting_.empty()) return nullptr;
  look_at_patience(now);
  // The first of all processes' first channels for which there is room.
  Channel* best = nullptr;
  for (const Process* const process : waiting_) {
    Channel* const channel = first_with_room(*process);
    if (channel != nullptr && (best == nullptr || GoesBefore()(channel, best))) best = channel;
  }
  if (best == nullptr) return nullptr;
  Turn& turn = pop(*best);
  admit(turn, now);
  return &turn;
}

void Turns::ended(Turn& turn, const Time now) noexcept {
  if (turn.term == 0) return;
  Process& process = *turn.to;
  const bool counted = turn.term == process.term;
  turn.term = 0;
  const int place = process.take(turn);
  process.learn_pace(turn, now);
  learn_network(process, turn);
  process.moved = process.ended = now;
  if (counted) {
    const double pace = static_cast<double>(now - turn.began) /
                        static_cast<double>(std::max(turn.bytes, bytes_of_pace));
    process.pace = std::max(pace, process.pace * 15 / 16);
    --process.count;
    if (turn.is_part && --process.parts == 0) std::erase(with_parts_, &process);
    process.bytes -= turn.bytes;
  } else {  // its duration says more of this process than of the link
    --process.overdue;
  }
  process.learn_order(place);
}

void Turns::remove(Turn& turn) noexcept {
  Channel& channel = *turn.channel;
  if (channel.first == &turn) {
    pop(channel);
    return;
  }
  Turn* before = channel.first;
  while (before->next != &turn) before = before->next;
  before->next = turn.next;
  if (channel.last == &turn) channel.last = before;
  channel.to->bytes_waiting -= turn.bytes;
  turn.next = nullptr;
  turn.channel = nullptr;
}

Turn* Turns::force(const void* const communicator, const int peer) noexcept {
  if (communicator == nullptr) return channels_.empty() ? nullptr : &pop(channels_.begin()->second);
  const ChannelKey first{communicator, peer < 0 ? 0 : peer, INT32_MIN};
  const auto found = channels_.lower_bound(first);
  if (found == channels_.end() || found->first.communicator != communicator ||
      (peer >= 0 && found->first.peer != peer)) {
    return nullptr;
  }
  return &pop(found->second);
}

// ---- the parts -------------------------------------------------------------------------------

bool Turns::has_room(const Process& process, const Turn& turn) const noexcept {
  if (process.under_way < process.burst) return true;
  if (!turn.of_collective && process.under_way < process.window) return true;
  // Receivers of parts are ready for all of them, and use the first before the last has arrived.
  const std::int64_t bytes = turn.of_collective ? limits_.bytes : bytes_at_once(process);
  const bool here = process.count < limits_.each || process.bytes + turn.bytes <= bytes;
  const bool among_few = !turn.is_part || process.parts > 0 ||
                         std::ssize(with_parts_) < limits_.with_parts;
  return here && among_few;
}

// A message beside collectives does not wait until there is room for a part.
Channel* Turns::first_with_room(const Process& process) const noexcept {
  Channel* found = nullptr;
  for (const auto* const channels : {&process.channels, &process.channels_of_parts}) {
    if (channels->empty()) continue;
    Channel* const channel = *channels->begin();
    const bool goes = has_room(process, *channel->first);
    if (goes && (found == nullptr || GoesBefore()(channel, found))) found = channel;
  }
  return found;
}

// REQUIRES: has_room().
void Turns::admit(Turn& turn, const Time now) noexcept {
  Process& process = *turn.to;
  if (process.count == 0) process.moved = process.ended = now;
  if (process.under_way == 0 && process.network == Process::Network::unknown) {
    process.sent_before = limits_.network(true).sent;
    process.bytes_since = 0;
  }
  process.add(turn);
  ++process.count;
  if (turn.is_part && process.parts++ == 0) with_parts_.push_back(&process);
  process.bytes += turn.bytes;
  turn.term = process.term;
  turn.began = now;
}

// How long nothing may move before messages in flight are taken for messages that wait for their
// receiver. Then twice as many go, and so on until one ends, each time after a part of that time.
Time Turns::patience(const Process& process) const noexcept {
  const double whole = process.time_of_late / process.bytes_of_late *
                       static_cast<double>(process.bytes_under_way + process.bytes_waiting);
  const Time expected = static_cast<Time>(std::min(whole * share_of_wait,
                                                   static_cast<double>(expected_most)));
  const Time once = std::max(expected, patience_least);
  return limits_.patience + (process.times_given_up == 0 ? once : once / 8);
}

// patience() while the network moves messages, which may be those to other processes.
Time Turns::longest_patience(const Process& process) const noexcept {
  const double expected = slower * process.pace * static_cast<double>(process.bytes);
  return limits_.patience + patience_beside +
         static_cast<Time>(std::min(expected, static_cast<double>(expected_most)));
}

// `since`: messages that were sent before do not count.
void Turns::look_at_network(const Time since, const Time now) noexcept {
  const Moved last = std::exchange(network_, limits_.network(false));
  looked_before_ = std::exchange(looked_, now);
  const Time apart = now - looked_before_;
  const std::uint64_t least = bytes_least + static_cast<std::uint64_t>(apart / time_of_byte);
  const bool moved = network_.sent > last.sent + least && now - apart >= since;
  const bool begins = network_.queued && (!last.queued || now - apart < since);
  if (moved || begins) network_moved_ = now;
}

// A message has ended. Over TCP it has been acknowledged, or it is queued.
void Turns::learn_network(Process& process, const Turn& turn) noexcept {
  if (process.network != Process::Network::unknown) return;
  process.bytes_since += turn.bytes;
  const Moved moved = limits_.network(true);
  const std::uint64_t half = static_cast<std::uint64_t>(process.bytes_since) / 2;
  if (!moved.queued && moved.sent < process.sent_before + half) {
    process.network = Process::Network::other;
  } else if (++process.looks == looks_enough) {  // long enough that it may be the share of other
                                                 // messages
    process.network = Process::Network::tcp;
  }
}

std::int64_t Turns::bytes_at_once(const Process& process) const noexcept {
  if (process.network != Process::Network::other || limits_.bytes == 0) return limits_.bytes;
  const double fast = time_between_polls * process.bytes_of_late / process.time_of_late;
  return std::max(limits_.bytes, static_cast<std::int64_t>(std::min(fast, 1e12)));
}

// Whether nothing has moved for the patience of the process. The network is read at least twice in
// this time.
bool Turns::is_at_rest(const Process& process, const Time now) noexcept {
  const Time limit = patience(process);
  const Time quiet = now - process.moved;
  if (quiet <= limit / 2) return false;
  if (quiet > longest_patience(process)) return true;
  const Time half = process.moved + limit / 2;
  if (looked_ < half || (quiet > limit && now - looked_ > patience_least / 2)) {
    look_at_network(process.moved, now);
  }
  if (quiet <= limit || looked_before_ < half) return false;
  return now - network_moved_ > limit + (network_.queued ? time_of_packet : 0);
}

// See (3).
void Turns::give_up_waiting(Process& process, const Time now) noexcept {
  if (process.count == 0 || !is_at_rest(process, now)) return;
  const bool of_collective = process.first != nullptr && process.first->of_collective;
  if (of_collective && now - process.moved <= patience_with_parts) return;
  process.overdue += process.count;
  process.count = 0;
  if (std::exchange(process.parts, 0) != 0) std::erase(with_parts_, &process);
  process.bytes = 0;
  if (++process.term == 0) process.term = 1;
  process.moved = now;
  ++process.times_given_up;
  process.burst = 2 * process.under_way;
}

void Turns::look_at_patience(const Time now) noexcept {
  for (Process* const process : waiting_) give_up_waiting(*process, now);
  for (std::size_t i = with_parts_.size(); i-- > 0;) give_up_waiting(*with_parts_[i], now);
}

void Turns::queue(Channel& channel) noexcept {
  if (!channel.first->is_long) {
    loose_.push_back(&channel);
    return;
  }
  (channel.first->is_part ? channel.to->channels_of_parts : channel.to->channels).insert(&channel);
  waiting_.insert(channel.to);
}

// REQUIRES: its first message and its urgency are as when it was queued.
void Turns::take_from_queue(Channel& channel) noexcept {
  if (!channel.first->is_long) {
    std::erase(loose_, &channel);
    return;
  }
  (channel.first->is_part ? channel.to->channels_of_parts : channel.to->channels).erase(&channel);
  if (!channel.to->waits()) waiting_.erase(channel.to);
}

// The first of the channel, taken out.
Turn& Turns::pop(Channel& channel) noexcept {
  take_from_queue(channel);
  Turn& turn = *channel.first;
  channel.to->bytes_waiting -= turn.bytes;
  channel.first = std::exchange(turn.next, nullptr);
  turn.channel = nullptr;
  if (channel.first != nullptr) {
    queue(channel);
  } else {
    channels_.erase(ChannelKey(channel.key));
  }
  return turn;
}

// ---- a process -------------------------------------------------------------------------------

void Process::add(Turn& turn) noexcept {
  turn.earlier = std::exchange(last, &turn);
  (turn.earlier != nullptr ? turn.earlier->later : first) = &turn;
  ++under_way;
  bytes_under_way += turn.bytes;
}

// Searches from both ends, since most messages end in the order in which they went, or in reverse.
int Process::take(Turn& turn) noexcept {
  int steps = 0;
  const Turn* from_first = first;
  const Turn* from_last = last;
  for (; from_first != &turn && from_last != &turn; ++steps) {
    from_first = from_first->later;
    from_last = from_last->earlier;
  }
  const int place = from_first == &turn ? steps + 1 : under_way - steps;
  (turn.earlier != nullptr ? turn.earlier->later : first) = turn.later;
  (turn.later != nullptr ? turn.later->earlier : last) = turn.earlier;
  turn.earlier = turn.later = nullptr;
  --under_way;
  bytes_under_way -= turn.bytes;
  return place;
}

// A message at `place` has ended. After some were given up, this shows among how many the receiver
// chooses. Otherwise it says little: of two that share a link any may end first.
void Process::learn_order(const int place) noexcept {
  burst = 0;
  if (std::exchange(times_given_up, 0) != 0) {
    window = std::max(window, static_cast<double>(place));
  } else if (place <= overdue + 1 && under_way > overdue) {
    window -= window / 16;
  }
}

// One message alone, which may have waited for its receiver, changes the mean by half at most.
void Process::learn_pace(const Turn& turn, const Time now) noexcept {
  const double ended_bytes = static_cast<double>(turn.bytes);
  const double expected = time_of_late / bytes_of_late * ended_bytes;
  bytes_of_late += ended_bytes - bytes_of_late / 8;
  time_of_late += std::min(static_cast<double>(now - ended), 4 * expected) - time_of_late / 8;
}

}  // namespace imbrex::mpi::sends
