// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/carrier/waves.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "distributed/network.hpp"
#include "imbrex/error.hpp"

namespace imbrex::test {
namespace {

using distributed::WaveName;
using distributed::Waves;
using distributed::WaveSums;

// The ranks of a network, each with its waves.
struct Ranks {
  std::vector<std::unique_ptr<Waves>> waves;
  Network network;

  Ranks(const int ranks, const unsigned seed) : network(ranks, seed, 2) {
    for (int rank = 0; rank < ranks; ++rank) {
      waves.push_back(std::make_unique<Waves>(network.carrier(rank)));
    }
    for (int rank = 0; rank < ranks; ++rank) {
      network.set_handler(rank, [this, rank](const int from, const distributed::Bytes message) {
        of(rank).receive(from, message);
      });
    }
  }
  [[nodiscard]] Waves& of(const int rank) { return *waves[static_cast<std::size_t>(rank)]; }
};

// The progress of one rank's waves: each wave adds the next, up to `last`.
struct Member {
  Waves* waves;
  int rank;
  std::uint64_t group;
  std::vector<int> members;
  std::uint64_t last;
  std::atomic<int>* joined;  // by all ranks, of each epoch
  std::atomic<int>* wrong;
  std::atomic<int>* left;
  std::uint64_t epoch = 0;

  void join() {
    ++joined[epoch];
    const auto at = static_cast<std::int64_t>(epoch);
    waves->join({group, epoch}, members, {rank, at, 1, -at}, &Member::ended, this);
  }
  static void ended(void* const context, const WaveSums& sums) noexcept {
    Member& self = *static_cast<Member*>(context);
    const auto count = static_cast<std::int64_t>(self.members.size());
    const auto at = static_cast<std::int64_t>(self.epoch);
    const WaveSums expected{std::accumulate(self.members.begin(), self.members.end(), 0l),
                            at * count, count, -at * count};
    if (sums != expected || self.joined[self.epoch] != count) ++*self.wrong;
    if (++self.epoch == self.last) {
      --*self.left;
    } else {
      self.join();
    }
  }
};

TEST(WavesTest, every_member_gets_the_sum_when_all_have_joined) {
  constexpr std::uint64_t epochs = 20;
  for (int size = 1; size <= 17; ++size) {
    std::atomic<int> wrong{0};
    std::atomic<int> left{0};
    // Two groups at once: all ranks in order, and every other one backwards.
    std::array<std::array<std::atomic<int>, epochs>, 2> joined{};
    std::vector<std::unique_ptr<Member>> members;
    Ranks ranks(size, static_cast<unsigned>(size));
    const auto add = [&](const std::uint64_t group, const std::vector<int>& who) {
      for (const int rank : who) {
        members.push_back(std::make_unique<Member>(Member{&ranks.of(rank), rank, group, who,
                                                          epochs, joined[group].data(), &wrong,
                                                          &left}));
        ++left;
      }
    };
    std::vector<int> all(static_cast<std::size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    std::vector<int> some;
    for (int rank = size - 1; rank >= 0; rank -= 2) some.push_back(rank);
    add(0, all);
    add(1, some);
    for (const auto& member : members) member->join();
    while (left != 0) std::this_thread::yield();
    EXPECT_EQ(wrong, 0) << size << " ranks";
    for (const auto& one : ranks.waves) EXPECT_EQ(one->open(), 0u);
  }
}

TEST(WavesTest, a_wrong_join_is_refused) {
  Ranks ranks(2, 1);
  const auto nothing = [](void*, const WaveSums&) noexcept {};
  const std::vector<int> other{1};
  const std::vector<int> both{0, 1};
  EXPECT_THROW(ranks.of(0).join({5, 0}, other, {}, nothing, nullptr), Error);
  ranks.of(0).join({5, 0}, both, {}, nothing, nullptr);
  EXPECT_THROW(ranks.of(0).join({5, 0}, both, {}, nothing, nullptr), Error);
  ranks.of(1).join({5, 0}, both, {}, nothing, nullptr);
  while (ranks.of(0).open() + ranks.of(1).open() != 0) std::this_thread::yield();
}

}  // namespace
}  // namespace imbrex::test
