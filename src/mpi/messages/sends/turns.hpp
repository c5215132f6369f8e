// SPDX-License-Identifier: BSD-3-Clause
// The turns of messages: messages that wait because others to the same process are in flight, and
// the rules by which they go. Used by window.cpp; knows neither MPI nor tasks nor a clock.
// docs/design/sends.md has the argument.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "mpi/messages/sends/limits.hpp"

namespace imbrex::mpi::sends {

// Messages of one channel go in the order in which they came: MPI's order holds between them.
struct ChannelKey {
  const void* communicator = nullptr;
  int peer = 0;
  int tag = 0;  // one value for all where tags make no difference
  auto operator<=>(const ChannelKey&) const = default;
};

struct Channel;
struct Process;
struct CameBefore {
  [[nodiscard]] bool operator()(const Process* one, const Process* other) const noexcept;
};

// One message. It is a member of the object that it stands for, and is not moved.
struct Turn {
  // Set by the code that enters it.
  void* owner = nullptr;
  ChannelKey key;
  std::int64_t bytes = 0;
  bool is_long = false;    // otherwise it waits only for earlier messages of its channel
  bool of_collective = false;  // a part of a collective, of any size
  bool is_part = false;    // a large part of a collective: counts among the processes that get
                           // parts
  int urgency = 0;         // the larger goes first; then the earlier task, then the earlier message
  std::uint64_t task = 0;

  // Only Turns uses the rest.
  std::uint64_t sequence = 0;
  Process* to = nullptr;
  Channel* channel = nullptr;    // the channel in which it waits
  Turn* next = nullptr;    // the next one there
  Turn* earlier = nullptr;  // in flight to its process, in the order in which they went
  Turn* later = nullptr;
  Time began = 0;
  std::uint32_t term = 0;  // term of its process when it went; 0: it is not in flight
};

// Thread safety: none.
// Invariants:
//   (1) the first message of a channel is long, unless the channel is in `loose_`; a channel is
//       never empty.
//   (2) at most `each` messages to a process count, or `bytes` bytes in any number, and parts that
//       count go to `with_parts` processes, beside the learnt values of Process.
//   (3) a process whose counting messages have not moved for its patience has none that counts, and
//       its burst is twice the number in flight. So every waiting message goes after a bounded
//       time, as long as a thread calls next().
class Turns {
 public:
  void limit(const Limits& limits) noexcept { limits_ = limits; }

  // True: it goes now. False: it waits, and next() returns it. `process`: the destination of `key`,
  // the same for all communicators.
  [[nodiscard]] bool enter(Turn& turn, std::pair<const void*, int> process, Time now);
  // A waiting message that goes now, or null.
  [[nodiscard]] Turn* next(Time now) noexcept;
  // A message that has gone has ended.
  void ended(Turn& turn, Time now) noexcept;
  // Takes out a waiting message.
  void remove(Turn& turn) noexcept;
  // Whether messages wait there.
  [[nodiscard]] bool has_channel(const ChannelKey& key) const noexcept {
    return channels_.contains(key);
  }
  // Whether `turn` waits.
  [[nodiscard]] static bool waits(const Turn& turn) noexcept { return turn.channel != nullptr; }
  // A waiting message of that communicator and peer, which goes now whatever is in flight; null,
  // and -1, stand for all. Null if none waits.
  [[nodiscard]] Turn* force(const void* communicator, int peer) noexcept;

  [[nodiscard]] bool empty() const noexcept { return channels_.empty(); }
  // Calls visit(turn) for each waiting message.
  template <class Visit>
  void for_each(Visit visit) const;

 private:
  [[nodiscard]] bool has_room(const Process& process, const Turn& turn) const noexcept;
  void admit(Turn& turn, Time now) noexcept;
  [[nodiscard]] Channel* first_with_room(const Process& process) const noexcept;
  [[nodiscard]] Time patience(const Process& process) const noexcept;
  [[nodiscard]] Time longest_patience(const Process& process) const noexcept;
  void look_at_network(Time since, Time now) noexcept;
  void learn_network(Process& process, const Turn& turn) noexcept;
  [[nodiscard]] std::int64_t bytes_at_once(const Process& process) const noexcept;
  [[nodiscard]] bool is_at_rest(const Process& process, Time now) noexcept;
  void give_up_waiting(Process& process, Time now) noexcept;
  void look_at_patience(Time now) noexcept;
  void queue(Channel& channel) noexcept;
  void take_from_queue(Channel& channel) noexcept;
  Turn& pop(Channel& channel) noexcept;

