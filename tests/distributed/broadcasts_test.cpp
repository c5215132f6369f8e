// SPDX-License-Identifier: BSD-3-Clause
// Methodology: several ranks in one process, over a network that draws what happens next. A program
// of random sends, whose readers are inserted at random times, is compared with the obvious model:
// every reader gets the bytes of its transfer, once. A second form uses threads, for
// ThreadSanitizer.
#include "distributed/data/copies/broadcasts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "distributed/data/copies/protocol.hpp"
#include "distributed/network.hpp"
#include "distributed/simulated.hpp"
#include "imbrex/scope.hpp"

namespace imbrex::test {
namespace {

using distributed::BroadcastOptions;
using distributed::Broadcasts;
using distributed::Buffer;
using distributed::Bytes;
using distributed::DatumName;
using distributed::Recipient;
using distributed::TreeKind;

constexpr std::uint64_t the_space = 7;
constexpr unsigned programs = 80 + 520 / IMBREX_TEST_SCALE;

[[nodiscard]] std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
}

// Bytes that tell one send from the other.
[[nodiscard]] std::vector<std::byte> pattern(const std::size_t bytes, const std::uint64_t seed) {
  std::vector<std::byte> all(bytes);
  std::uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (std::byte& one : all) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    one = static_cast<std::byte>(state >> 56);
  }
  return all;
}

// One reader of one send.
struct Reader {
  const std::vector<std::byte>* expected = nullptr;
  std::atomic<int>* left = nullptr;  // readers and sends that are not at their end
  std::atomic<int> arrived{0}, passed_on{0}, wrong{0};
  std::string error;

  [[nodiscard]] distributed::Incoming incoming() {
    return {[](void* const context, Buffer* const buffer, const std::exception_ptr why) noexcept {
              Reader& self = *static_cast<Reader*>(context);
              if (buffer != nullptr) {
                const auto bytes = buffer->bytes();
                if (bytes.size() != self.expected->size() ||
                    !std::equal(bytes.begin(), bytes.end(), self.expected->begin()) ||
                    reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 != 0) {
                  ++self.wrong;
                }
                buffer->release();
              } else {
                self.error = text_of(why);
              }
              if (self.passed_on != 0) ++self.wrong;
              ++self.arrived;
            },
            [](void* const context) noexcept {
              Reader& self = *static_cast<Reader*>(context);
              if (self.arrived != 1) ++self.wrong;
              ++self.passed_on;
              --*self.left;
            },
            this};
  }
};

struct Send {
  std::vector<std::byte> data;
  std::atomic<int>* left = nullptr;
  std::atomic<int> ended{0};
  std::string error;
  static void end(void* const context, const std::exception_ptr why) noexcept {
    Send& self = *static_cast<Send*>(context);
    if (why != nullptr) self.error = text_of(why);
    ++self.ended;
    --*self.left;
  }
};

// Ranks on a simulated network.
struct Ranks {
  std::vector<std::unique_ptr<Broadcasts>> all;
  Simulated network;

  Ranks(const int ranks, const unsigned seed, const BroadcastOptions& options)
      : network(ranks, seed) {
    for (int rank = 0; rank < ranks; ++rank) {
      all.push_back(std::make_unique<Broadcasts>(network.transfers(rank), options));
      network.set_handler(rank, [this, rank](const int from, const Bytes message) {
        of(rank).receive(from, message);
      });
    }
  }
  [[nodiscard]] Broadcasts& of(const int rank) { return *all[static_cast<std::size_t>(rank)]; }
  void open_all() {
    for (const auto& one : all) one->open_space(the_space, "tiles");
  }
  void run() {
    while (network.step()) {
    }
  }
  [[nodiscard]] std::string describe() {
    std::string text;
    for (const auto& one : all) one->describe(the_space, 20, text);
    return text;
  }
};

// Sums over all ranks.
[[nodiscard]] Broadcasts::Counters sums(const Ranks& ranks) {
  Broadcasts::Counters all;
  for (const auto& one : ranks.all) {
    const Broadcasts::Counters counters = one->counters();
    all.broadcasts += counters.broadcasts;
    all.sends += counters.sends;
    all.copies_as_root += counters.copies_as_root;
    all.copies_as_relay += counters.copies_as_relay;
    all.copies_inline += counters.copies_inline;
    all.bytes_as_root += counters.bytes_as_root;
    all.bytes_as_relay += counters.bytes_as_relay;
    all.arrived += counters.arrived;
    all.early += counters.early;
    all.handed_back += counters.handed_back;
    all.served_again += counters.served_again;
    all.failed += counters.failed;
    all.early_bytes_most = std::max(all.early_bytes_most, counters.early_bytes_most);
  }
  return all;
}

