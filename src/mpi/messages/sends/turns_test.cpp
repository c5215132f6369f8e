// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/sends/turns.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace imbrex::mpi::sends {
namespace {

constexpr Time second = 1'000'000'000;
constexpr std::int64_t mib = 1024 * 1024;

constexpr Time millisecond = 1'000'000;

// What the tests say of the network. One that looks for new connections sees what has ended.
Moved network;
bool over_tcp = true;

Moved look(const bool look_for_new) noexcept {
  static std::uint64_t ended = 0;
  Moved moved = network;
  if (look_for_new && over_tcp) moved.sent += ended += 1'000'000'000;
  return moved;
}

struct Fixture {
  explicit Fixture(Limits limits = {}) {
    network = {};
    over_tcp = true;
    limits.network = &look;
    turns.limit(limits);
  }

  Turn& make(const ChannelKey key, const std::int64_t bytes, const int urgency = 0,
             const std::uint64_t task = 0) {
    Turn& turn = *all.emplace_back(std::make_unique<Turn>());
    turn.key = key;
    turn.bytes = bytes;
    turn.is_long = bytes > 1024;
    turn.urgency = urgency;
    turn.task = task;
    return turn;
  }
  bool enter(Turn& turn) { return turns.enter(turn, {nullptr, turn.key.peer}, now); }
  Turn* next() { return turns.next(now); }
  void end(Turn& turn) { turns.ended(turn, now); }

