// SPDX-License-Identifier: BSD-3-Clause
// Methodology: random programs that put, ask and read over several ranks in one process, against
// the values that a sequential program would read; long values land by transfers of the test's own.
#include "dist/futures.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "dist/network.hpp"
#include "imbrex/scope.hpp"
#include "imbrex/dist/space_values.hpp"

namespace imbrex::test {
namespace {

using Value = std::vector<std::uint32_t>;
using State = detail::SpaceFutureOf<Value>;
enum class What : std::uint64_t { waves, futures, landing, sent };

// A rank: what comes for it is told apart by a number before each message.
class Rank {
 public:
  Rank(Network& network, const int rank)
      : waves_way_(*this, What::waves), way_(*this, What::futures), under_(network.carrier(rank)),
        waves(waves_way_), futures(way_, waves) {
    network.set_handler(rank, [this](int from, dist::Bytes bytes) { take(from, bytes); });
  }

 private:
  struct Way final : dist::Transfers {
    Way(Rank& its_rank, const What its) : own(its_rank), what(its) {}
    [[nodiscard]] int rank() const noexcept override { return own.under_.rank(); }
    void send(const int to, const dist::Bytes head, const dist::Bytes body) override {
      std::vector<std::byte> all(sizeof what);
      std::memcpy(all.data(), &what, sizeof what);
      all.insert(all.end(), head.begin(), head.end());
      own.under_.send(to, all, body);
    }
    void flush() noexcept override {}
    dist::Landing offer(int, const std::span<std::byte> memory, const dist::Ended ended,
                        void* const context) override {
      const std::lock_guard guard(own.mutex_);
      own.landings_[++own.last_] = {memory, ended, context};
      return {own.last_, rank(), memory.size()};
    }
    void deliver(const dist::Landing& landing, const dist::Bytes data, const dist::Ended ended,
                 void* const context) override {
      Way(own, What::landing).send(landing.rank, dist::bytes_of(landing.tag), data);
      const int tag = offer(0, {}, ended, context).tag;
      Way(own, What::sent).send(rank(), dist::bytes_of(tag), {});
    }
    void expect() override {}
    void expect_no_more() noexcept override {}
    Rank& own;
    const What what;
  };
  struct Offered {
    std::span<std::byte> memory;
    dist::Ended ended;
    void* context;
  };
  void take(const int from, const dist::Bytes bytes) {
    What what{};
    std::memcpy(&what, bytes.data(), sizeof what);
    const dist::Bytes rest = bytes.subspan(sizeof what);
    if (what == What::waves) return waves.receive(from, rest);
    if (what == What::futures) return futures.receive(from, rest);
    int tag = 0;
    std::memcpy(&tag, rest.data(), sizeof tag);
    Offered offered{};
    if (const std::lock_guard guard(mutex_); true) {
      offered = landings_.extract(tag).mapped();
    }
    const dist::Bytes data = rest.subspan(sizeof tag);
    if (!data.empty()) std::memcpy(offered.memory.data(), data.data(), data.size());
    offered.ended(offered.context, nullptr);
  }
  Way waves_way_, way_;
  dist::Carrier& under_;
  std::mutex mutex_;
  int last_ = 0;
  std::unordered_map<int, Offered> landings_;

 public:
  dist::Waves waves;
  dist::Futures futures;
};

Value value_of(const std::uint64_t guid) {
  return Value(guid % 5 == 0 ? 3000 : guid % 7, static_cast<std::uint32_t>(guid));
}

void run(const int ranks, const unsigned seed) {
  std::vector<std::unique_ptr<Rank>> all;
  Network network(ranks, seed, 2);
  for (int i = 0; i < ranks; ++i) all.push_back(std::make_unique<Rank>(network, i));
  std::vector<std::thread> mains;
  for (int rank = 0; rank < ranks; ++rank) {
    mains.emplace_back([&, rank] {
      std::mt19937 random(seed + static_cast<unsigned>(rank));
      detail::SpaceSpec spec;
      spec.id = 1;
      for (int i = 0; i < ranks; ++i) spec.members.push_back(i);
      spec.ops = &detail::ValueOpsOf<Value>::ops();
      spec.home = [ranks](std::uint64_t guid) { return static_cast<int>(guid * 7 % 31) % ranks; };
      if (seed % 2 == 0) spec.size = [](std::uint64_t guid) { return value_of(guid).size() * 4; };
      spec.name = "fuzz";
      detail::Space& space = all[static_cast<std::size_t>(rank)]->futures.open(spec);
      std::vector<detail::SpaceFuture*> asked;
      for (std::uint64_t guid = 0; guid < 40; ++guid) {
        if (random() % 2 == 0) asked.push_back(&space.future(random() % 40));
        if (static_cast<int>(guid) % ranks != rank) continue;
        Value value = value_of(guid);
        space.put(guid, {[](detail::SpaceFuture& future, void* from) {
                    ::new (&static_cast<State&>(future).slot.value)
                        Value(*static_cast<Value*>(from));
                    future.built = true;
                  }, &value}, std::source_location::current());
      }
      for (detail::SpaceFuture* const one : asked) {
        detail::await(*one);
        EXPECT_EQ(static_cast<State*>(one)->slot.value, value_of(one->guid));
        detail::release(*one);
      }
      space.close();
      space.let_go();
    });
  }
  for (std::thread& one : mains) one.join();
}

TEST(FuturesOverANetwork, random_programs_read_what_was_put) {
  finish([] {});  // the runtime runs
  for (unsigned seed = 0; seed < 16; ++seed) run(1 + static_cast<int>(seed % 8), seed);
}

}  // namespace
}  // namespace imbrex::test