// No rank knows more of a list than what it has to pass on: all that a relay names to others was
// named to it.
class Lists {
 public:
  void see(const int from, const int to, const Bytes message) {
    distributed::DataHead head;
    std::memcpy(&head, message.data(), sizeof head);
    if (head.message != distributed::DataMessage::copy) return;
    std::vector<distributed::Stop> list(head.count);
    if (!list.empty()) {
      std::memcpy(list.data(), message.data() + sizeof head,
                  list.size() * sizeof(distributed::Stop));
    }
    const std::pair datum(head.datum.datum, head.root);
    const auto& mine = known_[{datum, from}];
    auto& theirs = known_[{datum, to}];
    if (from != head.root && !mine.contains(to)) ++too_much;
    for (const distributed::Stop& one : list) {
      const auto rank = static_cast<int>(one.rank);
      if (from != head.root && !mine.contains(rank)) ++too_much;
      theirs.insert(rank);
    }
    lists_most = std::max<std::size_t>(lists_most, list.size());
  }
  int too_much = 0;
  std::size_t lists_most = 0;

 private:
  using Datum = std::pair<std::uint64_t, int>;
  std::map<std::pair<Datum, int>, std::set<int>> known_;
};

// ---- random programs -------------------------------------------------------------------------

// The steps of one program, drawn from a seed.
struct Program {
  explicit Program(const unsigned seed) : random(seed) {
    ranks = 2 + static_cast<int>(random() % 16);
    constexpr TreeKind kinds[] = {TreeKind::automatic, TreeKind::star, TreeKind::binomial,
                                  TreeKind::chain, TreeKind::binary};
    options.kind = kinds[random() % 5];
    options.chain_from = 4000 + random() % 4000;
    options.segment = 1000 + random() % 3000;
    options.window = 1 + random() % 4;
    options.early_bytes_max = random() % 3 == 0 ? 0 : random() % 60000;
    options.early_payloads_max = random() % 3 == 0 ? 1 : 16;
    options.inline_max = random() % 4 == 0 ? 0 : 3500;
  }
  [[nodiscard]] std::size_t size() {
    const std::size_t around[] = {0, 1, options.inline_max, options.inline_max + 1, 3900, 3968,
                                  options.chain_from - 1, options.chain_from, options.segment * 3,
                                  options.segment * 3 + 1, options.chain_from * 5 + 17};
    return random() % 3 == 0 ? random() % 30000 : around[random() % std::size(around)];
  }
  std::mt19937 random;
  int ranks = 0;
  BroadcastOptions options;
};

struct Outcome {
  int failed_readers = 0;
  int failed_sends = 0;
};

// One program on its ranks.
class Run {
 public:
  Run(const unsigned seed, const Simulated::Faults& faults)
      : seed_(seed), program_(seed), ranks_(program_.ranks, seed, program_.options) {
    ranks_.network.faults = faults;
    ranks_.network.watch = [&](const int from, const int to, const Bytes message) {
      lists_.see(from, to, message);
    };
    std::vector<int> nodes;
    for (int rank = 0; rank < program_.ranks; ++rank) {
      nodes.push_back(rank / 3);
      if (draw(6) == 0) ranks_.network.set_slow(rank, true);
    }
    if (draw(2) == 0) {
      for (const auto& one : ranks_.all) one->set_nodes(the_space, nodes);
    }
    const std::size_t sends = 1 + draw(24);
    for (std::size_t i = 0; i < sends; ++i) add_send(i);
  }

  // Spaces open while messages for them are in flight, but before their own ranks use them.
  void run() {
    std::vector<int> unopened;
    for (int rank = 0; rank < program_.ranks; ++rank) unopened.push_back(rank);
    std::shuffle(unopened.begin(), unopened.end(), program_.random);
    std::shuffle(calls_.begin(), calls_.end(), program_.random);
    std::vector<bool> is_open(unopened.size());
    const auto open = [&](const int rank) {
      if (is_open[static_cast<std::size_t>(rank)]) return;
      is_open[static_cast<std::size_t>(rank)] = true;
      ranks_.of(rank).open_space(the_space, "tiles");
    };
    for (const Call& one : calls_) {
      open(one.rank);
      one.call();
      const unsigned patience = draw(5) == 0 ? 200 : draw(6);
      for (unsigned i = 0; i < patience && ranks_.network.step(); ++i) {
      }
    }
    for (const int rank : unopened) open(rank);
    ranks_.run();
  }

