// SPDX-License-Identifier: BSD-3-Clause
// A network in one thread, for protocols of src/distributed that move long data too: it draws what
// happens next. Messages between two ranks arrive in order, transfers whenever they like; ranks can
// be slow, and transfers fail.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "distributed/carrier/transfers.hpp"
#include "imbrex/error.hpp"

namespace imbrex::test {

class Simulated {
 public:
  using Handler = std::function<void(int from, distributed::Bytes message)>;
  struct Faults {  // of what moves bytes: who ends a landing with nothing always can
    unsigned deliver = 0;  // of 1000 that end with an error
    unsigned refused = 0;  // of 1000 that throw at once
    unsigned offer = 0;    // of 1000 that throw
  };

  Simulated(const int ranks, const unsigned seed) : random(seed) {
    for (int rank = 0; rank < ranks; ++rank) ends_.push_back(std::make_unique<End>(*this, rank));
  }
  [[nodiscard]] distributed::Transfers& transfers(const int rank) { return end(rank); }
  void set_handler(const int rank, Handler handler) { end(rank).handler = std::move(handler); }
  // Its messages and transfers come only if nothing else happens.
  void set_slow(const int rank, const bool slow) { end(rank).slow = slow; }
  [[nodiscard]] int expecting(const int rank) { return end(rank).expecting; }

  // One event; false if there is none.
  bool step() {
    std::vector<std::function<void()>> fast;
    std::vector<std::function<void()>> slow;
    for (auto& [pair, channel] : channels_) {
      if (channel.empty()) continue;
      (end(pair.second).slow ? slow : fast).push_back([this, &pair, &channel] {
        arrive(pair, channel);
      });
    }
    for (std::size_t i = 0; i < moving_.size(); ++i) {
      (end(moving_[i].landing.rank).slow ? slow : fast).push_back([this, i] { land(i); });
    }
    for (std::size_t i = 0; i < ending_.size(); ++i) fast.push_back([this, i] { finish(i); });
    auto& some = fast.empty() || (!slow.empty() && random() % 64 == 0) ? slow : fast;
    if (some.empty()) return false;
    some[random() % some.size()]();
    return true;
  }
  [[nodiscard]] std::size_t moving(const int from, const int to) const {
    return static_cast<std::size_t>(std::ranges::count_if(moving_, [&](const Moving& one) {
      return one.from == from && one.landing.rank == to;
    }));
  }

  std::mt19937 random;
  Faults faults;
  // Looks on at each message.
  std::function<void(int from, int to, distributed::Bytes message)> watch;
  std::size_t moving_most = 0;  // between two ranks at once

 private:
  struct Offered {
    std::span<std::byte> memory;
    distributed::Ended ended;
    void* context;
  };
  struct End final : distributed::Transfers {
    End(Simulated& its_network, const int its) : network(its_network), own(its) {}
    [[nodiscard]] int rank() const noexcept override { return own; }
    void send(const int to, const distributed::Bytes head, const distributed::Bytes body) override {
      std::vector<std::byte> message(head.begin(), head.end());
      message.insert(message.end(), body.begin(), body.end());
      if (message.size() > distributed::message_bytes_max) {
        throw Error("imbrex: too long a message");
      }
      if (to < 0 || static_cast<std::size_t>(to) >= network.ends_.size()) {
        throw Error("imbrex: there is no such rank");
      }
      if (network.watch) network.watch(own, to, message);
      network.channels_[{own, to}].push_back(std::move(message));
    }
    void flush() noexcept override {}
    distributed::Landing offer(int, const std::span<std::byte> memory,
                               const distributed::Ended ended,
                               void* const context) override {
      if (network.draw(network.faults.offer)) throw Error("imbrex: no landing");
      landings[++last] = {memory, ended, context};
      return {last, own, memory.size()};
    }
    void deliver(const distributed::Landing& landing, const distributed::Bytes data,
                 const distributed::Ended ended, void* const context) override {
      if (!data.empty() && network.draw(network.faults.refused)) throw Error("imbrex: no delivery");
      network.moving_.push_back({own, landing, data, ended, context});
      network.moving_most = std::max(network.moving_most, network.moving(own, landing.rank));
    }
    void expect() override { ++expecting; }
    void expect_no_more() noexcept override { --expecting; }

    Simulated& network;
    const int own;
    Handler handler;
    bool slow = false;
    int expecting = 0;
    int last = 0;
    std::map<int, Offered> landings;
  };
  struct Moving {
    int from;
    distributed::Landing landing;
    distributed::Bytes data;
    distributed::Ended ended;
    void* context;
  };
  struct Ending {
    distributed::Ended ended;
    void* context;
    std::exception_ptr error;
  };

  [[nodiscard]] End& end(const int rank) { return *ends_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] bool draw(const unsigned of_1000) {
    return of_1000 != 0 && random() % 1000 < of_1000;
  }
  void arrive(const std::pair<int, int> pair, std::deque<std::vector<std::byte>>& channel) {
    const std::vector<std::byte> message = std::move(channel.front());
    channel.pop_front();
    end(pair.second).handler(pair.first, message);
  }
  void land(const std::size_t i) {
    const Moving moved = moving_[i];
    moving_.erase(moving_.begin() + static_cast<std::ptrdiff_t>(i));
    if (!moved.data.empty() && draw(faults.deliver)) {
      const auto error = std::make_exception_ptr(Error("imbrex: a delivery was lost"));
      ending_.push_back({moved.ended, moved.context, error});
      return;
    }
    End& to = end(moved.landing.rank);
    const Offered offered = to.landings.extract(moved.landing.tag).mapped();
    if (moved.data.size() > offered.memory.size()) throw Error("a landing is too small");
    if (!moved.data.empty()) {
      std::memcpy(offered.memory.data(), moved.data.data(), moved.data.size());
    }
    ending_.push_back({moved.ended, moved.context, nullptr});
    ending_.push_back({offered.ended, offered.context, nullptr});
  }
  void finish(const std::size_t i) {
    const Ending one = ending_[i];
    ending_.erase(ending_.begin() + static_cast<std::ptrdiff_t>(i));
    one.ended(one.context, one.error);
  }

  std::vector<std::unique_ptr<End>> ends_;
  std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> channels_;
  std::vector<Moving> moving_;
  std::vector<Ending> ending_;
};

}  // namespace imbrex::test
