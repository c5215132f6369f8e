// SPDX-License-Identifier: BSD-3-Clause
// Methodology: random programs that put, ask and read over several ranks in one process, against
// the values that a sequential program would read; long values land by transfers of the test's own.
#include "dist/futures.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "dist/stations.hpp"
#include "imbrex/scope.hpp"
#include "imbrex/dist/space_values.hpp"

namespace imbrex::test {
namespace {

using Value = std::vector<std::uint32_t>;
using State = detail::SpaceFutureOf<Value>;

class Rank {
 public:
  Rank(Network& network, const int rank)
      : station_(network, rank), waves(station_.way(1)), futures(station_.way(2), waves) {
    station_.set_receiver(1, [this](int from, dist::Bytes bytes) { waves.receive(from, bytes); });
    station_.set_receiver(2, [this](int from, dist::Bytes bytes) { futures.receive(from, bytes); });
  }

 private:
  Station station_;

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
