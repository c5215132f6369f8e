// SPDX-License-Identifier: BSD-3-Clause
// Dynamic broadcasts over active messages, by a protocol of the test's own beside the library's.
#include "dist/data/broadcasts.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "dist/by_messages.hpp"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

using dist::BroadcastOptions;
using dist::Broadcasts;
using dist::Buffer;
using dist::Recipient;
using dist::TreeKind;

[[maybe_unused]] const bool wanted = mpi::active::want();

int my_rank() { return mpi::active::rank(); }

// One for each set of options, by a number that the plug-ins have: the same on all ranks.
Broadcasts& broadcasts_with(const std::uint8_t number, const BroadcastOptions& options) {
  static std::map<std::uint8_t, std::unique_ptr<dist::OnMessages<Broadcasts>>> all;
  auto& one = all[number];
  if (one == nullptr) {
    one = std::make_unique<dist::OnMessages<Broadcasts>>(mpi::active::Id{number}, options);
  }
  return one->protocol;
}

// A copy of send `number`, and its reader here.
struct Copy {
  std::vector<std::uint32_t> data;
  std::atomic<int>* left = nullptr;
  std::atomic<int> wrong{0};

  Copy(const std::size_t words, const std::uint32_t number, std::atomic<int>& all)
      : data(words, number * 2654435761U), left(&all) {
    ++all;
  }
  [[nodiscard]] dist::Bytes bytes() const { return std::as_bytes(std::span(data)); }
  [[nodiscard]] dist::Incoming incoming() {
    return {[](void* const context, Buffer* const buffer, std::exception_ptr) noexcept {
              Copy& self = *static_cast<Copy*>(context);
              if (buffer == nullptr) return void(++self.wrong);
              const auto came = buffer->bytes();
              if (!std::ranges::equal(came, self.bytes())) ++self.wrong;
              buffer->release();
            },
            [](void* const context) noexcept { --*static_cast<Copy*>(context)->left; }, this};
  }
  static void ended(void* const context, const std::exception_ptr error) noexcept {
    Copy& self = *static_cast<Copy*>(context);
    if (error != nullptr) ++self.wrong;
    --*self.left;
  }
};

void wait_for_none(const std::atomic<int>& left) {
  while (left.load() != 0) yield();
}

TEST(BroadcastsTest, random_sends_of_all_ranks_reach_their_readers) {
  constexpr TreeKind kinds[] = {TreeKind::automatic, TreeKind::star, TreeKind::binomial,
                                TreeKind::chain, TreeKind::binary};
  std::uint8_t number = 20;
  for (const TreeKind kind : kinds) {
    BroadcastOptions options;
    options.kind = kind;
    options.early_bytes_max = kind == TreeKind::chain ? 500000 : options.early_bytes_max;
    Broadcasts& own = broadcasts_with(number++, options);
    own.open_space(1, "random");
    const int ranks = mpi::active::ranks();
    std::mt19937 random(static_cast<unsigned>(kind));  // the same on all ranks
    std::mt19937 delays(static_cast<unsigned>(my_rank()));
    std::atomic<int> left{0};
    std::vector<std::unique_ptr<Copy>> copies;
    std::map<std::pair<int, int>, std::uint32_t> tickets;
    for (std::uint32_t i = 0; i < 60; ++i) {
      const int root = static_cast<int>(random() % static_cast<unsigned>(ranks));
      const std::size_t words = random() % 3 == 0 ? random() % 200000 : random() % 2000;
      std::vector<Recipient> to;
      for (int rank = 0; rank < ranks; ++rank) {
        if (rank == root || random() % 4 == 0) continue;
        to.push_back({rank, tickets[{root, rank}]++, static_cast<std::int32_t>(random() % 2)});
        if (rank != my_rank()) continue;
        copies.push_back(std::make_unique<Copy>(words, i, left));
        own.expect({1, 5}, root, to.back().ticket, words * 4, copies.back()->incoming());
      }
      if (root == my_rank()) {
        copies.push_back(std::make_unique<Copy>(words, i, left));
        own.send({1, 5}, to, copies.back()->bytes(), &Copy::ended, copies.back().get());
      }
      if (delays() % 16 == 0) yield();
    }
    wait_for_none(left);
    for (const auto& one : copies) EXPECT_EQ(one->wrong, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(own.close_space(1), nullptr);
  }
}

TEST(BroadcastsTest, ranks_do_not_wait_for_one_that_inserts_long_after_them) {
  const int ranks = mpi::active::ranks();
  if (ranks < 3) GTEST_SKIP() << "needs three ranks";
  std::uint8_t number = 40;
  for (const std::size_t room : {std::size_t{0}, std::size_t{2} << 20, std::size_t{64} << 20}) {
    BroadcastOptions options;
    options.early_bytes_max = room;
    Broadcasts& own = broadcasts_with(number++, options);
    own.open_space(1, "late");
    constexpr std::uint32_t sends = 6;
    constexpr std::size_t words = 300000;
    std::atomic<int> arrivals{0};
    std::atomic<int> ends{0};
    std::vector<std::unique_ptr<Copy>> copies;
    std::vector<Recipient> to;
    for (int rank = 1; rank < ranks; ++rank) to.push_back({rank, 0, 0});
    for (std::uint32_t i = 0; i < sends; ++i) {
      copies.push_back(std::make_unique<Copy>(words, i, my_rank() == 0 ? ends : arrivals));
      Copy& one = *copies.back();
      if (my_rank() == 0) own.send({1, i}, to, one.bytes(), &Copy::ended, &one);
      if (my_rank() > 1) own.expect({1, i}, 0, 0, words * 4, one.incoming());
    }
    if (my_rank() > 1) wait_for_none(arrivals);
    MPI_Barrier(MPI_COMM_WORLD);  // all but rank 1 have theirs
    if (my_rank() == 1) {
      for (std::uint32_t i = 0; i < sends; ++i) {
        own.expect({1, i}, 0, 0, words * 4, copies[i]->incoming());
      }
      wait_for_none(arrivals);
      const Broadcasts::Counters counters = own.counters();
      EXPECT_EQ(counters.early, sends);
      EXPECT_LE(counters.early_bytes_most, room);
      EXPECT_EQ(counters.handed_back == sends, room == 0);
    }
    wait_for_none(ends);
    for (const auto& one : copies) EXPECT_EQ(one->wrong, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQ(own.close_space(1), nullptr);
  }
}

}  // namespace
}  // namespace imbrex::test