  std::vector<std::unique_ptr<Turn>> all;
  Turns turns;
  Time now = 1;
};

TEST(Turns, two_long_ones_go_and_the_third_when_one_has_ended) {
  Fixture it;
  Turn& a = it.make({nullptr, 1, 0}, mib);
  Turn& b = it.make({nullptr, 1, 1}, mib);
  Turn& c = it.make({nullptr, 1, 2}, mib);
  EXPECT_TRUE(it.enter(a));
  EXPECT_TRUE(it.enter(b));
  EXPECT_FALSE(it.enter(c));
  EXPECT_EQ(it.next(), nullptr);
  it.end(b);
  EXPECT_EQ(it.next(), &c);
  EXPECT_TRUE(it.turns.empty());
}

TEST(Turns, many_go_at_once_if_they_are_few_bytes_together) {
  Fixture it;
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(it.enter(it.make({nullptr, 1, i}, mib / 16)));
  EXPECT_FALSE(it.enter(it.make({nullptr, 1, 16}, mib / 16)));
}

TEST(Turns, another_process_is_not_concerned) {
  Fixture it;
  for (int peer = 0; peer < 3; ++peer) {
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(it.enter(it.make({nullptr, peer, i}, mib)));
    EXPECT_FALSE(it.enter(it.make({nullptr, peer, 2}, mib)));
  }
}

TEST(Turns, the_more_urgent_message_of_two_processes_with_room_goes_first) {
  Fixture it({.each = 1, .bytes = 0});
  Turn& to_one = it.make({nullptr, 0, 0}, mib);
  Turn& to_other = it.make({nullptr, 1, 0}, mib);
  EXPECT_TRUE(it.enter(to_one));
  EXPECT_TRUE(it.enter(to_other));
  Turn& low = it.make({nullptr, 0, 1}, mib, 1);
  Turn& high = it.make({nullptr, 1, 1}, mib, 2);
  EXPECT_FALSE(it.enter(low));
  EXPECT_FALSE(it.enter(high));
  it.end(to_one);
  it.end(to_other);
  EXPECT_EQ(it.next(), &high);
  EXPECT_EQ(it.next(), &low);
  EXPECT_EQ(it.next(), nullptr);
}

TEST(Turns, parts_go_to_few_processes_at_a_time) {
  Fixture it;
  const auto part = [&](const int peer, const int tag, const int urgency = 0) -> Turn& {
    Turn& turn = it.make({&it, peer, tag}, mib, urgency);
    turn.of_collective = turn.is_part = true;
    return turn;
  };
  Turn& first = part(1, 0);
  EXPECT_TRUE(it.enter(first));
  EXPECT_TRUE(it.enter(part(2, 0)));
  Turn& third = part(3, 0);
  EXPECT_FALSE(it.enter(third));
  Turn& more_to_the_first = part(1, 1);
  EXPECT_TRUE(it.enter(more_to_the_first));
  EXPECT_TRUE(it.enter(it.make({nullptr, 3, 0}, mib))) << "no part, nor behind one";
  it.end(first);
  EXPECT_EQ(it.next(), nullptr);
  it.end(more_to_the_first);
  EXPECT_EQ(it.next(), &third);
  Turn& fourth = part(4, 0);
  EXPECT_FALSE(it.enter(fourth));
  it.now += 290 * millisecond;
  EXPECT_EQ(it.next(), nullptr) << "who receives parts is ready for them";
  it.now += 20 * millisecond;
  EXPECT_EQ(it.next(), &fourth) << "others receive nothing, and nothing waits for them";
}

TEST(Turns, short_ones_stay_behind_a_long_one_of_their_channel_and_follow_it_at_once) {
  Fixture it;
  Turn& first = it.make({nullptr, 1, -1}, mib);
  EXPECT_TRUE(it.enter(first));
  EXPECT_TRUE(it.enter(it.make({nullptr, 1, -1}, mib)));
  Turn& held = it.make({nullptr, 1, -1}, mib);
  Turn& after = it.make({nullptr, 1, -1}, 8);
  Turn& last = it.make({nullptr, 1, -1}, mib);
  EXPECT_FALSE(it.enter(held));
  EXPECT_FALSE(it.enter(after));
  EXPECT_FALSE(it.enter(last));
  EXPECT_TRUE(it.enter(it.make({nullptr, 2, -1}, 8))) << "to another process";
  EXPECT_TRUE(it.enter(it.make({&it, 1, -1}, 8))) << "on another communicator";
  EXPECT_EQ(it.next(), nullptr);
  it.end(first);
  EXPECT_EQ(it.next(), &held);
  EXPECT_EQ(it.next(), &after);
  EXPECT_EQ(it.next(), nullptr);
}

TEST(Turns, go_by_urgency_then_by_task_then_by_entry) {
  Fixture it({.each = 1, .bytes = 0});
  Turn& running = it.make({nullptr, 1, 0}, mib);
  EXPECT_TRUE(it.enter(running));
  Turn& late_task = it.make({nullptr, 1, 1}, mib, 0, 9);
  Turn& early_task = it.make({nullptr, 1, 2}, mib, 0, 4);
  Turn& second_of_it = it.make({nullptr, 1, 3}, mib, 0, 4);
  Turn& urgent = it.make({nullptr, 1, 4}, mib, 5, 10);
  for (Turn* const turn : {&late_task, &early_task, &second_of_it, &urgent}) {
    EXPECT_FALSE(it.enter(*turn));
  }
  Turn* under_way = &running;
  for (Turn* const expected : {&urgent, &early_task, &second_of_it, &late_task}) {
    it.end(*under_way);
    under_way = it.next();
    ASSERT_EQ(under_way, expected);
    EXPECT_EQ(it.next(), nullptr);
  }
}

TEST(Turns, a_message_before_an_urgent_one_is_as_urgent) {
  Fixture it({.each = 1, .bytes = 0});
  Turn& running = it.make({nullptr, 1, 0}, mib);
  EXPECT_TRUE(it.enter(running));
  Turn& other = it.make({nullptr, 1, 7}, mib, 3);
  Turn& before = it.make({nullptr, 1, 8}, mib, 0);
  Turn& urgent = it.make({nullptr, 1, 8}, 8, 4);
  EXPECT_FALSE(it.enter(other));
  EXPECT_FALSE(it.enter(before));
  EXPECT_FALSE(it.enter(urgent));
  it.end(running);
  EXPECT_EQ(it.next(), &before);
  EXPECT_EQ(it.next(), &urgent);
}

TEST(Turns, a_removed_message_lets_short_ones_follow) {
  Fixture it({.each = 1, .bytes = 0});
  EXPECT_TRUE(it.enter(it.make({nullptr, 1, -1}, mib)));
  Turn& first = it.make({nullptr, 1, -1}, mib);
  Turn& middle = it.make({nullptr, 1, -1}, mib);
  Turn& last = it.make({nullptr, 1, -1}, 8);
  for (Turn* const turn : {&first, &middle, &last}) EXPECT_FALSE(it.enter(*turn));
  it.turns.remove(middle);
  EXPECT_FALSE(Turns::waits(middle));
  EXPECT_EQ(it.next(), nullptr);
  it.turns.remove(first);
  EXPECT_EQ(it.next(), &last);
  EXPECT_TRUE(it.turns.empty());
}

TEST(Turns, force_takes_what_waits_of_one_communicator_and_peer_or_all) {
  Fixture it({.each = 1, .bytes = 0});
  const void* const one = &it;
  EXPECT_TRUE(it.enter(it.make({one, 1, 0}, mib)));
  EXPECT_TRUE(it.enter(it.make({one, 2, 0}, mib)));
  Turn& a = it.make({one, 1, 5}, mib);
  Turn& b = it.make({one, 1, 5}, 8);
  Turn& c = it.make({one, 2, 5}, mib);
  Turn& d = it.make({nullptr, 1, 5}, mib);
  for (Turn* const turn : {&a, &b, &c, &d}) EXPECT_FALSE(it.enter(*turn));
  EXPECT_EQ(it.turns.force(one, 1), &a);
  EXPECT_EQ(it.turns.force(one, 1), &b);
  EXPECT_EQ(it.turns.force(one, 1), nullptr);
  EXPECT_EQ(it.turns.force(one, -1), &c);
  EXPECT_EQ(it.turns.force(one, -1), nullptr);
  EXPECT_EQ(it.turns.force(nullptr, -1), &d);
  EXPECT_TRUE(it.turns.empty());
}

// Sends as many as go until all do; the messages that have gone.
std::deque<Turn*> send_all(Fixture& it, const int messages, const std::int64_t bytes) {
  std::deque<Turn*> gone;
  int entered = 0;
  for (; entered < messages; ++entered) {
    Turn& turn = it.make({nullptr, 1, entered}, bytes);
    if (it.enter(turn)) gone.push_back(&turn);
  }
  while (!it.turns.empty()) {
    it.now += millisecond / 100;
    while (Turn* const turn = it.next()) gone.push_back(turn);
  }
  return gone;
}

TEST(Turns, a_message_that_does_not_move_counts_no_more_after_some_time) {
  Fixture it;
  Turn& a = it.make({nullptr, 1, 0}, mib);
  Turn& b = it.make({nullptr, 1, 1}, mib);
  Turn& c = it.make({nullptr, 1, 2}, mib);
  EXPECT_TRUE(it.enter(a));
  EXPECT_TRUE(it.enter(b));
  EXPECT_FALSE(it.enter(c));
  it.now += millisecond;
  EXPECT_EQ(it.next(), nullptr) << "the network has been looked at once";
  it.now += millisecond;
  EXPECT_EQ(it.next(), &c);
  // The receiver takes the last first, so it is not waited for any more, for a while.
  it.end(c);
  Turn& d = it.make({nullptr, 1, 3}, mib);
  Turn& e = it.make({nullptr, 1, 4}, mib);
  EXPECT_TRUE(it.enter(d));
  EXPECT_TRUE(it.enter(e));
  for (Turn* const turn : {&a, &b, &d, &e}) it.end(*turn);
}

TEST(Turns, messages_replace_the_given_up_ones_and_double_each_time) {
  Fixture it;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(it.enter(it.make({nullptr, 1, i}, 1200000)), i < 2);
  }
  std::vector<int> steps;
  while (!it.turns.empty()) {
    it.now += millisecond;
    int gone = 0;
    while (it.next() != nullptr) ++gone;
    if (gone != 0) steps.push_back(gone);
  }
  EXPECT_EQ(steps, (std::vector<int>{2, 4, 8, 16, 32, 64, 128, 256, 488}));
}

