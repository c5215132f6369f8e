// SPDX-License-Identifier: BSD-3-Clause
// Tests the counter of bench/lines with accesses whose moves are known.
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "count.hpp"

namespace {

using bench::lines::Counts;

constexpr int rounds = 1000;

struct alignas(64) Line {
  std::atomic<long> word{0};
};

// The first and the last turn may differ by a move or two.
void require(const char* const what, const std::uint64_t is, const std::uint64_t should_be) {
  if (is + 4 > should_be && is < should_be + 4) return;
  std::fprintf(stderr, "count_test: %s: %llu, but should be %llu\n", what,
               static_cast<unsigned long long>(is), static_cast<unsigned long long>(should_be));
  std::exit(1);
}

Line whose_turn, ball, other, data;

// Two threads take turns: each runs its part of a round when `whose_turn` is its number.
template <class Play>
void play(const long me, const Play play) {
  for (int round = 0; round < rounds; ++round) {
    while (whose_turn.word.load() != me) sched_yield();
    play();
    whose_turn.word.store(1 - me);
  }
}

template <class Play>
Counts count(Play first, Play second) {
  whose_turn.word = 0;
  static Play* partner;
  partner = &second;
  bench::lines::start();
  pthread_t thread;
  pthread_create(&thread, nullptr, [](void*) -> void* {
    play(1, *partner);
    return nullptr;
  }, nullptr);
  play(0, first);
  pthread_join(thread, nullptr);
  return bench::lines::stop();
}

using Player = void (*)();

// Moves of the game itself: those of `whose_turn`, and of `partner`.
std::uint64_t moves_of_turns() {
  return count<Player>([] {}, [] {}).moved;
}

}  // namespace

int main() {
  bench::lines::name_data(&data, sizeof data);
  const std::uint64_t turns = moves_of_turns();
  // The word moves four times in a round: each thread takes it away to write, and then the other
  // one reads it.
  require("turns", turns, 4 * rounds);

  // Both write: the ball moves to each thread in each round, except at the first use.
  const Player write = [] { ball.word.fetch_add(1); };
  require("a ball that both write", count(write, write).moved - turns, 2 * rounds - 1);
  // One writes and one reads: the read moves it, and the next write takes it away again.
  const Player read = [] { (void)ball.word.load(); };
  require("a ball that one writes", count(write, read).moved - turns, 2 * rounds - 1);
  // Both read: one move, to the second thread.
  require("a ball that both read", count(read, read).moved - turns, 1);
  // Lines that the threads do not share stay where they are.
  const Player write_other = [] { other.word.fetch_add(1); };
  require("two balls", count(write, write_other).moved - turns, 0);
  // Data is counted apart.
  const Player write_data = [] { data.word.fetch_add(1); };
  const Counts counts = count(write_data, write_data);
  require("moves of data", counts.data, 2 * rounds - 1);
  require("moves beside data", counts.moved, turns);
  std::printf("passed\n");
}
