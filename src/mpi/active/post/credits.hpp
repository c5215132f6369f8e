// SPDX-License-Identifier: BSD-3-Clause
// Credit between this rank and each other one: it bounds the packets with messages in flight to a
// rank, and so the memory that MPI may need there. docs/design/active.md has the bound.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "mpi/active/post/packet.hpp"

namespace imbrex::mpi::active {

// Thread safety: only the holder uses it.
// Invariants:
//   (1) a rank has at most as many packets with messages in flight to another as it has been given
//       credit for; a packet without messages, which only returns credit, needs none.
//   (2) a rank is starved if it has something to send to a peer and no credit: add() then reports
//       that once.
class Credits {
 public:
  void open(const int ranks) {
    const auto all = static_cast<std::size_t>(ranks);
    window_ = std::clamp(static_cast<int>(memory_max / packet_bytes / all), 1, window_max);
    accounts_.assign(all, {.credit = window_});
  }
  // Spends the credit for a packet. False if there is none: the rank is starved.
  [[nodiscard]] bool spend(const int rank) noexcept {
    Account& it = account(rank);
    it.starved = it.credit == 0;
    if (!it.starved) --it.credit;
    return !it.starved;
  }
  // That rank has handled `packets` of the packets sent to it. True if that ends its starvation.
  [[nodiscard]] bool add(const int rank, const std::uint32_t packets) noexcept {
    Account& it = account(rank);
    it.credit += static_cast<int>(packets);
    return packets != 0 && std::exchange(it.starved, false);
  }
  // A packet with messages of `rank` was handled here.
  void owe(const int rank) {
    if (++account(rank).owed == due()) owing_.push_back(rank);
  }
  // The credit that the next packet to `rank` returns.
  [[nodiscard]] std::uint32_t take_owed(const int rank) noexcept {
    return std::exchange(account(rank).owed, 0);
  }
  // Calls send_back(rank) for each rank that is owed half a window, if no packet with messages has
  // returned it.
  template <class SendBack>
  void return_due(SendBack send_back) {
    for (const int rank : owing_) {
      if (account(rank).owed >= due()) send_back(rank);
    }
    owing_.clear();
  }

 private:
  static constexpr int window_max = 64;
  static constexpr std::size_t memory_max = std::size_t{64} << 20;  // in flight to one rank

  struct Account {
    int credit = 0;          // number of packets that may still go there
    bool starved = false;    // see (2)
    std::uint32_t owed = 0;  // number of handled packets from there whose credit is not yet
                             // returned
  };
  [[nodiscard]] Account& account(const int rank) noexcept {
    return accounts_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::uint32_t due() const noexcept {
    return static_cast<std::uint32_t>(std::max(1, window_ / 2));
  }

  int window_ = 1;                 // packets
  std::vector<Account> accounts_;  // by rank
  std::vector<int> owing_;         // ranks that were owed half a window
};

}  // namespace imbrex::mpi::active
