// SPDX-License-Identifier: BSD-3-Clause
// MPI_Send and MPI_Recv between the ranks of a simulation: matching by peer and tag, the eager and
// the rendezvous protocol, and the turns of long sends, which are the library's own
// (mpi/messages/sends/turns.hpp). A rank learns of an arrival only when it polls: rank.hpp
// (in this folder) says when that is.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "mpi/messages/sends/turns.hpp"
#include "simulate/time/event_queue.hpp"
#include "simulate/engine/links.hpp"
#include "simulate/engine/program.hpp"
#include "task/descriptor.hpp"

namespace imbrex::simulate {

using task::Task;

class PointToPoint {
 public:
  // Called when a message has arrived that the next poll() of a rank will find.
  struct Listener {
    void (*arrived)(void* object) = nullptr;
    void* object = nullptr;
  };

  PointToPoint(EventQueue& events, Links& links, int ranks);
  void listen(int rank, const Listener& listener);

  // The running `task` of `rank` calls MPI_Send, or MPI_Recv. False: it must be suspended until a
  // poll() returns it. `urgency`: of the task, by Policy::urgency_of().
  [[nodiscard]] bool send(int rank, Task& task, const TaskPlan& plan, int urgency);
  [[nodiscard]] bool receive(int rank, Task& task, const TaskPlan& plan);
  // Handles all arrived messages, and adds to `complete` the tasks that resume.
  void poll(int rank, std::vector<Task*>& complete);
  // Whether poll() has something to do.
  [[nodiscard]] bool has_arrivals(const int rank) const noexcept {
    return !port(rank).inbox.empty();
  }
  // A line for each receive and each send of `rank` that waits.
  [[nodiscard]] std::vector<std::string> describe_waiting(int rank) const;

  [[nodiscard]] std::int64_t messages() const noexcept { return messages_; }
  [[nodiscard]] std::int64_t messages_received() const noexcept { return messages_received_; }

 private:
  struct Message {
    Transfer transfer;
    PointToPoint* mpi = nullptr;
    Task* sender = nullptr;       // suspended
    Task* receiver = nullptr;     // suspended
    int tag = 0;
    std::uint32_t follows = 0;    // TaskPlan::follows
    bool is_followed = false;
    int ends = 0;                 // ranks that are not done with it
    bool is_eager = false;
    bool has_turn = false;        // long: sends::Turns counts it until it is sent
    mpi::sends::Turn turn;
  };
  enum class Step : std::uint8_t {
    announced,  // to the receiver: a rendezvous
    answered,   // to the sender: it may send the data
    arrived,    // to the receiver: the data
    sent        // to the sender: the data have left
  };
  struct Arrival {
    Step step;
    Message* message;
  };
  // Messages, or receives, of one peer and tag that have met no partner. One of the two is empty.
  struct Channel {
    std::deque<Message*> unexpected;
    std::deque<Task*> posted;
  };
  struct Port {
    PointToPoint* mpi = nullptr;
    int rank = 0;
    Listener listener;
    std::deque<Arrival> inbox;
    std::unordered_map<std::uint64_t, Channel> channels;
    mpi::sends::Turns turns;
    bool looks = false;  // a timer calls next() of the turns
  };

  static constexpr std::int64_t long_bytes = 65536;     // IMBREX_SENDS_ABOVE
  static constexpr Time time_between_looks = 200'000;   // at turns, where nothing else arrives

  [[nodiscard]] Port& port(const int rank) noexcept {
    return ports_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] const Port& port(const int rank) const noexcept {
    return ports_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] Message& take_message();
  void leave(Message& message) noexcept;  // one of its ranks is done with it
  void deliver_at(Time when, Step step, Message& message);
  void deliver(Step step, Message& message);
  void act(Port& here, const Arrival& arrival, std::vector<Task*>& complete);
  void go(Message& message);
  void answer(Message& message);
  void start_transfer(Message& message);
  void send_data(Message& message);
  void data_left(const Message& message);
  [[nodiscard]] Task* take_posted(Port& here, const Message& message);
  void look_for_turns(Port& here, std::vector<Task*>& complete);
  void look_later(Port& here);
  template <class Call>
  auto with_network(Port& here, Call call);

  EventQueue& events_;
  Links& links_;
  std::vector<Port> ports_;
  std::deque<Message> memory_;     // of all messages that were ever in flight at once
  std::vector<Message*> free_;
  // The message that waits until the data of another one have left, by the number of that one.
  // Null: they have left, and the message that follows has not come so far.
  std::unordered_map<std::uint32_t, Message*> in_turn_;
  std::int64_t messages_ = 0;
  std::int64_t messages_received_ = 0;
};

}  // namespace imbrex::simulate