  void check(Outcome& outcome) {
    ASSERT_EQ(left_, 0) << "seed " << seed_ << "\n" << ranks_.describe();
    for (const auto& one : sends_) {
      EXPECT_EQ(one->ended, 1);
      if (!one->error.empty()) ++outcome.failed_sends;
    }
    for (const auto& one : readers_) {
      EXPECT_EQ(one->arrived, 1) << "seed " << seed_;
      EXPECT_EQ(one->passed_on, 1) << "seed " << seed_;
      EXPECT_EQ(one->wrong, 0) << "seed " << seed_;
      if (one->error.empty()) continue;
      ++outcome.failed_readers;
      EXPECT_NE(one->error.find("of space \"tiles\" from rank"), std::string::npos) << one->error;
    }
    EXPECT_EQ(lists_.too_much, 0) << "seed " << seed_;
    EXPECT_LT(lists_.lists_most, static_cast<std::size_t>(program_.ranks) - 1);
    for (const auto& one : ranks_.all) {
      EXPECT_EQ(one->under_way(the_space), 0U) << "seed " << seed_ << "\n" << ranks_.describe();
      EXPECT_EQ(one->close_space(the_space), nullptr);
    }
    ranks_.run();
    for (int rank = 0; rank < program_.ranks; ++rank) {
      EXPECT_EQ(ranks_.network.expecting(rank), 0);
    }
    const Broadcasts::Counters all = sums(ranks_);
    EXPECT_LE(all.early_bytes_most, program_.options.early_bytes_max);
    const Simulated::Faults& faults = ranks_.network.faults;
    if (faults.deliver + faults.offer + faults.refused != 0) return;
    EXPECT_EQ(all.arrived, readers_.size());
    EXPECT_EQ(all.copies_as_root + all.copies_as_relay, readers_.size());
    EXPECT_LE(ranks_.network.moving_most, program_.options.window);
    EXPECT_EQ(all.failed, 0U);
  }

 private:
  struct Call {
    int rank;
    std::function<void()> call;
  };
  [[nodiscard]] unsigned draw(const unsigned below) {
    return static_cast<unsigned>(program_.random()) % below;
  }

