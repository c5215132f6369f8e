// SPDX-License-Identifier: BSD-3-Clause
// A whole simulation: ranks on nodes, the network between them, and a program that they run.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/engine/links.hpp"
#include "simulate/engine/program.hpp"
#include "simulate/engine/rank.hpp"

namespace imbrex::simulate {

struct ClusterSetup {
  int ranks = 1;
  int per_node = 1;
  bool lends = false;           // IMBREX_LEND: ranks of a node lend processors to each other
  RankSetup rank;               // except the values of the network and of the slow rank
  int slow_rank = -1;           // whose kernels take `slowness` times as long; -1: none
  double slowness = 1;
  NetworkParameters network;
  std::uint64_t seed = 1;       // of the noise
  // Called now and then, with how many tasks have ended and the virtual time; null: never.
  void (*progress)(std::int64_t ended, Time now) = nullptr;
  Observer* observer = nullptr;
};

// What one rank has done for data with owners: as SpaceCounters of the library.
struct DataCounters {
  std::uint64_t tasks = 0;
  std::uint64_t versions_sent = 0;
  std::uint64_t broadcasts = 0;
  std::uint64_t broadcasts_full = 0;
  std::uint64_t copies_from_root = 0;
  std::uint64_t copies_from_relay = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
};

struct Outcome {
  Time time_ns = 0;             // until the last rank had ended
  Rank::Sums sums;              // over all ranks; live_most is the sum of the most of each
  std::int64_t messages = 0;
  std::int64_t messages_received = 0;
  std::int64_t bytes = 0;
  std::int64_t bytes_received = 0;
  std::uint64_t events = 0;
  std::vector<DataCounters> data;  // of each rank; empty without data with owners
};

// Runs `program`. Throws Error if tasks wait for messages that no rank sends (the text names some
// of these messages), and if the policy cannot be simulated.
[[nodiscard]] Outcome simulate(Program& program, const ClusterSetup& setup);

}  // namespace imbrex::simulate
