// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/engine/point_to_point.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace imbrex::simulate {

namespace {

[[nodiscard]] std::uint64_t key_of(const int peer, const int tag) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(peer)) << 32 |
         static_cast<std::uint32_t>(tag);
}

// The key of the channel of a message: its number decides alone if it has one.
[[nodiscard]] std::uint64_t key_of(const TaskPlan& plan) noexcept {
  return key_of(plan.peer, plan.message != 0 ? static_cast<int>(plan.message) : plan.tag);
}

// Limits::network takes no argument, so the rank that asks stands here. One thread simulates.
Links::Traffic asking;

mpi::Moved moved_by_asking(bool) noexcept {
  return {.sent = asking.arrived, .received = 0, .queued = asking.asked != asking.arrived};
}

}  // namespace

PointToPoint::PointToPoint(EventQueue& events, Links& links, const int ranks)
    : events_(events), links_(links), ports_(static_cast<std::size_t>(ranks)) {
  mpi::sends::Limits limits;
  // A network whose sender answers is TCP, and the library sees the bytes that TCP has moved.
  if (links.parameters().sender_answers) limits.network = &moved_by_asking;
  for (int rank = 0; rank < ranks; ++rank) {
    port(rank).mpi = this;
    port(rank).rank = rank;
    port(rank).turns.limit(limits);
  }
}

void PointToPoint::listen(const int rank, const Listener& listener) {
  port(rank).listener = listener;
}

template <class Call>
auto PointToPoint::with_network(Port& here, Call call) {
  asking = links_.traffic_of(here.rank);
  return call(here.turns);
}

// ---- the calls -------------------------------------------------------------------------------

bool PointToPoint::send(const int rank, Task& task, const TaskPlan& plan, const int urgency) {
  Message& message = take_message();
  message.transfer.from = rank;
  message.transfer.to = plan.peer;
  message.transfer.bytes = plan.bytes;
  message.tag = plan.message != 0 ? static_cast<int>(plan.message) : plan.tag;
  message.follows = plan.follows;
  message.is_followed = plan.is_followed;
  message.ends = 2;
  message.is_eager = plan.bytes <= links_.parameters().eager_bytes;
  message.has_turn = plan.bytes > long_bytes;
  ++messages_;
  Port& here = port(rank);
  mpi::sends::Turn& turn = message.turn;
  turn = {};
  turn.owner = &message;
  turn.key = {this, plan.peer, plan.tag};
  turn.bytes = plan.bytes;
  turn.is_long = message.has_turn;
  turn.urgency = urgency;
  turn.task = task.id;
  bool goes = true;
  if (message.has_turn || here.turns.has_channel(turn.key)) {
    goes = with_network(here, [&](mpi::sends::Turns& turns) {
      return turns.enter(turn, {this, plan.peer}, events_.now());
    });
  }
  if (!goes || !message.is_eager) message.sender = &task;
  const bool completes = message.sender == nullptr;
  if (goes) go(message);
  if (!goes) look_later(here);
  return completes;
}

// The message goes to the network. The receiver of an eager one hears of it with the data.
void PointToPoint::go(Message& message) {
  if (message.is_eager) {
    start_transfer(message);
    if (!message.has_turn) leave(message);
  } else {
    deliver_at(events_.now() + links_.latency(message.transfer.from, message.transfer.to),
               Step::announced, message);
  }
}

bool PointToPoint::receive(const int rank, Task& task, const TaskPlan& plan) {
  Port& here = port(rank);
  const std::uint64_t key = key_of(plan);
  Channel& channel = here.channels[key];
  if (channel.unexpected.empty()) {
    channel.posted.push_back(&task);
    return false;
  }
  Message& message = *channel.unexpected.front();
  channel.unexpected.pop_front();
  if (channel.unexpected.empty()) here.channels.erase(key);
  if (message.is_eager) {
    ++messages_received_;
    leave(message);
    return true;
  }
  message.receiver = &task;
  answer(message);
  return false;
}

// The receiver has matched an announcement: the data may come.
void PointToPoint::answer(Message& message) {
  const Time when = events_.now() + links_.latency(message.transfer.to, message.transfer.from);
  if (links_.parameters().sender_answers) {
    deliver_at(when, Step::answered, message);
    return;
  }
  events_.at(when, [](void* const its_message, std::uint64_t) {
    auto& asked = *static_cast<Message*>(its_message);
    asked.mpi->start_transfer(asked);
  }, &message, 0);
}

void PointToPoint::start_transfer(Message& message) {
  if (message.follows == 0) return send_data(message);
  const auto [before, waits] = in_turn_.try_emplace(message.follows, &message);
  if (waits) return;
  in_turn_.erase(before);
  send_data(message);
}

void PointToPoint::data_left(const Message& message) {
  const auto number = static_cast<std::uint32_t>(message.tag);
  const auto [after, is_first] = in_turn_.try_emplace(number, nullptr);
  if (is_first) return;
  Message& next = *after->second;
  in_turn_.erase(after);
  send_data(next);
}