  // A few data, each sent several times by several ranks: tickets grow, and come out of order.
  void add_send(const std::size_t number) {
    const int root = static_cast<int>(draw(static_cast<unsigned>(program_.ranks)));
    const DatumName datum{the_space, draw(3)};
    sends_.push_back(std::make_unique<Send>());
    Send& send = *sends_.back();
    send.data = pattern(program_.size(), seed_ * 1000u + number);
    send.left = &left_;
    ++left_;
    std::vector<Recipient> to;
    for (int rank = 0; rank < program_.ranks; ++rank) {
      if (rank == root || draw(3) == 0) continue;
      const std::uint32_t ticket = tickets_[{datum.datum, root, rank}]++;
      to.push_back({rank, ticket, static_cast<std::int32_t>(draw(3)),
                    static_cast<std::int32_t>(draw(2) * draw(1'000'000'000))});
      readers_.push_back(std::make_unique<Reader>());
      Reader& reader = *readers_.back();
      reader.expected = &send.data;
      reader.left = &left_;
      ++left_;
      calls_.push_back({rank, [this, &reader, &send, rank, ticket, root, datum] {
                          ranks_.of(rank).expect(datum, root, ticket, send.data.size(),
                                                 reader.incoming());
                        }});
    }
    calls_.push_back({root, [this, &send, to, root, datum] {
                        ranks_.of(root).send(datum, to, send.data, &Send::end, &send);
                      }});
  }

  const unsigned seed_;
  Program program_;
  Ranks ranks_;
  Lists lists_;
  std::atomic<int> left_{0};
  std::map<std::tuple<std::uint64_t, int, int>, std::uint32_t> tickets_;
  std::vector<std::unique_ptr<Send>> sends_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::vector<Call> calls_;  // in any order
};

void run_program(const unsigned seed, const Simulated::Faults& faults, Outcome& outcome) {
  Run run(seed, faults);
  run.run();
  run.check(outcome);
}

TEST(BroadcastsTest, every_reader_gets_the_bytes_of_its_transfer_in_random_programs) {
  Outcome outcome;
  for (unsigned seed = 0; seed < programs && !HasFatalFailure(); ++seed) {
    run_program(seed, {}, outcome);
  }
  EXPECT_EQ(outcome.failed_readers + outcome.failed_sends, 0);
}

TEST(BroadcastsTest, transfers_that_fail_end_in_errors_that_name_datum_and_ranks) {
  Outcome outcome;
  for (unsigned seed = 0; seed < programs / 2 && !HasFatalFailure(); ++seed) {
    Simulated::Faults faults;
    (seed % 3 == 0 ? faults.deliver : seed % 3 == 1 ? faults.refused : faults.offer) = 30;
    run_program(seed + 1000, faults, outcome);
  }
  EXPECT_GT(outcome.failed_readers, 10);
  EXPECT_GT(outcome.failed_sends, 5);
}

// ---- single cases ----------------------------------------------------------------------------

// One send of rank 0 to all others.
struct OneSend {
  Ranks ranks;
  std::atomic<int> left{0};
  Send send;
  std::vector<std::unique_ptr<Reader>> readers;
  std::vector<Recipient> to;

  OneSend(const int count, const std::size_t bytes, const BroadcastOptions& options)
      : ranks(count, 1, options) {
    ranks.open_all();
    send.data = pattern(bytes, 5);
    send.left = &left;
    ++left;
    for (int rank = 1; rank < count; ++rank) {
      to.push_back({rank, 0, 0});
      readers.push_back(std::make_unique<Reader>());
      readers.back()->expected = &send.data;
      readers.back()->left = &left;
      ++left;
    }
  }
  void start() { ranks.of(0).send({the_space, 1}, to, send.data, &Send::end, &send); }
  void expect(const int rank) {
    ranks.of(rank).expect({the_space, 1}, 0, 0, send.data.size(), reader(rank).incoming());
  }
  [[nodiscard]] Reader& reader(const int rank) {
    return *readers[static_cast<std::size_t>(rank) - 1];
  }
};

TEST(BroadcastsTest, the_root_sends_one_copy_of_long_data_and_log2_of_short_ones) {
  for (int count = 2; count <= 17; ++count) {
    for (const std::size_t bytes : {std::size_t{100}, std::size_t{200000}, std::size_t{2000000}}) {
      OneSend one(count, bytes, {});
      for (int rank = 1; rank < count; ++rank) one.expect(rank);
      one.start();
      one.ranks.run();
      EXPECT_EQ(one.left, 0);
      const std::uint64_t copies = one.ranks.of(0).counters().copies_as_root;
      if (bytes == 2000000 && count <= 9) {
        EXPECT_EQ(copies, 1U);
      } else {
        EXPECT_LE(copies, static_cast<std::uint64_t>(std::bit_width(unsigned(count) - 1)));
      }
    }
  }
}

TEST(BroadcastsTest, a_rank_without_reader_passes_on_within_its_budget) {
  OneSend one(4, 1 << 20, {});
  one.expect(2);
  one.expect(3);
  one.start();
  one.ranks.run();
  EXPECT_EQ(one.reader(2).arrived + one.reader(3).arrived, 2);
  EXPECT_EQ(one.ranks.of(1).counters().early, 1U);
  EXPECT_EQ(one.ranks.of(1).counters().early_bytes_most, 1U << 20);
  EXPECT_EQ(one.send.ended, 1);
  one.expect(1);  // it is here already
  EXPECT_EQ(one.reader(1).arrived, 1);
  EXPECT_EQ(one.left, 0);
}

TEST(BroadcastsTest, a_rank_without_room_hands_its_list_back_and_gets_its_copy_last) {
  BroadcastOptions options;
  options.early_bytes_max = 0;
  OneSend one(5, 1 << 20, options);
  one.expect(3);
  one.start();
  one.ranks.run();
  // Ranks 1, 2 and 4 have none, so the root serves them; rank 3 has its data.
  EXPECT_EQ(one.reader(3).arrived, 1);
  EXPECT_EQ(one.send.ended, 0);
  const std::string text = one.ranks.describe();
  EXPECT_NE(text.find("datum 1 of space \"tiles\" from rank 0 (transfer 0) waits on rank 0 for a "
                      "reader on rank 1"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 2: has inserted no reader yet"), std::string::npos) << text;
  for (const int rank : {4, 1, 2}) {
    one.expect(rank);
    one.ranks.run();
    EXPECT_EQ(one.reader(rank).arrived, 1);
  }
  EXPECT_EQ(one.left, 0);
  EXPECT_EQ(one.ranks.of(0).counters().served_again, 3U + 2U);
  EXPECT_EQ(one.ranks.of(1).counters().handed_back, 1U);
}

TEST(BroadcastsTest, the_report_draws_the_tree_that_a_rank_knows) {
  OneSend one(4, 1 << 20, {});
  one.start();
  EXPECT_EQ(one.ranks.describe(),
            "  rank 0 sends datum 1 of space \"tiles\", 1048576 bytes in 18 segments, to a tree "
            "(chain):\n"
            "    `- rank 1: has not answered yet\n"
            "       `- rank 2\n"
            "          `- rank 3\n");
  one.expect(3);
  std::string text;
  one.ranks.of(3).describe(the_space, 5, text);
  EXPECT_EQ(text, "  rank 3 waits for datum 1 of space \"tiles\" from rank 0 (transfer 0): nothing "
                  "has arrived\n");
  one.expect(1);
  one.expect(2);
  one.ranks.run();
  EXPECT_EQ(one.left, 0);
  EXPECT_EQ(one.ranks.describe(), "");
}

TEST(BroadcastsTest, higher_priorities_overtake_what_waits_for_the_same_rank) {
  BroadcastOptions options;
  options.window = 1;
  Ranks ranks(2, 3, options);
  ranks.open_all();
  std::atomic<int> left{0};
  std::vector<std::unique_ptr<Send>> sends;
  std::vector<std::unique_ptr<Reader>> readers;
  constexpr std::uint64_t count = 12;
  for (std::uint64_t i = 0; i < count; ++i) {
    sends.push_back(std::make_unique<Send>());
    sends.back()->data = pattern(1 << 20, i);
    sends.back()->left = &left;
    readers.push_back(std::make_unique<Reader>());
    readers.back()->expected = &sends.back()->data;
    readers.back()->left = &left;
    left += 2;
    ranks.of(1).expect({the_space, i}, 0, 0, 1 << 20, readers.back()->incoming());
    ranks.of(0).send({the_space, i}, {{1, 0, i == count - 1 ? 9 : 0}}, sends.back()->data,
                     &Send::end, sends.back().get());
  }
  while (readers.back()->arrived == 0) ASSERT_TRUE(ranks.network.step());
  int before = 0;
  for (const auto& one : readers) before += one->arrived;
  EXPECT_LE(before, 3);
  ranks.run();
  EXPECT_EQ(left, 0);
}

TEST(BroadcastsTest, wrong_use_is_refused) {
  Ranks ranks(3, 1, {});
  std::atomic<int> left{1};
  Send send;
  send.left = &left;
  Reader reader;
  reader.left = &left;
  reader.expected = &send.data;
  Broadcasts& one = ranks.of(0);
  const auto try_send = [&](const std::vector<Recipient>& to) {
    one.send({the_space, 1}, to, {}, &Send::end, &send);
  };
  EXPECT_THROW(try_send({{1, 0, 0}}), Error) << "not open";
  EXPECT_THROW(one.expect({the_space, 1}, 1, 0, 8, reader.incoming()), Error) << "not open";
  ranks.open_all();
  EXPECT_THROW(one.open_space(the_space, "again"), Error);
  EXPECT_THROW(try_send({{1, 0, 0}, {1, 1, 0}}), Error);
  EXPECT_THROW(try_send({{0, 0, 0}}), Error);
  EXPECT_THROW(try_send({{-1, 0, 0}}), Error);
  one.expect({the_space, 1}, 1, 0, 8, reader.incoming());
  EXPECT_THROW(one.expect({the_space, 1}, 1, 0, 8, reader.incoming()), Error);
  try_send({});
  EXPECT_EQ(left, 0);
  try_send({{77, 0, 0}});
  EXPECT_NE(send.error.find("datum 1 of space \"tiles\" from rank 0 to rank 77"),
            std::string::npos) << send.error;
  const std::exception_ptr error = one.close_space(the_space);
  ASSERT_NE(error, nullptr);
  EXPECT_NE(text_of(error).find("rank 0 waits for datum 1 of space \"tiles\" from rank 1"),
            std::string::npos) << text_of(error);
  ranks.run();
  EXPECT_EQ(one.under_way(the_space), 0U);
}

TEST(BroadcastsTest, ranks_that_disagree_about_the_size_are_told) {
  for (const std::size_t bytes : {std::size_t{10}, std::size_t{50000}}) {
    OneSend one(3, bytes, {});
    one.start();
    one.expect(2);
    one.ranks.of(1).expect({the_space, 1}, 0, 0, bytes + 1, one.reader(1).incoming());
    one.ranks.run();
    EXPECT_EQ(one.left, 0);
    EXPECT_EQ(one.reader(2).error, "");
    EXPECT_NE(one.reader(1).error.find("and rank 1 expects " + std::to_string(bytes + 1)),
              std::string::npos) << one.reader(1).error;
  }
}

TEST(BroadcastsTest, a_copy_to_a_closed_space_fails_at_its_sender_and_others_get_theirs) {
  OneSend one(4, 1 << 20, {});
  EXPECT_EQ(one.ranks.of(1).close_space(the_space), nullptr);
  one.expect(2);
  one.expect(3);
  one.start();
  one.ranks.run();
  EXPECT_EQ(one.reader(2).arrived + one.reader(3).arrived, 2);
  EXPECT_EQ(one.send.ended, 1);
  EXPECT_NE(one.send.error.find("of space \"tiles\" from rank 0 to rank 1 has failed"),
            std::string::npos) << one.send.error;
  EXPECT_NE(one.send.error.find("closed the space"), std::string::npos) << one.send.error;
}

TEST(BroadcastsTest, a_space_that_is_closed_with_copies_under_way_lets_others_have_theirs) {
  for (const std::size_t room : {std::size_t{0}, std::size_t{64} << 20}) {
    for (int steps = 0; steps < 60; ++steps) {
      BroadcastOptions options;
      options.early_bytes_max = room;
      OneSend one(4, 1 << 20, options);
      one.expect(2);
      one.expect(3);
      one.start();
      for (int i = 0; i < steps && one.ranks.network.step(); ++i) {
      }
      const bool known = one.ranks.of(1).under_way(the_space) != 0;
      const std::exception_ptr error = one.ranks.of(1).close_space(the_space);
      EXPECT_EQ(error != nullptr, known);
      one.ranks.run();
      EXPECT_EQ(one.reader(2).arrived + one.reader(3).arrived, 2);
      EXPECT_EQ(one.send.ended, 1);
      EXPECT_EQ(one.ranks.of(1).under_way(the_space), 0U);
    }
  }
}

// ---- threads ---------------------------------------------------------------------------------

// A rank whose messages come on threads of the network, and whose transfers come on channels of
// their own, so that they overtake messages and each other. It handles one thing at a time, like
// active messages.
class ThreadedRank {
 public:
  static constexpr int channels = 3;
  ThreadedRank(Network& network, const int ranks, const int rank)
      : way_(network, ranks, rank), broadcasts(way_, options()) {
    for (int channel = 0; channel < channels; ++channel) {
      network.set_handler(rank + channel * ranks, [this, channel, ranks](int from, Bytes bytes) {
        const std::lock_guard guard(handling_);
        channel == 0 ? broadcasts.receive(from % ranks, bytes) : way_.take(bytes);
      });
    }
  }

 private:
  [[nodiscard]] static BroadcastOptions options() {
    BroadcastOptions some;
    some.chain_from = 8000;
    some.segment = 3000;
    some.early_bytes_max = 20000;
    some.early_payloads_max = 3;
    return some;
  }
  struct Way final : distributed::Transfers {
    Way(Network& its_network, const int its_ranks, const int its)
        : network(its_network), ranks(its_ranks), number(its) {}
    [[nodiscard]] int rank() const noexcept override { return number; }
    void send(const int to, const Bytes head, const Bytes body) override {
      network.carrier(number).send(to, head, body);
    }
    void flush() noexcept override {}
    distributed::Landing offer(int, const std::span<std::byte> memory,
                               const distributed::Ended ended,
                               void* const context) override {
      const std::lock_guard guard(mutex);
      open[++last] = {memory, ended, context};
      return {last, number, memory.size()};
    }
    void deliver(const distributed::Landing& landing, const Bytes data,
                 const distributed::Ended ended, void* const context) override {
      const int channel = 1 + static_cast<int>(++turn % (channels - 1));
      network.carrier(number).send(landing.rank + channel * ranks,
                                   distributed::bytes_of(landing.tag), data);
      const int tag = offer(0, {}, ended, context).tag;
      network.carrier(number).send(number + channel * ranks, distributed::bytes_of(tag), {});
    }
    void take(const Bytes bytes) {
      int tag = 0;
      std::memcpy(&tag, bytes.data(), sizeof tag);
      Offered offered{};
      if (const std::lock_guard guard(mutex); true) offered = open.extract(tag).mapped();
      const Bytes data = bytes.subspan(sizeof tag);
      if (!data.empty()) std::memcpy(offered.memory.data(), data.data(), data.size());
      offered.ended(offered.context, nullptr);
    }
    void expect() override {}
    void expect_no_more() noexcept override {}
    struct Offered {
      std::span<std::byte> memory;
      distributed::Ended ended;
      void* context;
    };
    Network& network;
    const int ranks;
    const int number;
    std::atomic<unsigned> turn{0};
    std::mutex mutex;
    int last = 0;
    std::map<int, Offered> open;
  };
  std::mutex handling_;
  Way way_;

 public:
  Broadcasts broadcasts;
};

TEST(BroadcastsTest, threads_send_and_expect_while_messages_are_handled) {
  for (int ranks = 2; ranks <= 8; ranks += 3) {
    constexpr std::uint64_t data = 60;
    std::atomic<int> left{0};
    std::vector<std::unique_ptr<ThreadedRank>> all;
    std::vector<std::unique_ptr<Send>> sends;
    std::vector<std::unique_ptr<Reader>> readers;
    Network network(ranks * ThreadedRank::channels, static_cast<unsigned>(ranks), 3);
    for (int rank = 0; rank < ranks; ++rank) {
      all.push_back(std::make_unique<ThreadedRank>(network, ranks, rank));
      all.back()->broadcasts.open_space(the_space, "tiles");
    }
    // Datum i goes from rank i modulo the ranks to all others.
    for (std::uint64_t i = 0; i < data; ++i) {
      sends.push_back(std::make_unique<Send>());
      sends.back()->data = pattern((i * 7919) % 20000, i);
      sends.back()->left = &left;
      ++left;
      for (int rank = 0; rank < ranks; ++rank) {
        readers.push_back(std::make_unique<Reader>());
        readers.back()->expected = &sends.back()->data;
        readers.back()->left = &left;
      }
      left += ranks - 1;
    }
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      Broadcasts& own = all[static_cast<std::size_t>(rank)]->broadcasts;
      threads.emplace_back([&, rank] {
        for (std::uint64_t i = 0; i < data; ++i) {
          const int root = static_cast<int>(i % static_cast<std::uint64_t>(ranks));
          if (root == rank) continue;
          Reader& reader = *readers[i * static_cast<std::uint64_t>(ranks) +
                                    static_cast<std::uint64_t>(rank)];
          own.expect({the_space, i}, root, 0, sends[i]->data.size(), reader.incoming());
          if (i % 8 == 0) std::this_thread::yield();
        }
      });
      threads.emplace_back([&, rank] {
        for (std::uint64_t i = static_cast<std::uint64_t>(rank); i < data;
             i += static_cast<std::uint64_t>(ranks)) {
          std::vector<Recipient> to;
          for (int other = 0; other < ranks; ++other) {
            if (other != rank) to.push_back({other, 0, static_cast<std::int32_t>(i % 3)});
          }
          own.send({the_space, i}, to, sends[i]->data, &Send::end, sends[i].get());
          std::string text;
          own.describe(the_space, 3, text);
        }
      });
    }
    for (std::thread& one : threads) one.join();
    while (left != 0) std::this_thread::yield();
    for (const auto& one : sends) EXPECT_EQ(one->error, "");
    for (std::size_t i = 0; i < readers.size(); ++i) {
      EXPECT_EQ(readers[i]->wrong, 0);
      EXPECT_EQ(readers[i]->error, "");
    }
    for (const auto& one : all) {
      while (one->broadcasts.under_way(the_space) != 0) std::this_thread::yield();
    }
  }
}

}  // namespace
}  // namespace imbrex::test
