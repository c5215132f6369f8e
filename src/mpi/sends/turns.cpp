// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/sends/turns.hpp"

#include <algorithm>

namespace imbrex::mpi::sends {

namespace {

constexpr Time expected_most = 2'000'000'000;
// What is under way may share its link with messages to other processes.
constexpr double slower = 4;
constexpr std::int64_t bytes_of_pace = 65536;  // of what is shorter the time is mostly latency
constexpr int at_once_least = 16;
constexpr int at_once_most = 4096;

}  // namespace

bool Turns::enter(Turn& turn, const std::pair<const void*, int> process, const Time now) {
  turn.sequence = ++sequence_;
  const auto there = lanes_.find(turn.key);
  if (there == lanes_.end() && !turn.is_long) return true;
  turn.to = &processes_[process];
  if (there == lanes_.end()) {
    const bool waits = !turn.to->lanes.empty() || (turn.is_part && waiting_.contains(turn.to));
    if (!waits && admit(turn, now)) return true;
    Lane& lane = lanes_[turn.key];
    lane = {.key = turn.key, .to = turn.to, .first = &turn, .last = &turn, .urgency = turn.urgency};
    turn.lane = &lane;
    queue(lane);
    return false;
  }
  Lane& lane = there->second;
  turn.lane = &lane;
  lane.last->next = &turn;
  lane.last = &turn;
  if (turn.urgency > lane.urgency) {
    take_from_queue(lane);
    lane.urgency = turn.urgency;
    queue(lane);
  }
  return false;
}

Turn* Turns::next(const Time now) noexcept {
  if (!loose_.empty()) return &pop(*loose_.back());
  if (waiting_.empty()) return nullptr;
  look_at_patience(now);
  // Of the lanes that are first at their processes, the first for which there is room.
  Lane* best = nullptr;
  for (const Process* const process : waiting_) {
    Lane* const lane = first_with_room(*process);
    if (lane != nullptr && (best == nullptr || GoesBefore()(lane, best))) best = lane;
  }
  if (best == nullptr) return nullptr;
  Turn& turn = pop(*best);
  (void)admit(turn, now);  // there is room, or it goes at once
  return &turn;
}

void Turns::ended(Turn& turn, const Time now) noexcept {
  if (turn.term == 0) return;
  Process& process = *turn.to;
  const bool counted = turn.term == process.term;
  turn.term = 0;
  process.moved = now;
  if (!counted) {  // how long it took says more of us than of the link
    --process.overdue;
    return;
  }
  const double pace = static_cast<double>(now - turn.began) /
                      static_cast<double>(std::max(turn.bytes, bytes_of_pace));
  process.pace = std::max(pace, process.pace * 15 / 16);
  --process.count;
  if (turn.is_part && --process.parts == 0) std::erase(with_parts_, &process);
  process.bytes -= turn.bytes;
  --count_;
  bytes_ -= turn.bytes;
  if (process.overdue > 0) {  // a later one was received first: waiting would have been in vain
    process.at_once = process.at_once_next;
    process.at_once_next = std::min(2 * process.at_once_next, at_once_most);
  } else if (process.at_once_next > at_once_least) {
    --process.at_once_next;
  }
}

void Turns::remove(Turn& turn) noexcept {
  Lane& lane = *turn.lane;
  if (lane.first == &turn) {
    pop(lane);
    return;
  }
  Turn* before = lane.first;
  while (before->next != &turn) before = before->next;
  before->next = turn.next;
  if (lane.last == &turn) lane.last = before;
  turn.next = nullptr;
  turn.lane = nullptr;
}

Turn* Turns::force(const void* const communicator, const int peer) noexcept {
  if (communicator == nullptr) return lanes_.empty() ? nullptr : &pop(lanes_.begin()->second);
  const LaneKey first{communicator, peer < 0 ? 0 : peer, INT32_MIN};
  const auto found = lanes_.lower_bound(first);
  if (found == lanes_.end() || found->first.communicator != communicator ||
      (peer >= 0 && found->first.peer != peer)) {
    return nullptr;
  }
  return &pop(found->second);
}

// ---- the parts -------------------------------------------------------------------------------

bool Turns::has_room(const Process& process, const Turn& turn) const noexcept {
  const bool here = process.count < limits_.each || process.bytes + turn.bytes <= limits_.bytes;
  const bool in_all = limits_.all == 0 || count_ < limits_.all ||
                      bytes_ + turn.bytes <= limits_.bytes;
  const bool among_few = !turn.is_part || process.parts > 0 ||
                         std::ssize(with_parts_) < limits_.with_parts;
  return here && in_all && among_few;
}

// A message beside collectives does not wait until there is room for a part.
Lane* Turns::first_with_room(const Process& process) const noexcept {
  Lane* found = nullptr;
  for (const auto* const lanes : {&process.lanes, &process.lanes_of_parts}) {
    if (lanes->empty()) continue;
    Lane* const lane = *lanes->begin();
    const bool goes = process.at_once > 0 || has_room(process, *lane->first);
    if (goes && (found == nullptr || GoesBefore()(lane, found))) found = lane;
  }
  return found;
}

// True: a long message that waits in no lane goes now.
bool Turns::admit(Turn& turn, const Time now) noexcept {
  Process& process = *turn.to;
  if (process.at_once > 0) {
    --process.at_once;
    return true;
  }
  if (!has_room(process, turn)) return false;
  if (process.count == 0) process.moved = now;
  ++process.count;
  if (turn.is_part && process.parts++ == 0) with_parts_.push_back(&process);
  process.bytes += turn.bytes;
  ++count_;
  bytes_ += turn.bytes;
  turn.term = process.term;
  turn.began = now;
  return true;
}

// How long nothing may move before what is under way is taken for messages that wait for their
// receiver.
Time Turns::patience(const Process& process) const noexcept {
  const double expected = slower * process.pace * static_cast<double>(process.bytes);
  return limits_.patience +
         static_cast<Time>(std::min(expected, static_cast<double>(expected_most)));
}

// See (3).
void Turns::give_up_waiting(Process& process, const Time now) noexcept {
  if (process.count == 0 || now - process.moved <= patience(process)) return;
  count_ -= process.count;
  bytes_ -= process.bytes;
  process.overdue += process.count;
  process.count = 0;
  if (std::exchange(process.parts, 0) != 0) std::erase(with_parts_, &process);
  process.bytes = 0;
  if (++process.term == 0) process.term = 1;
}

void Turns::look_at_patience(const Time now) noexcept {
  if (limits_.all == 0) {
    for (Process* const process : waiting_) give_up_waiting(*process, now);
    for (std::size_t i = with_parts_.size(); i-- > 0;) give_up_waiting(*with_parts_[i], now);
  } else {  // one that nothing waits for may take the room of others
    for (auto& [key, process] : processes_) give_up_waiting(process, now);
  }
}

void Turns::queue(Lane& lane) noexcept {
  if (!lane.first->is_long) {
    loose_.push_back(&lane);
    return;
  }
  (lane.first->is_part ? lane.to->lanes_of_parts : lane.to->lanes).insert(&lane);
  waiting_.insert(lane.to);
}

// REQUIRES: its first and its urgency are as when it was queued.
void Turns::take_from_queue(Lane& lane) noexcept {
  if (!lane.first->is_long) {
    std::erase(loose_, &lane);
    return;
  }
  (lane.first->is_part ? lane.to->lanes_of_parts : lane.to->lanes).erase(&lane);
  if (lane.to->lanes.empty() && lane.to->lanes_of_parts.empty()) waiting_.erase(lane.to);
}

// The first of the lane, taken out.
Turn& Turns::pop(Lane& lane) noexcept {
  take_from_queue(lane);
  Turn& turn = *lane.first;
  lane.first = std::exchange(turn.next, nullptr);
  turn.lane = nullptr;
  if (lane.first != nullptr) {
    queue(lane);
  } else {
    lanes_.erase(LaneKey(lane.key));
  }
  return turn;
}

}  // namespace imbrex::mpi::sends
