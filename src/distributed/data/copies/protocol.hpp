// SPDX-License-Identifier: BSD-3-Clause
// The inside of Broadcasts: copies that leave this rank, copies that arrive, and the messages
// between the two ends of a copy. docs/design/broadcasts.md explains the protocol.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "distributed/data/copies/broadcasts.hpp"

namespace imbrex::distributed {

enum class DataMessage : std::uint8_t {
  copy,    // to a child: its part of the list, and the bytes, or their number and a request to land
  land,    // to the parent: landings for the next segments, in their order
  back,    // to the parent: no reader is here yet, and no room: pass the list on, wait for `land`
  stop,    // to the parent: no more landings come, end the present ones; the text says why
  failed,  // to a child: its data do not come; the text says why
  take,    // to itself: a reader has come for data that wait at the parent
  opened,  // to itself: a space is open for which messages were kept
  closed,  // to itself: a space was closed with copies in flight
  given_up,  // to itself: missing data of a space will not come
  left       // an exception has ended the space on the sending rank
};

// A copy on its way to one rank: the same name at both ends.
struct CopyName {
  DatumName datum;
  std::int32_t root = -1;
  std::uint32_t ticket = 0;
  friend bool operator==(const CopyName&, const CopyName&) = default;
};
struct HashCopyName {
  [[nodiscard]] std::size_t operator()(const CopyName& name) const noexcept {
    std::uint64_t hash = name.datum.space;
    for (const std::uint64_t part : {name.datum.datum, std::uint64_t{name.ticket},
                                     static_cast<std::uint64_t>(name.root)}) {
      hash = (hash ^ part) * 0x9e3779b97f4a7c15u;  // Fibonacci hashing
      hash ^= hash >> 32;
    }
    return hash;
  }
};

struct Passing;
struct Arrival;

// A copy that leaves this rank. Once its header has been sent, only handlers change its state,
// under the protocol's lock.
struct Child {
  enum class State : std::uint8_t {
    waits,      // the copies in flight to that rank are at their limit
    offered,    // the header was sent
    postponed,  // there is no reader there, and no room: the rank withholds its landings
    accepted,   // landings come, and segments go
    failing,    // it was told that the data do not come; its `stop` is awaited
    stopping,   // no more landings come; the present ones are being ended
    done
  };
  Passing& passing;
  const Stop to;
  const std::vector<Stop> list;    // list that goes along
  const std::pair<std::int64_t, std::int64_t> turn;  // the first turn_of() that depends on it
  const std::uint64_t number;      // in the order of their creation
  State state = State::waits;
  bool has_answered = false;       // the list is passed on there, or has come back
  std::vector<Landing> landings{};   // not used from `next_landing` on
  std::size_t next_landing = 0;
  std::size_t started = 0;         // segments
  std::size_t sent = 0;            // segments that have left
  std::size_t under_way = 0;       // transfers, empty ones included

  [[nodiscard]] bool has_landing() const noexcept { return next_landing < landings.size(); }
  [[nodiscard]] int rank() const noexcept { return static_cast<int>(to.rank); }
};

// Data of which this rank sends copies, as root or because they have come here with a list.
struct Passing {
  DatumName datum;
  int root = -1;
  TreeKind kind = TreeKind::chain;
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::size_t segment = 0;      // bytes of each but the last
  std::size_t segments = 1;
  std::size_t here = 0;         // number of segments that have arrived in order
  std::size_t under_way = 0;    // segments
  std::vector<std::unique_ptr<Child>> children;
  std::size_t open = 0;         // children that are not done, and the send() that makes them
  std::string why;              // not empty: the data do not come here
  std::exception_ptr error;     // the first error, at the root
  Ended ended = nullptr;        // at the root
  void* context = nullptr;
  Arrival* arrival = nullptr;   // elsewhere

  [[nodiscard]] Bytes part(const std::size_t at) const noexcept {
    const Bytes all(data, bytes);
    return all.subspan(at * segment, std::min(segment, bytes - at * segment));
  }
};

// A copy that comes to this rank: its reader is inserted, or its header has arrived, or both.
struct Arrival {
  // The number of segments that may be offered at once, and arrive in any order: the bits of
  // `ahead`.
  static constexpr unsigned landings_ahead = 32;

