// SPDX-License-Identifier: BSD-3-Clause
// The network against closed forms.
#include "simulate/engine/links.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <vector>

#include "simulate/engine/cluster.hpp"

namespace imbrex::simulate {
namespace {

constexpr double latency_ns = 5000;
constexpr double ns_per_byte = 0.5;
constexpr double gap_ns = 200;

NetworkParameters parameters() {
  NetworkParameters network;
  network.latency_ns = latency_ns;
  network.ns_per_byte = ns_per_byte;
  network.gap_ns = gap_ns;
  network.node_latency_ns = 300;
  network.node_ns_per_byte = 0.25;
  return network;
}

// Times at which transfers that start together have arrived.
struct Net {
  explicit Net(const int ranks, const int per_node = 1)
      : links(events, parameters(), ranks, per_node, 1) {}
  void start(const int from, const int to, const std::int64_t bytes) {
    Sent& sent = transfers.emplace_back();
    sent.net = this;
    sent.transfer.from = from;
    sent.transfer.to = to;
    sent.transfer.bytes = bytes;
    sent.transfer.arrived = [](Transfer& transfer) {
      auto& here = reinterpret_cast<Sent&>(transfer);
      here.at = here.net->events.now();
    };
    links.start(sent.transfer);
  }
  std::vector<Time> run() {
    while (events.step()) {}
    std::vector<Time> times;
    for (const Sent& sent : transfers) times.push_back(sent.at);
    return times;
  }
  struct Sent {
    Transfer transfer;
    Net* net = nullptr;
    Time at = -1;
  };
  EventQueue events;
  Links links;
  std::deque<Sent> transfers;
};

[[nodiscard]] double wire(const std::int64_t bytes) noexcept {
  return gap_ns + static_cast<double>(bytes) * ns_per_byte;
}
void expect_near(const Time measured, const double expected, const double part) {
  EXPECT_NEAR(static_cast<double>(measured), expected, expected * part + 2);
}

TEST(Links, a_message_takes_its_latency_the_gap_and_its_bytes) {
  for (const std::int64_t bytes : {0, 1, 1000, 65536, 65537, 10'000'000}) {
    Net net(2);
    net.start(0, 1, bytes);
    expect_near(net.run()[0], latency_ns + wire(bytes), 1e-6);
  }
}

TEST(Links, ranks_of_one_node_share_no_nic) {
  Net net(2, 2);
  net.start(0, 1, 1'000'000);
  net.start(0, 1, 1'000'000);
  for (const Time time : net.run()) expect_near(time, 300 + 250'000, 1e-6);
}

TEST(Links, senders_to_one_receiver_share_its_nic) {
  constexpr std::int64_t bytes = 4 << 20;
  constexpr int senders = 8;
  Net net(senders + 1);
  for (int sender = 1; sender <= senders; ++sender) net.start(sender, 0, bytes);
  const std::vector<Time> times = net.run();
  const double all = latency_ns + senders * wire(bytes);
  Time last = 0;
  for (const Time time : times) {
    EXPECT_GE(static_cast<double>(time), all * (1 - 1.5 / 16)) << "they share it evenly";
    last = std::max(last, time);
  }
  expect_near(last, all, 1e-3);
}

TEST(Links, messages_of_one_sender_share_its_nic_evenly) {
  constexpr std::int64_t bytes = 4 << 20;
  Net net(3);
  net.start(0, 1, bytes);
  net.start(0, 2, bytes);
  const std::vector<Time> times = net.run();
  expect_near(times[1], latency_ns + 2 * wire(bytes), 1e-3);
  EXPECT_GE(static_cast<double>(times[0]), latency_ns + wire(bytes) * 2 * (1 - 1.5 / 16));
}

TEST(Links, a_busy_receiver_does_not_hold_up_what_its_sender_sends_elsewhere) {
  constexpr std::int64_t bytes = 16 << 20;
  Net net(6);
  for (int sender = 1; sender <= 4; ++sender) net.start(sender, 0, bytes);
  net.start(1, 5, bytes);
  const std::vector<Time> times = net.run();
  // A quarter of its NIC goes to the busy receiver, so the other message has three quarters.
  EXPECT_LE(static_cast<double>(times[4]), latency_ns + wire(bytes) * 1.6);
}

TEST(Links, a_ring_takes_as_long_as_one_message) {
  constexpr int ranks = 7;
  Net net(ranks);
  for (int rank = 0; rank < ranks; ++rank) net.start(rank, (rank + 1) % ranks, 1 << 20);
  for (const Time time : net.run()) expect_near(time, latency_ns + wire(1 << 20), 1e-6);
}

TEST(Links, noise_adds_its_mean_to_the_latency) {
  NetworkParameters network = parameters();
  network.noise = 0.5;
  EventQueue events;
  Links links(events, network, 2, 1, 7);
  double sum = 0;
  constexpr int samples = 20'000;
  for (int i = 0; i < samples; ++i) sum += static_cast<double>(links.latency(0, 1));
  expect_near(static_cast<Time>(sum / samples), latency_ns * 1.5, 0.02);
}

// ---- with MPI above ----------------------------------------------------------------------------

// `rounds` times there and back, each message by one task after the one before.
class PingPong final : public Program {
 public:
  PingPong(const int rounds, const std::int64_t bytes) : rounds_(rounds), bytes_(bytes) {}
  const std::vector<Kernel>& kernels() const override { return kernels_; }
  bool next(const int rank, Batch& batch) override {
    for (int round = 0; round < rounds_; ++round) {
      for (const int sender : {0, 1}) {
        const bool sends = sender == rank;
        batch.add({.kernel = static_cast<std::uint16_t>(sends ? 0 : 1),
                   .role = sends ? Role::send : Role::receive,
                   .peer = 1 - rank,
                   .tag = 2 * round + sender,
                   .bytes = bytes_});
        batch.access(1, detail::AccessKind::inout);
      }
    }
    return false;
  }

 private:
  const int rounds_;
  const std::int64_t bytes_;
  std::vector<Kernel> kernels_{{"send", 0}, {"receive", 0}};
};

TEST(Links, ping_pong_takes_latency_overheads_and_handshakes) {
  constexpr int rounds = 100;
  constexpr double overhead_ns = 700;
  for (const bool eager : {true, false}) {
    for (const bool sender_answers : {true, false}) {
      ClusterSetup setup;
      setup.ranks = 2;
      setup.network = parameters();
      setup.network.overhead_ns = overhead_ns;
      setup.network.copy_ns_per_byte = 0.1;
      setup.network.eager_bytes = eager ? 1000 : 0;
      setup.network.sender_answers = sender_answers;
      setup.rank.creator_ns = setup.rank.task_ns = 0;
      PingPong program(rounds, 1000);
      const Outcome outcome = simulate(program, setup);
      // The last sender hears that its data have arrived: one latency in all, after a rendezvous.
      double one_way = overhead_ns + latency_ns + wire(1000) + overhead_ns;
      one_way += eager ? 1000 * 0.1 : 2 * latency_ns;
      const double all = 2 * rounds * one_way;
      EXPECT_NEAR(static_cast<double>(outcome.time_ns), all, all * 0.001 + 2 * latency_ns);
    }
  }
}

}  // namespace
}  // namespace imbrex::simulate
