// SPDX-License-Identifier: BSD-3-Clause
// Active messages between simulated ranks, and the transfers of long data: what the library's own
// protocols of distributed/ need of other ranks, in virtual time. Data of transfers are never
// copied: only their sizes count. For programs without tasks: broadcasts and work pools.
//
// Thread safety: none; one thread simulates.
// Invariants:
//   (1) messages from one rank to another arrive in their order, whatever their protocol.
//   (2) a rank handles one message at a time, each of which takes the overhead of the network.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "distributed/carrier/transfers.hpp"
#include "simulate/time/event_queue.hpp"
#include "simulate/engine/links.hpp"

namespace imbrex::simulate {

class Carriers {
 public:
  enum Protocol : std::uint8_t { data_protocol, wave_protocol, pool_protocol, protocols };
  // Receives the messages of one protocol on one rank.
  struct Handler {
    void (*receive)(void* object, int from, distributed::Bytes message) = nullptr;
    void* object = nullptr;
  };
  // When an idle worker of a rank handles a message that has just arrived: now, or later where it
  // naps between its polls. time_most if no worker is idle: the message waits for poll().
  struct Idle {
    Time (*next_poll)(void* object, int rank) = nullptr;
    void* object = nullptr;
  };

  Carriers(EventQueue& events, Links& links, int ranks);
  ~Carriers();
  Carriers(const Carriers&) = delete;
  Carriers& operator=(const Carriers&) = delete;

  [[nodiscard]] distributed::Transfers& end(int rank, Protocol protocol);
  void handle(int rank, Protocol protocol, const Handler& handler);
  void watch_idle(const Idle& idle) noexcept { idle_ = idle; }
  // A worker of `rank` handles what has arrived.
  void poll(int rank);
  // Whether poll() has something to do.
  [[nodiscard]] bool has_arrivals(const int rank) const noexcept {
    const Port& here = ports_[static_cast<std::size_t>(rank)];
    return !here.handles && !here.inbox.empty();
  }

  [[nodiscard]] std::int64_t messages() const noexcept { return messages_; }
  [[nodiscard]] std::int64_t messages_handled() const noexcept { return messages_handled_; }
  [[nodiscard]] double overhead() const noexcept { return overhead_sum_; }

 private:
  struct End;
  struct Packet {
    Transfer transfer;
    Carriers* carriers = nullptr;
    Packet* next = nullptr;              // message of the same channel
    Protocol protocol = data_protocol;
    bool has_arrived = false;
    std::vector<std::byte> message;      // else a transfer:
    int landing = -1;
    distributed::Ended sent = nullptr;   // tells the sender
    void* context = nullptr;
  };
  // Messages from one rank to another, in their order, that have not arrived.
  struct Channel {
    Packet* first = nullptr;
    Packet* last = nullptr;
  };
  struct Landed {
    distributed::Ended ended = nullptr;
    void* context = nullptr;
  };
  struct Port {
    std::array<Handler, protocols> handlers;
    std::deque<Packet*> inbox;
    std::unordered_map<int, Landed> landings;
    std::unordered_map<int, Channel> channels;  // by their sender; none is empty
    int last_landing = 0;
    Time busy_until = 0;    // of the processor that sends and handles messages
    bool handles = false;   // an event that handles the inbox is to come
    bool naps = false;      // an event that polls is to come
  };

  [[nodiscard]] Port& port(const int rank) noexcept {
    return ports_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] Packet& take_packet();
  [[nodiscard]] Time take_overhead(int rank);
  void send(int from, int to, Protocol protocol, distributed::Bytes head, distributed::Bytes body);
  [[nodiscard]] distributed::Landing offer(int rank, std::int64_t bytes,
                                           distributed::Ended ended, void* context);
  void deliver(int from, const distributed::Landing& landing, std::int64_t bytes,
               distributed::Ended ended, void* context);
  void start(Packet& packet);
  void arrived(Packet& packet);
  void into_inbox(int rank, Packet& packet);
  void poll_after_nap(int rank, Time when);
  void handle_all(int rank);
  void handle_one(int rank);
  void notify_sender(Packet& packet);

  EventQueue& events_;
  Links& links_;
  Idle idle_;
  std::vector<Port> ports_;
  std::vector<std::unique_ptr<End>> ends_;
  std::deque<Packet> memory_;
  std::vector<Packet*> free_;
  std::int64_t messages_ = 0;
  std::int64_t messages_handled_ = 0;
  double overhead_sum_ = 0;
};

}  // namespace imbrex::simulate