void PointToPoint::send_data(Message& message) {
  message.transfer.left = nullptr;
  if (message.is_followed) {
    message.transfer.left = [](Transfer& transfer) {
      auto& here = reinterpret_cast<Message&>(transfer);  // its first member
      here.mpi->data_left(here);
    };
  }
  message.transfer.arrived = [](Transfer& transfer) {
    auto& here = reinterpret_cast<Message&>(transfer);  // its first member
    PointToPoint& mpi = *here.mpi;
    if (here.has_turn || !here.is_eager) {
      mpi.deliver_at(mpi.events_.now() + mpi.links_.latency(transfer.to, transfer.from),
                     Step::sent, here);
    }
    mpi.deliver(Step::arrived, here);
  };
  static_assert(offsetof(Message, transfer) == 0);
  links_.start(message.transfer);
}

// ---- progress --------------------------------------------------------------------------------

void PointToPoint::deliver_at(const Time when, const Step step, Message& message) {
  events_.at(when, [](void* const its_message, const std::uint64_t its_step) {
    auto& here = *static_cast<Message*>(its_message);
    here.mpi->deliver(static_cast<Step>(its_step), here);
  }, &message, static_cast<std::uint64_t>(step));
}

void PointToPoint::deliver(const Step step, Message& message) {
  const bool to_receiver = step == Step::announced || step == Step::arrived;
  Port& there = port(to_receiver ? message.transfer.to : message.transfer.from);
  there.inbox.push_back({step, &message});
  if (there.listener.arrived != nullptr) there.listener.arrived(there.listener.object);
}

void PointToPoint::poll(const int rank, std::vector<Task*>& complete) {
  Port& here = port(rank);
  while (!here.inbox.empty()) {
    const Arrival arrival = here.inbox.front();
    here.inbox.pop_front();
    act(here, arrival, complete);
  }
  look_for_turns(here, complete);
}

void PointToPoint::act(Port& here, const Arrival& arrival, std::vector<Task*>& complete) {
  Message& message = *arrival.message;
  switch (arrival.step) {
    case Step::announced:
      message.receiver = take_posted(here, message);
      if (message.receiver != nullptr) answer(message);
      break;
    case Step::answered:
      start_transfer(message);
      break;
    case Step::arrived:
      if (message.is_eager) message.receiver = take_posted(here, message);
      if (message.receiver == nullptr) break;  // it has become an unexpected message
      complete.push_back(std::exchange(message.receiver, nullptr));
      ++messages_received_;
      leave(message);
      break;
    case Step::sent:
      if (message.has_turn) {
        with_network(here, [&](mpi::sends::Turns& turns) {
          turns.ended(message.turn, events_.now());
        });
      }
      if (message.sender != nullptr) complete.push_back(std::exchange(message.sender, nullptr));
      leave(message);
      break;
  }
}

// The receive that waits for `message`; null, and the message is unexpected, if there is none.
Task* PointToPoint::take_posted(Port& here, const Message& message) {
  const std::uint64_t key = key_of(message.transfer.from, message.tag);
  Channel& channel = here.channels[key];
  if (channel.posted.empty()) {
    channel.unexpected.push_back(const_cast<Message*>(&message));
    return nullptr;
  }
  Task* const task = channel.posted.front();
  channel.posted.pop_front();
  if (channel.posted.empty()) here.channels.erase(key);
  return task;
}

void PointToPoint::look_for_turns(Port& here, std::vector<Task*>& complete) {
  while (!here.turns.empty()) {
    mpi::sends::Turn* const turn = with_network(
        here, [&](mpi::sends::Turns& turns) { return turns.next(events_.now()); });
    if (turn == nullptr) return look_later(here);
    auto& message = *static_cast<Message*>(turn->owner);
    if (message.is_eager) complete.push_back(std::exchange(message.sender, nullptr));
    go(message);
  }
}

// Messages whose turn has not come leave after a bounded time, as long as a rank polls.
void PointToPoint::look_later(Port& here) {
  if (here.looks) return;
  here.looks = true;
  events_.at(events_.now() + time_between_looks, [](void* const its_port, std::uint64_t) {
    Port& waiting = *static_cast<Port*>(its_port);
    waiting.looks = false;
    if (waiting.turns.empty()) return;
    if (waiting.listener.arrived != nullptr) waiting.listener.arrived(waiting.listener.object);
    waiting.mpi->look_later(waiting);
  }, &here, 0);
}

// ---- messages --------------------------------------------------------------------------------

PointToPoint::Message& PointToPoint::take_message() {
  if (free_.empty()) {
    memory_.emplace_back().mpi = this;
    return memory_.back();
  }
  Message& message = *free_.back();
  free_.pop_back();
  return message;
}

void PointToPoint::leave(Message& message) noexcept {
  if (--message.ends == 0) free_.push_back(&message);
}

std::vector<std::string> PointToPoint::describe_waiting(const int rank) const {
  std::vector<std::string> lines;
  for (const auto& [key, channel] : port(rank).channels) {
    if (channel.posted.empty()) continue;
    lines.push_back(fmt::format("rank {} waits for a message from rank {} with tag {}", rank,
                                key >> 32, static_cast<std::uint32_t>(key)));
  }
  return lines;
}

}  // namespace imbrex::simulate
