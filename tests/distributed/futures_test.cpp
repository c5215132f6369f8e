// SPDX-License-Identifier: BSD-3-Clause
// Methodology: random programs that put, ask and read over several ranks in one process, against
// the values that a sequential program would read; long values land by transfers of the test's own.
#include "distributed/futures.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "distributed/stations.hpp"
#include "imbrex/error.hpp"
#include "imbrex/scope.hpp"
#include "imbrex/distributed/space_values.hpp"

namespace imbrex::test {
namespace {

using Words = std::vector<std::uint32_t>;

class Rank {
 public:
  Rank(Network& network, const int rank)
      : station_(network, rank), waves(station_.way(1)), futures(station_.way(2), waves) {
    station_.set_receiver(1, [this](int from, distributed::Bytes bytes) {
      waves.receive(from, bytes);
    });
    station_.set_receiver(2, [this](int from, distributed::Bytes bytes) {
      futures.receive(from, bytes);
    });
  }

 private:
  Station station_;

 public:
  distributed::Waves waves;
  distributed::Futures futures;
};

// Values of any length, and long ones of one length, which every reader knows.
struct Block {
  std::array<std::uint32_t, 3000> words;
  friend bool operator==(const Block&, const Block&) = default;
};
template <class Value>
Value value_of(std::uint64_t guid);
template <>
Words value_of<Words>(const std::uint64_t guid) {
  return Words(guid % 5 == 0 ? 3000 : guid % 7, static_cast<std::uint32_t>(guid));
}
template <>
Block value_of<Block>(const std::uint64_t guid) {
  Block block{};
  block.words.fill(static_cast<std::uint32_t>(guid));
  return block;
}
std::size_t bytes_of(const Words& words) { return words.size() * sizeof words[0]; }
std::size_t bytes_of(const Block& block) { return sizeof block; }

constexpr std::uint64_t guids = 40;

struct Program {
  int ranks;
  unsigned seed;
  [[nodiscard]] bool knows_sizes() const { return seed % 2 == 0; }
  [[nodiscard]] bool gives_back() const { return seed / 2 % 2 == 0; }
  // The futures that a rank asks for, some of them more than once.
  [[nodiscard]] std::vector<std::uint64_t> requests_of(const int rank) const {
    std::mt19937 random(seed * 64 + static_cast<unsigned>(rank));
    std::vector<std::uint64_t> requested(random() % guids);
    for (std::uint64_t& one : requested) one = random() % guids;
    return requested;
  }
  // Returns how many ranks ask for each future.
  [[nodiscard]] std::vector<std::size_t> readers() const {
    std::vector<std::size_t> readers(guids);
    for (int rank = 0; rank < ranks; ++rank) {
      const auto requested = requests_of(rank);
      for (const std::uint64_t one : std::set(requested.begin(), requested.end())) ++readers[one];
    }
    return readers;
  }
  template <class Value>
  [[nodiscard]] detail::SpaceSpec spec() const {
    detail::SpaceSpec spec;
    spec.id = 1;
    for (int i = 0; i < ranks; ++i) spec.members.push_back(i);
    spec.ops = &detail::ValueOpsOf<Value>::ops();
    spec.home = [size = ranks](const std::uint64_t guid) {
      return static_cast<int>(guid * 7 % 31) % size;
    };
    if (knows_sizes()) {
      spec.size = [](const std::uint64_t guid) { return bytes_of(value_of<Value>(guid)); };
    }
    if (gives_back()) {
      spec.readers = [all = readers()](const std::uint64_t guid) { return all[guid]; };
    }
    spec.name = "fuzz";
    return spec;
  }
};

template <class Value>
using State = detail::SpaceFutureOf<Value>;

template <class Value>
void put(detail::Space& space, const std::uint64_t guid) {
  Value value = value_of<Value>(guid);
  space.put(guid, {[](detail::SpaceFuture& future, void* from) {
              ::new (&static_cast<State<Value>&>(future).slot.value)
                  Value(*static_cast<Value*>(from));
              future.built = true;
            }, &value}, std::source_location::current());
}

// Puts its share and asks, in an order that is drawn; a rank keeps all futures until it has read
// all, so it reads each value once, however often it asks.
template <class Value>
void run_rank(const Program& program, const int rank, distributed::Futures& futures) {
  std::mt19937 random(program.seed + static_cast<unsigned>(rank));
  detail::Space& space = futures.open(program.spec<Value>());
  std::vector<std::uint64_t> to_ask = program.requests_of(rank);
  std::vector<detail::SpaceFuture*> requested;
  for (std::uint64_t guid = 0; guid < guids || !to_ask.empty();) {
    if (!to_ask.empty() && (guid == guids || random() % 2 == 0)) {
      requested.push_back(&space.future(to_ask.back()));
      to_ask.pop_back();
      continue;
    }
    if (static_cast<int>(guid) % program.ranks == rank) put<Value>(space, guid);
    ++guid;
  }
  for (detail::SpaceFuture* const one : requested) {
    detail::await(*one);
    EXPECT_EQ(one->failure, nullptr);
    EXPECT_TRUE(static_cast<State<Value>*>(one)->slot.value == value_of<Value>(one->guid));
  }
  for (detail::SpaceFuture* const one : requested) detail::release(*one);
  space.close();
  space.let_go();
}

template <class Value>
void run(const Program& program) {
  std::vector<std::unique_ptr<Rank>> all;
  Network network(program.ranks, program.seed, 2);
  for (int i = 0; i < program.ranks; ++i) all.push_back(std::make_unique<Rank>(network, i));
  std::vector<std::thread> mains;
  for (int rank = 0; rank < program.ranks; ++rank) {
    mains.emplace_back([&, rank] {
      run_rank<Value>(program, rank, all[static_cast<std::size_t>(rank)]->futures);
    });
  }
  for (std::thread& one : mains) one.join();
}

TEST(FuturesOverANetwork, random_programs_read_what_was_put) {
  finish([] {});  // the runtime runs
  for (unsigned seed = 0; seed < 16; ++seed) {
    SCOPED_TRACE(seed);
    run<Words>({1 + static_cast<int>(seed % 8), seed});
    run<Block>({1 + static_cast<int>(seed * 3 % 8), seed});
  }
}

// A rank that keeps a future may ask again for a value that all readers have, at home, too.
TEST(FuturesOverANetwork, a_value_that_was_given_back_is_there_for_who_keeps_a_future) {
  finish([] {});
  std::unique_ptr<Rank> rank;
  Network network(1, 1, 1);
  rank = std::make_unique<Rank>(network, 0);
  auto spec = Program{1, 1}.spec<Words>();
  spec.readers = [](std::uint64_t) { return std::size_t{1}; };
  detail::Space& space = rank->futures.open(spec);
  put<Words>(space, 5);
  detail::SpaceFuture& first = space.future(5);
  detail::SpaceFuture& again = space.future(5);
  EXPECT_EQ(&first, &again);
  detail::release(first);
  detail::release(again);
  EXPECT_THROW((void)space.future(5), Error);
  EXPECT_THROW(put<Words>(space, 5), Error);
  space.close();
  space.let_go();
}

}  // namespace
}  // namespace imbrex::test