  enum class Stage : std::uint8_t {
    awaited,    // no header has come
    postponed,  // it waits at the parent for a reader
    landing,    // segments come
    here,       // all segments have arrived
    failed
  };
  const CopyName name;
  Stage stage = Stage::awaited;
  bool has_reader = false;
  bool notified = false;     // the reader has had its `arrived` callback
  bool notifying = false;    // that callback runs
  bool early = false;        // counts among the data stored here without a reader
  bool stopped = false;      // the parent was told that no more landings come
  bool orphan = false;       // the space was closed: no reader will ask for it
  int held = 0;              // number of threads that have still to notify_reader(): it stays
  int parent = -1;
  std::uint64_t token = 0;   // identifies the parent's Child
  std::size_t expected = 0;  // bytes
  Incoming incoming{};
  Buffer* buffer = nullptr;  // one reference
  std::size_t offered = 0;   // segments
  std::size_t landings = 0;  // number that have not ended
  std::uint32_t ahead = 0;   // bit i: segment passing.here + i has come
  std::exception_ptr error{};
  Passing passing{};
};

// The head of a message; lists and landings follow, then text or data.
struct DataHead {
  DatumName datum;
  std::uint64_t token = 0;    // a Child of the parent; 0: no answer is expected
  std::uint64_t bytes = 0;    // of the datum
  std::uint64_t segment = 0;
  std::int32_t root = -1;
  std::uint32_t ticket = 0;
  std::uint16_t count = 0;    // number of stops or landings
  DataMessage message = DataMessage::copy;
  TreeKind kind = TreeKind::chain;
  bool is_inline = false;     // copy: the data follow
  bool took_list = false;     // stop: the child tells its list that the data do not come
};

// Invariants:
//   (1) only handlers start transfers and answer, one at a time; other threads only make a Passing,
//       give readers, and send headers, to children that no other thread uses before that.
//   (2) a child that was offered, and not answered by `back`, counts in its rank's `offers`; it
//       ends without waiting for anything on this rank except transfers with a landing.
//   (3) an Arrival or Passing is freed when nothing refers to it: no landing or transfer in flight,
//       no child, no thread that holds it.
class Broadcasts::Protocol {
 public:
  Protocol(Transfers& transfers, const BroadcastOptions& options);
  ~Protocol();
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;

  void open_space(std::uint64_t space, std::string_view name);
  [[nodiscard]] std::exception_ptr close_space(std::uint64_t space) noexcept;
  void give_up_space(std::uint64_t space, std::string_view why);
  void leave_space(std::uint64_t space, std::span<const int> ranks, std::string_view why);
  void set_nodes(std::uint64_t space, const std::vector<int>& node_of_rank);
  void send(const DatumName& datum, const std::vector<Recipient>& to, Bytes data, Ended ended,
            void* context);
  void send_failure(const DatumName& datum, const std::vector<Recipient>& to,
                    const std::string& why);
  void expect(const CopyName& name, std::size_t bytes, const Incoming& incoming);
  void receive(int from, Bytes message) noexcept;
  [[nodiscard]] Counters counters() const noexcept;
  [[nodiscard]] std::size_t under_way(std::uint64_t space) const noexcept;
  void describe(std::uint64_t space, std::size_t lines_max, std::string& text) const;
  void describe(std::size_t lines_max, std::string& text) const;

 private:
  struct Space {
    enum class State : std::uint8_t {
      unknown,  // messages for it are kept
      opening,  // the kept messages are being handled
      open,
      closed    // its name stays, for messages that come late
    };
    State state = State::unknown;
    std::string name;
    std::string given_up;  // not empty: why missing data will not come
    Nodes nodes;
    std::vector<std::pair<int, std::vector<std::byte>>> kept;
  };
  struct Transfer;  // to a child
  struct Landed;    // a segment that arrives
  // A rank that this rank sends copies to.
  struct First {
    [[nodiscard]] bool operator()(const Child* a, const Child* b) const noexcept {
      return std::pair(a->turn, a->number) < std::pair(b->turn, b->number);
    }
  };
  struct Peer {
    std::size_t under_way = 0;                // segments
    std::size_t offers = 0;                   // copies: see (2)
    std::set<Child*, First> waiting;          // for their turn to be offered
    std::set<Child*, First> accepted;         // with landings
  };
  // The actions that follow once the lock is free.
  struct Message {
    int to = -1;
    std::vector<std::byte> head;
    Bytes data{};
    Child* child = nullptr;                   // the child whose header it is
  };
  struct Work {
    std::vector<Message> messages;
    std::vector<std::unique_ptr<Transfer>> transfers;
    std::vector<Arrival*> offers;             // arrivals that need landings offered
    std::vector<Passing*> ended;              // at the root
    std::vector<Arrival*> held;
  };

  // Copies that leave.
  void add_children(Passing& passing, std::span<const Stop> list, Work& work)
      IMBREX_REQUIRES(mutex_);
  void ask(Child& child, bool is_inline, Work& work) IMBREX_REQUIRES(mutex_);
  void ask_next(Peer& peer, Work& work) IMBREX_REQUIRES(mutex_);
  void pump(Peer& peer, Work& work) IMBREX_REQUIRES(mutex_);
  void pump(Passing& passing, Work& work) IMBREX_REQUIRES(mutex_);
  void end_landings(Child& child, Work& work) IMBREX_REQUIRES(mutex_);
  void set_state(Child& child, Child::State state, Work& work) IMBREX_REQUIRES(mutex_);
  void close_part(Passing& passing, Work& work) IMBREX_REQUIRES(mutex_);
  void fail(Child& child, const std::string& why, Work& work) IMBREX_REQUIRES(mutex_);
  void note_error(Child& child, const std::string& why) IMBREX_REQUIRES(mutex_);
  void send_failed(const Passing& passing, std::span<const Stop> list, const std::string& why,
                   Work& work) IMBREX_REQUIRES(mutex_);
  void on_land(Child& child, std::span<const Landing> landings);
  void on_back(Child& child);
  void on_stop(Child& child, const DataHead& head, const std::string& why);
  void sent(std::unique_ptr<Transfer> transfer, const std::exception_ptr& error) noexcept;