// Methodology: what ends takes as long as its bytes do at some pace, once it is there that the
// receiver wants. So a batch takes this time, and what was waited in vain.
TEST(Turns, a_receiver_of_another_order_waits_for_a_small_part_of_the_time_at_first_and_then_not) {
  for (const double pace : {0.2, 1.0, 10.0}) {
    Fixture it;
    for (int round = 0; round < 8; ++round) {
      const Time begin = it.now;
      std::deque<Turn*> gone = send_all(it, 40, 1200000);
      const auto waited = static_cast<double>(it.now - begin);
      const double whole = pace * 40 * 1200000;
      EXPECT_LE(waited, round == 0 ? whole * 0.15 : 0) << "round " << round << ", pace " << pace;
      while (!gone.empty()) {  // the last first
        it.now += static_cast<Time>(pace * 1200000);
        it.end(*gone.back());
        gone.pop_back();
      }
    }
  }
}

TEST(Turns, a_receiver_that_comes_late_and_takes_them_in_order_gets_them_in_turn_the_next_time) {
  Fixture it;
  for (Turn* const turn : send_all(it, 20, mib)) it.end(*turn);  // all had gone meanwhile
  EXPECT_TRUE(it.enter(it.make({nullptr, 1, 1}, mib)));
  EXPECT_TRUE(it.enter(it.make({nullptr, 1, 2}, mib)));
  EXPECT_FALSE(it.enter(it.make({nullptr, 1, 3}, mib)));
}