  Limits limits_;
  std::uint64_t sequence_ = 0;
  std::map<ChannelKey, Channel> channels_;
  std::map<std::pair<const void*, int>, Process> processes_;
  // Processes with waiting channels. Not by address: a simulation is the same in every memory.
  std::set<Process*, CameBefore> waiting_;
  std::vector<Channel*> loose_;    // channels whose first message is short: it goes at once
  std::vector<Process*> with_parts_;  // processes to which counting parts are in flight
  Moved network_;               // at the last check
  Time looked_ = 0;             // time of the last check
  Time looked_before_ = 0;      // time of the check before
  Time network_moved_ = 0;      // time of the last of these checks that saw more bytes sent
};

// ---- what it is made of ----------------------------------------------------------------------

struct Channel {
  ChannelKey key;
  Process* to = nullptr;
  Turn* first = nullptr;
  Turn* last = nullptr;
  // The largest of all messages that have waited here since it was empty: a message is as urgent as
  // the messages behind it.
  int urgency = 0;
};

// The order of the channels that wait for one process: by urgency, then by their first messages.
struct GoesBefore {
  [[nodiscard]] bool operator()(const Channel* one, const Channel* other) const noexcept {
    if (one->urgency != other->urgency) return one->urgency > other->urgency;
    if (one->first->task != other->first->task) return one->first->task < other->first->task;
    return one->first->sequence < other->first->sequence;
  }
};

struct Process {
  void add(Turn& turn) noexcept;
  // Takes out a message in flight. Returns its place among these, from 1 on, by the time when they
  // went.
  [[nodiscard]] int take(Turn& turn) noexcept;
  void learn_order(int place) noexcept;
  void learn_pace(const Turn& turn, Time now) noexcept;
  [[nodiscard]] bool waits() const noexcept {
    return !channels.empty() || !channels_of_parts.empty();
  }

  std::size_t number = 0;                            // in the order of their first messages
  std::set<Channel*, GoesBefore> channels;           // waiting channels that do not begin with a
                                                     // part
  std::set<Channel*, GoesBefore> channels_of_parts;  // waiting channels that begin with a part
  std::int64_t bytes_waiting = 0;
  Turn* first = nullptr;              // of the messages in flight
  Turn* last = nullptr;
  int under_way = 0;
  std::int64_t bytes_under_way = 0;
  int count = 0;                      // number of counting messages in flight
  int parts = 0;                      // number of parts among these
  std::int64_t bytes = 0;             // number of bytes of these
  std::uint32_t term = 1;             // messages of an earlier term count no more
  int overdue = 0;                    // number of these that are still in flight
  Time ended = 0;                     // time when the first counting one went, or when one ended
                                      // last
  // Like `ended`; or the time when the wait for these was given up, or when the first began to
  // wait.
  Time moved = 0;
  int times_given_up = 0;             // since one ended
  // The number that may be in flight, at least: since the last were given up, and until one ends.
  int burst = 0;
  // `burst` for a receiver that takes messages in another order than they were sent: the place of a
  // message that ended then. It falls by a 16th with each message that ends in order.
  double window = 0;
  // The network of messages to the process. Networks other than TCP are fast, and have no share of
  // a link to give.
  enum class Network : std::uint8_t { unknown, tcp, other };
  Network network = Network::unknown;
  std::uint64_t sent_before = 0;      // over TCP, when the first in flight went, if it is unknown
  std::int64_t bytes_since = 0;       // of messages that have ended since
  int looks = 0;                      // checks that saw TCP move bytes
  // Nanoseconds a byte, the most of late: it falls by a 16th with each faster message. The first
  // messages seem to leave at once, into the system's buffers.
  double pace = 40;
  // The number of bytes that have ended of late, and their time. Initially the values of a fast
  // network, so that the first messages do not wait long.
  double bytes_of_late = 4 * 1024 * 1024;
  double time_of_late = 0.2 * 4 * 1024 * 1024;
};

template <class Visit>
void Turns::for_each(Visit visit) const {
  for (const auto& [key, channel] : channels_) {
    for (const Turn* turn = channel.first; turn != nullptr; turn = turn->next) visit(*turn);
  }
}

}  // namespace imbrex::mpi::sends
