// SPDX-License-Identifier: BSD-3-Clause
// The network between ranks, as LogGPS sees it (Ino et al., PPoPP 2001), with one thing that LogGPS
// leaves out: all ranks of a node share one NIC, in both directions. Carries
// bytes; knows neither MPI nor tasks. docs/design/simulator.md lists its simplifications.
//
// Thread safety: none.
// Invariants:
//   (1) the NIC of a node sends one chunk at a time, and receives one at a time.
//   (2) transfers that leave one NIC take turns by chunks, so they share it fairly.
//   (3) a transfer has at most `chunks_in_flight` chunks in the network: one that finds its
//       receiver busy gives its turn to the others, as TCP's window or a switch's credits would.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "simulate/time/event_queue.hpp"

namespace imbrex::simulate {

struct NetworkParameters {
  double latency_ns = 1000;          // L: of the first byte, between nodes
  double overhead_ns = 500;          // o: of a processor, for each message it sends or receives
  double gap_ns = 100;               // g: of a NIC, for each message
  double ns_per_byte = 0.1;          // G: of a NIC
  double copy_ns_per_byte = 0.1;     // of a processor, for an eager message
  std::int64_t eager_bytes = 8192;   // S: longer messages go by rendezvous
  bool sender_answers = false;       // a rendezvous needs the sender once more, as over TCP
  double node_latency_ns = 300;      // between ranks of one node
  double node_ns_per_byte = 0.1;
  double noise = 0;                  // mean of the random part of a latency, relative to it
};

// One message on its way. A member of the object that it stands for, and not moved.
struct Transfer {
  int from = 0;
  int to = 0;
  std::int64_t bytes = 0;
  void (*arrived)(Transfer& transfer) = nullptr;  // its last byte has
  // Null, or called when its last byte has left the NIC: before `arrived`. Messages within a node
  // use no NIC: theirs are called one after the other.
  void (*left)(Transfer& transfer) = nullptr;

  // The rest belongs to Links.
  std::int64_t unsent = 0;
  std::int64_t arrived_bytes = 0;
  std::int64_t chunk = 0;
  int in_flight = 0;
  bool begun = false;
  bool waits = false;  // for one of its chunks
};

class Links {
 public:
  // `per_node` ranks with neighbouring numbers share a node.
  Links(EventQueue& events, const NetworkParameters& parameters, int ranks, int per_node,
        std::uint64_t seed);
  [[nodiscard]] const NetworkParameters& parameters() const noexcept { return parameters_; }
  // The bytes of `transfer` leave as soon as the NIC has room for them.
  void start(Transfer& transfer);
  // How long a message without data takes, which no NIC delays.
  [[nodiscard]] Time latency(int from, int to);
  [[nodiscard]] std::int64_t bytes_sent() const noexcept { return bytes_sent_; }
  [[nodiscard]] std::int64_t bytes_arrived() const noexcept { return bytes_arrived_; }
  // Bytes of all messages of `rank`: given to the network, and arrived, chunk by chunk.
  struct Traffic {
    std::uint64_t asked = 0;
    std::uint64_t arrived = 0;
  };
  [[nodiscard]] const Traffic& traffic_of(const int rank) const noexcept {
    return traffic_[static_cast<std::size_t>(rank)];
  }

 private:
  static constexpr std::int64_t chunk_least = 65536;
  static constexpr std::int64_t chunks_most = 16;
  static constexpr int chunks_in_flight = 2;

  struct Nic {
    Links* links = nullptr;
    std::deque<Transfer*> ready;  // have bytes to send and room in the network
    bool sends = false;
    Time receives_until = 0;
  };

  [[nodiscard]] int node_of(const int rank) const noexcept { return rank / per_node_; }
  [[nodiscard]] Nic& nic_of(const int rank) noexcept {
    return nics_[static_cast<std::size_t>(node_of(rank))];
  }
  [[nodiscard]] double with_noise(double latency_ns);
  void send_next(Nic& nic);
  void chunk_sent(Nic& nic);
  void chunk_arrived(Transfer& transfer);

  EventQueue& events_;
  const NetworkParameters parameters_;
  const int per_node_;
  std::vector<Nic> nics_;
  std::vector<Traffic> traffic_;  // of each rank
  std::mt19937_64 random_;
  std::int64_t bytes_sent_ = 0;
  std::int64_t bytes_arrived_ = 0;
};

}  // namespace imbrex::simulate