TEST(Turns, a_message_without_a_receive_takes_no_room_in_the_end) {
  Fixture it;
  EXPECT_TRUE(it.enter(it.make({nullptr, 1, 0}, 8 * mib)));
  std::deque<Turn*> under_way;
  for (int i = 1; i < 100; ++i) {
    Turn& turn = it.make({nullptr, 1, i}, 8 * mib);
    if (it.enter(turn)) under_way.push_back(&turn);
  }
  int steps = 0;
  for (; !it.turns.empty() && steps < 1000; ++steps) {
    it.now += millisecond;
    while (Turn* const turn = it.next()) under_way.push_back(turn);
    if (under_way.empty()) continue;
    it.end(*under_way.front());
    under_way.pop_front();
  }
  EXPECT_LE(steps, 110);
}

TEST(Turns, a_message_without_a_receive_does_not_make_others_impatient) {
  Fixture it;
  for (int i = 0; i < 3; ++i) (void)it.enter(it.make({nullptr, 1, i}, mib));
  while (it.next() == nullptr) it.now += millisecond;
  it.now += 10 * second;
  EXPECT_TRUE(it.enter(it.make({nullptr, 1, 3}, mib)));  // as many go as were given up
  for (int i = 4; i < 9; ++i) (void)it.enter(it.make({nullptr, 1, i}, mib));
  EXPECT_FALSE(it.turns.empty());
  EXPECT_EQ(it.next(), nullptr);
}

TEST(Turns, slow_messages_count_while_the_network_moves) {
  Fixture it;
  std::deque<Turn*> under_way;
  for (int i = 0; i < 2; ++i) {
    Turn& turn = it.make({nullptr, 1, i}, 2 * mib);
    EXPECT_TRUE(it.enter(turn));
    under_way.push_back(&turn);
  }
  for (int i = 2; i < 40; ++i) EXPECT_FALSE(it.enter(it.make({nullptr, 1, i}, 2 * mib)));
  network.queued = true;
  for (int i = 2; i < 40; ++i) {
    for (int step = 0; step < 1700; ++step) {  // 100 Mbit/s, in packets of 64 KiB
      it.now += millisecond / 10;
      if (step % 53 == 52) network.sent += 65536;
      ASSERT_EQ(it.next(), nullptr) << "message " << i << ", step " << step;
    }
    it.end(*under_way.front());
    under_way.pop_front();
    Turn* const turn = it.next();
    ASSERT_NE(turn, nullptr);
    under_way.push_back(turn);
  }
}

TEST(Turns, a_network_that_moves_other_messages_does_not_keep_one_waiting_for_ever) {
  Fixture it;
  for (int i = 0; i < 3; ++i) (void)it.enter(it.make({nullptr, 1, i}, mib));
  const Time begin = it.now;
  while (it.next() == nullptr) {
    it.now += millisecond / 10;
    network.sent += 100'000;
    ASSERT_LT(it.now - begin, 3 * second);
  }
}