  // Copies that come.
  [[nodiscard]] Arrival& arrival(const CopyName& name) IMBREX_REQUIRES(mutex_);
  [[nodiscard]] bool has_room(int from, std::size_t bytes) const IMBREX_REQUIRES(mutex_);
  void set_early(Arrival& arrival, bool early) IMBREX_REQUIRES(mutex_);
  void take(Arrival& arrival, const DataHead& head, std::span<const Stop> list, Bytes data,
            Work& work) IMBREX_REQUIRES(mutex_);
  void accept(Arrival& arrival, std::span<const Stop> list, Work& work) IMBREX_REQUIRES(mutex_);
  void fail(Arrival& arrival, const std::string& why, Work& work) IMBREX_REQUIRES(mutex_);
  void answer(Arrival& arrival, DataMessage message, const std::string& text, Work& work)
      IMBREX_REQUIRES(mutex_);
  void hold(Arrival& arrival, Work& work) IMBREX_REQUIRES(mutex_);
  void on_copy(int from, const DataHead& head, std::span<const Stop> list, Bytes data);
  void on_failed(int from, const DataHead& head, const std::string& why);
  void on_take(const CopyName& name);
  void on_opened(std::uint64_t space);
  void on_closed(std::uint64_t space);
  void on_given_up(std::uint64_t space);
  void on_left(std::uint64_t space, const std::string& why);
  void offer(Arrival& arrival);
  void landed(const Landed& landed, const std::exception_ptr& error) noexcept;
  void notify_reader(Arrival& arrival) noexcept;

  // Both.
  [[nodiscard]] bool keeps(int from, const DataHead& head, Bytes message);
  void handle(int from, const DataHead& head, Bytes rest);
  void run(Work& work) noexcept;
  void send(Message& message) noexcept;
  [[nodiscard]] Message message(DataMessage what, int to, const CopyName& name) const;
  [[nodiscard]] Message failed_message(const Passing& passing, const Stop& to,
                                       const std::string& why) const;
  template <class Change>
  static void change(Message& message, Change change);  // its head
  static void answer_to(Message& message, std::uint64_t token, std::span<const Landing> landings);
  static void answer_to(Message& message, std::uint64_t token, const std::string& text);

  // Texts.
  [[nodiscard]] std::string text_of(const DatumName& datum) const IMBREX_REQUIRES(mutex_);
  [[nodiscard]] std::string text_of(const Arrival& arrival) const IMBREX_REQUIRES(mutex_);
  // `wanted`: whether a space is to be described, by its name.
  template <class Wanted>
  void describe_those(std::size_t lines_max, std::string& text, Wanted wanted) const
      IMBREX_REQUIRES(mutex_);
  void describe_locked(std::uint64_t space, std::size_t lines_max, std::string& text) const
      IMBREX_REQUIRES(mutex_);

  Transfers& transfers_;
  const BroadcastOptions options_;
  mutable std::mutex mutex_;  // held for a few instructions; over no call of other code
  std::unordered_map<std::uint64_t, Space> spaces_ IMBREX_GUARDED_BY(mutex_);
  std::unordered_map<int, Peer> peers_ IMBREX_GUARDED_BY(mutex_);
  std::unordered_map<CopyName, std::unique_ptr<Arrival>, HashCopyName> arrivals_
      IMBREX_GUARDED_BY(mutex_);
  // Copies whose parents were told to stop, so that they are told once: few, unless transfers fail
  // often.
  std::unordered_set<CopyName, HashCopyName> lost_ IMBREX_GUARDED_BY(mutex_);
  std::unordered_set<Passing*> roots_ IMBREX_GUARDED_BY(mutex_);
  std::unordered_map<int, std::size_t> early_from_ IMBREX_GUARDED_BY(mutex_);  // payloads
  std::size_t early_bytes_ IMBREX_GUARDED_BY(mutex_) = 0;
  std::uint64_t children_ IMBREX_GUARDED_BY(mutex_) = 0;  // number made so far
  Counters counters_ IMBREX_GUARDED_BY(mutex_);
};

// The text of an exception, without the prefix "imbrex: ".
[[nodiscard]] std::string what_of(const std::exception_ptr& error);

}  // namespace imbrex::distributed
