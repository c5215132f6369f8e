// SPDX-License-Identifier: BSD-3-Clause
// Ranks of a Network on which several protocols of src/distributed live, told apart by a number
// before each message; long data land by transfers, which are messages too.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "distributed/carrier/transfers.hpp"
#include "distributed/network.hpp"

namespace imbrex::test {

class Station {
 public:
  Station(Network& network, const int rank) : under_(network.carrier(rank)) {
    network.set_handler(rank, [this](int from, distributed::Bytes bytes) { take(from, bytes); });
  }
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;

  // One for each protocol, by a number of the test's from 1 on. Before any message is sent: what
  // gets its messages.
  [[nodiscard]] distributed::Transfers& way(const int protocol) {
    auto& made = ways_[protocol];
    if (made == nullptr) made = std::make_unique<Way>(*this, protocol);
    return *made;
  }
  void set_receiver(const int protocol, Network::Handler receiver) {
    receivers_[protocol] = std::move(receiver);
  }

 private:
  static constexpr int landing = -1, sent = -2;
  static constexpr std::size_t prefix_bytes = 16;  // as messages are aligned

  struct Way final : distributed::Transfers {
    Way(Station& its_station, const int its) : own(its_station), what(its) {}
    [[nodiscard]] int rank() const noexcept override { return own.under_.rank(); }
    void send(const int to, const distributed::Bytes head, const distributed::Bytes body) override {
      std::vector<std::byte> all(prefix_bytes);
      std::memcpy(all.data(), &what, sizeof what);
      all.insert(all.end(), head.begin(), head.end());
      own.under_.send(to, all, body);
    }
    void flush() noexcept override {}
    distributed::Landing offer(int, const std::span<std::byte> memory,
                               const distributed::Ended ended,
                               void* const context) override {
      const std::lock_guard guard(own.mutex_);
      own.landings_[++own.last_] = {memory, ended, context};
      return {own.last_, rank(), memory.size()};
    }
    void deliver(const distributed::Landing& to, const distributed::Bytes data,
                 const distributed::Ended ended, void* const context) override {
      Way(own, landing).send(to.rank, distributed::bytes_of(to.tag), data);
      const int tag = offer(0, {}, ended, context).tag;
      Way(own, sent).send(rank(), distributed::bytes_of(tag), {});
    }
    void expect() override {}
    void expect_no_more() noexcept override {}
    Station& own;
    const int what;
  };
  struct Offered {
    std::span<std::byte> memory;
    distributed::Ended ended;
    void* context;
  };
  void take(const int from, const distributed::Bytes bytes) {
    int what = 0;
    std::memcpy(&what, bytes.data(), sizeof what);
    const distributed::Bytes rest = bytes.subspan(prefix_bytes);
    if (what > 0) return receivers_.at(what)(from, rest);
    int tag = 0;
    std::memcpy(&tag, rest.data(), sizeof tag);
    Offered offered{};
    if (const std::lock_guard guard(mutex_); true) {
      offered = landings_.extract(tag).mapped();
    }
    const distributed::Bytes data = rest.subspan(sizeof tag);
    if (!data.empty()) std::memcpy(offered.memory.data(), data.data(), data.size());
    offered.ended(offered.context, nullptr);
  }

  distributed::Carrier& under_;
  std::map<int, std::unique_ptr<Way>> ways_;
  std::map<int, Network::Handler> receivers_;
  std::mutex mutex_;
  int last_ = 0;
  std::unordered_map<int, Offered> landings_;
};

}  // namespace imbrex::test