TEST(Turns, where_tcp_carries_nothing_as_many_go_as_pass_between_two_polls) {
  Fixture it;
  over_tcp = false;
  Turn& first = it.make({nullptr, 1, 0}, mib);
  EXPECT_TRUE(it.enter(first));
  EXPECT_TRUE(it.enter(it.make({nullptr, 1, 1}, mib)));
  for (int i = 2; i < 100; ++i) EXPECT_FALSE(it.enter(it.make({nullptr, 1, i}, mib)));
  it.now += millisecond / 2;
  it.end(first);
  int gone = 0;
  while (it.next() != nullptr) ++gone;
  EXPECT_GE(gone, 8);
  EXPECT_LE(gone, 30);
}

TEST(Turns, a_patience_that_is_given_is_the_least) {
  Fixture it({.patience = second});
  for (int i = 0; i < 3; ++i) (void)it.enter(it.make({nullptr, 1, i}, mib));
  const Time begin = it.now;
  while (it.next() == nullptr) it.now += millisecond / 10;
  EXPECT_GE(it.now - begin, second);
}

// Methodology: random messages to three processes enter, end and are taken out while time goes on;
// a model has a plain list for each channel. What goes must be the first of its list; what waits
// and could go, does; and all go in the end.
TEST(Turns, random_messages_keep_the_order_of_their_channels_and_all_go) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](const int end) {
      return static_cast<int>(random() % static_cast<unsigned>(end));
    };
    const Limits limits{
        .each = 1 + below(3), .bytes = below(2) * mib, .with_parts = 1 + below(2)};
    Fixture it(limits);
    std::map<ChannelKey, std::deque<Turn*>> model;
    std::vector<Turn*> under_way;
    std::size_t gone = 0;
    const auto goes = [&](Turn& turn) {
      std::deque<Turn*>& channel = model[turn.key];
      ASSERT_EQ(channel.front(), &turn) << "seed " << seed;
      channel.pop_front();
      under_way.push_back(&turn);
      ++gone;
    };
    const auto drain = [&] {
      while (Turn* const turn = it.next()) goes(*turn);
    };
    std::size_t taken_out = 0;
    for (int step = 0; step < 300; ++step) {
      it.now += below(2'000'000);
      const int drawn = below(10);
      if (drawn < 6) {
        const bool is_long = below(3) != 0;
        Turn& turn = it.make({below(2) == 0 ? nullptr : &it, below(3), below(3)},
                             is_long ? 2000 + below(2 * mib) : below(1000), below(4),
                             static_cast<std::uint64_t>(below(5)));
        turn.is_part = turn.key.communicator != nullptr && is_long;
        model[turn.key].push_back(&turn);
        if (it.enter(turn)) goes(turn);
      } else if (drawn < 9 && !under_way.empty()) {
        const auto place = under_way.begin() + below(static_cast<int>(under_way.size()));
        it.end(**place);
        under_way.erase(place);
      } else if (drawn == 9) {
        std::vector<Turn*> waiting;
        it.turns.for_each([&](const Turn& turn) { waiting.push_back(const_cast<Turn*>(&turn)); });
        if (!waiting.empty()) {
          Turn& turn = *waiting[static_cast<std::size_t>(below(static_cast<int>(waiting.size())))];
          std::erase(model[turn.key], &turn);
          it.turns.remove(turn);
          ++taken_out;
        }
      }
      drain();
      for (const auto& [key, channel] : model) {
        ASSERT_TRUE(channel.empty() || channel.front()->is_long) << "seed " << seed;
      }
    }
    for (int step = 0; step < 1000 && !it.turns.empty(); ++step) {  // nothing ends any more
      it.now += 3 * second;
      drain();
    }
    EXPECT_TRUE(it.turns.empty()) << "seed " << seed;
    EXPECT_EQ(gone + taken_out, it.all.size()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace imbrex::mpi::sends
