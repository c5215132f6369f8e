// SPDX-License-Identifier: BSD-3-Clause
// Whose turn it is to be sent: messages that wait since others to the same process are under way,
// and the rules by which they go. Used by window.cpp; knows neither MPI nor tasks nor a clock.
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
  int tag = 0;  // the same for all where tags make no difference
  auto operator<=>(const ChannelKey&) const = default;
};

struct Channel;
struct Process;

// One message. It is a member of the object that it stands for, and is not moved.
struct Turn {
  // Set by whoever enters it.
  void* owner = nullptr;
  ChannelKey key;
  std::int64_t bytes = 0;
  bool is_long = false;    // else it waits only for those before it in its channel
  bool of_collective = false;  // a part of one, of any size
  bool is_part = false;    // a large one of a collective: counts among the processes that get some
  int urgency = 0;         // the larger goes first; then the earlier task, then who came first
  std::uint64_t task = 0;

  // The rest is that of Turns.
  std::uint64_t sequence = 0;
  Process* to = nullptr;
  Channel* channel = nullptr;    // where it waits
  Turn* next = nullptr;    // there
  Turn* earlier = nullptr;  // under way to its process, in the order in which they went
  Turn* later = nullptr;
  Time began = 0;
  std::uint32_t term = 0;  // of its process when it went; 0: it is not under way
};

// Thread safety: none.
// Invariants: (1) the first of a channel is long, unless that is in `loose_`; a channel is never
// empty; (2) at most `each` messages to a process count, or `bytes` bytes in any number, and parts
// that count go to `with_parts` processes, beside what Process has learnt; (3) a process whose
// messages that count have not moved for its patience has none that counts, and its burst is twice
// what is under way. By (3) whatever waits goes after a bounded time, as long as somebody calls
// next().
class Turns {
 public:
  void limit(const Limits& limits) noexcept { limits_ = limits; }

  // True: it goes now. False: it waits, and next() gives it. `process`: where `key` leads to, the
  // same for all communicators.
  [[nodiscard]] bool enter(Turn& turn, std::pair<const void*, int> process, Time now);
  // One that waited and goes now, or null.
  [[nodiscard]] Turn* next(Time now) noexcept;
  // One that has gone has come to its end.
  void ended(Turn& turn, Time now) noexcept;
  // Takes out one that waits.
  void remove(Turn& turn) noexcept;
  // Whether messages wait there.
  [[nodiscard]] bool has_channel(const ChannelKey& key) const noexcept {
    return channels_.contains(key);
  }
  // Whether `turn` waits.
  [[nodiscard]] static bool waits(const Turn& turn) noexcept { return turn.channel != nullptr; }
  // One of that communicator and peer that goes now, whatever is under way: null, and -1, stand for
  // all. Null if none of these waits.
  [[nodiscard]] Turn* force(const void* communicator, int peer) noexcept;

  [[nodiscard]] bool empty() const noexcept { return channels_.empty(); }
  // Calls visit(turn) for each that waits.
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
  std::set<Process*> waiting_;  // those that a channel waits for
  std::vector<Channel*> loose_;    // whose first is short: it goes at once
  std::vector<Process*> with_parts_;  // to which parts that count are under way
  Moved network_;               // when it was looked at last
  Time looked_ = 0;             // then
  Time looked_before_ = 0;      // the time before
  Time network_moved_ = 0;      // when it had sent more, at the last of these looks that saw that
};

// ---- what it is made of ----------------------------------------------------------------------

struct Channel {
  ChannelKey key;
  Process* to = nullptr;
  Turn* first = nullptr;
  Turn* last = nullptr;
  // The largest of all that have waited here since it was empty: a message is as urgent as what
  // must go behind it.
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
  // Takes out one that is under way. Its place among these, from 1 on, by when they went.
  [[nodiscard]] int take(Turn& turn) noexcept;
  void learn_order(int place) noexcept;
  void learn_pace(const Turn& turn, Time now) noexcept;
  [[nodiscard]] bool waits() const noexcept {
    return !channels.empty() || !channels_of_parts.empty();
  }

  std::set<Channel*, GoesBefore> channels;           // that wait, and begin with no part
  std::set<Channel*, GoesBefore> channels_of_parts;  // that wait, and begin with one
  std::int64_t bytes_waiting = 0;
  Turn* first = nullptr;              // of those under way
  Turn* last = nullptr;
  int under_way = 0;
  std::int64_t bytes_under_way = 0;
  int count = 0;                      // of messages under way that count
  int parts = 0;                      // of these
  std::int64_t bytes = 0;             // of these
  std::uint32_t term = 1;             // those that went in an earlier one count no more
  int overdue = 0;                    // how many of these are still under way
  Time ended = 0;                     // when the first that counts went, or any ended last
  // The same, or when it was given up to wait for these, or when the first began to wait.
  Time moved = 0;
  int times_given_up = 0;             // since any ended
  // So many may be under way, at least: since the last were given up, and until one ends.
  int burst = 0;
  // The same for a receiver that takes messages in another order than they were sent: the place
  // of one that ended then. It falls by a 16th with each message that ends in order.
  double window = 0;
  // What carries messages there. Other networks are fast, and have no share of a link to give.
  enum class Network : std::uint8_t { unknown, tcp, other };
  Network network = Network::unknown;
  std::uint64_t sent_before = 0;      // over TCP, when the first under way went, if it is unknown
  std::int64_t bytes_since = 0;       // of those that have ended since
  int looks = 0;                      // that saw TCP carry something
  // Nanoseconds a byte, the most of late: it falls by a 16th with each message that is faster. The
  // first ones seem to leave at once, into the system's buffers.
  double pace = 40;
  // Of late so many bytes have ended in so long. At first what a fast network does, so that the
  // first messages do not wait long.
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
