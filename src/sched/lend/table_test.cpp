// SPDX-License-Identifier: BSD-3-Clause
#include "sched/lend/table.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "base/arch.hpp"
#include "imbrex/error.hpp"

namespace imbrex::sched::lend {
namespace {

// ---- the moves ---------------------------------------------------------------------------------

constexpr Member a = 1;
constexpr Member b = 2;
constexpr Member c = 3;

Word word(const Member owner, const Member holder, const bool wanted = false) {
  return {.owner = owner, .holder = holder, .wanted = wanted};
}

TEST(LendWord, is_the_same_after_it_was_packed) {
  for (const Word& each : {word(nobody, nobody), word(a, b, true), word(dead_owner, members_max)}) {
    EXPECT_EQ(unpacked(packed(each)), each);
  }
}

TEST(LendWord, goes_from_its_owner_to_a_borrower_and_back) {
  EXPECT_EQ(claimed(word(nobody, nobody), a), word(a, a));
  EXPECT_EQ(lent(word(a, a), a), word(a, nobody));
  EXPECT_EQ(borrowed(word(a, nobody), b), word(a, b));
  EXPECT_EQ(asked_for(word(a, b), a), word(a, b, true));
  EXPECT_EQ(given_back(word(a, b, true), b), word(a, a));
}

TEST(LendWord, is_free_while_its_owner_sleeps) {
  EXPECT_EQ(given_back(word(a, b), b), word(a, nobody));
  EXPECT_TRUE(is_free(word(a, nobody)));
  EXPECT_FALSE(is_free(word(nobody, nobody)));
}

TEST(LendWord, is_moved_by_nobody_else) {
  EXPECT_FALSE(claimed(word(a, a), b));
  EXPECT_FALSE(borrowed(word(a, a), b));
  EXPECT_FALSE(borrowed(word(a, c), b));
  EXPECT_FALSE(borrowed(word(nobody, nobody), b));
  EXPECT_FALSE(lent(word(a, b), b));
  EXPECT_FALSE(asked_for(word(a, b), b));
  EXPECT_FALSE(given_back(word(a, c), b));
  EXPECT_FALSE(given_back(word(a, a), a));
  EXPECT_FALSE(forced(word(a, b), b));
}

TEST(LendWord, is_not_wanted_any_more_when_its_owner_sleeps_again) {
  EXPECT_EQ(lent(word(a, b, true), a), word(a, b));
}

TEST(LendWord, survives_the_death_of_a_process) {
  EXPECT_EQ(buried(word(a, b), b), word(a, nobody));
  EXPECT_EQ(buried(word(a, b, true), b), word(a, a));
  EXPECT_EQ(buried(word(a, a), a), word(dead_owner, nobody));
  EXPECT_EQ(buried(word(a, b, true), a), word(dead_owner, b));
  EXPECT_FALSE(buried(word(a, b), c));
  EXPECT_EQ(borrowed(word(dead_owner, nobody), b), word(dead_owner, b));
  EXPECT_EQ(claimed(word(dead_owner, b), c), word(c, b, true));
}

TEST(LendRule, gives_a_processor_to_the_rank_that_wants_most) {
  const std::vector<std::int64_t> wants{0, 3, 9, 9, -1};
  const auto wanted = [&](const int rank) { return wants[static_cast<std::size_t>(rank)]; };
  EXPECT_EQ(rule::neediest(5, 0, wanted), 2);
  EXPECT_EQ(rule::neediest(5, 2, wanted), 3);
  EXPECT_EQ(rule::neediest(1, 0, wanted), -1);
}

TEST(LendRule, wants_nothing_for_tasks_that_cost_less_than_a_wake_up) {
  EXPECT_EQ(rule::wanted_processors({.ready = 4, .ns_each = 1'000}), 0);
  EXPECT_EQ(rule::wanted_processors({.ready = 40, .ns_each = 1'000}), 40);
  EXPECT_EQ(rule::wanted_processors({.ready = 1, .ns_each = 1'000'000}), 1);
  EXPECT_EQ(rule::wanted_processors({.ready = -1, .ns_each = 1'000'000}), 0);
}

TEST(LendRule, lends_the_processor_of_the_polling_worker_last) {
  constexpr std::uint64_t spin_ns = 100'000;
  EXPECT_TRUE(rule::lends_now({.ns = 6'000, .polls = false, .wanted = true}, spin_ns));
  EXPECT_FALSE(rule::lends_now({.ns = 6'000, .polls = true, .wanted = true}, spin_ns));
  EXPECT_TRUE(rule::lends_now({.ns = 100'000, .polls = true, .wanted = true}, spin_ns));
  EXPECT_FALSE(rule::lends_now({.ns = 1'000'000, .polls = false, .wanted = false}, spin_ns));
}

// ---- the table ---------------------------------------------------------------------------------

std::string name_of_test() {
  return fmt::format("test-{}-{}", getpid(),
                     testing::UnitTest::GetInstance()->current_test_info()->name());
}
bool exists(const std::string& path) {
  struct stat state{};
  return stat(path.c_str(), &state) == 0;
}

TEST(LendTable, lends_a_processor_and_takes_it_back) {
  Table owner(name_of_test());
  Table borrower(name_of_test());
  ASSERT_TRUE(owner.claim(7));
  EXPECT_FALSE(borrower.claim(7));
  borrower.expect(7);
  EXPECT_FALSE(borrower.borrow(7));
  owner.lend(7);
  ASSERT_TRUE(borrower.borrow(7));
  EXPECT_TRUE(borrower.may_run(7));
  EXPECT_FALSE(owner.take_back_if_free(7));
  EXPECT_FALSE(owner.take_back(7));
  EXPECT_FALSE(borrower.may_run(7));
  borrower.give_back(7, 2'000);
  EXPECT_TRUE(owner.holds(7));
  EXPECT_TRUE(owner.await(7, 1));  // its bell has rung
  EXPECT_EQ(owner.lent_ns(), 2'000U);
  EXPECT_EQ(borrower.borrowed_ns(), 2'000U);
}

TEST(LendTable, moves_nothing_for_threads_of_a_process_that_has_left) {
  Table gone(name_of_test());
  ASSERT_TRUE(gone.claim(7));
  gone.leave();
  EXPECT_FALSE(exists(gone.path()));
  Table next(name_of_test());
  Table other(name_of_test());
  ASSERT_TRUE(next.claim(7));
  gone.lend(7);
  gone.want(3);
  EXPECT_TRUE(next.holds(7));
  EXPECT_FALSE(other.others_want());
  gone.leave();
  EXPECT_EQ(other.members(), 2);
}

TEST(LendTable, gives_a_lent_processor_to_the_process_that_wants_most) {
  Table owner(name_of_test());
  Table few(name_of_test());
  Table many(name_of_test());
  ASSERT_TRUE(owner.claim(0));
  few.expect(0);
  many.expect(0);
  few.want(1);
  many.want(5);
  EXPECT_TRUE(owner.others_want());
  owner.lend(0);
  EXPECT_TRUE(many.holds(0));
  EXPECT_TRUE(many.await(0, 1));
  many.want(0);
  many.give_back(0, 0);
  EXPECT_TRUE(few.holds(0));
}

TEST(LendTable, gives_nothing_to_a_process_without_a_worker_for_the_processor) {
  Table owner(name_of_test());
  Table other(name_of_test());
  ASSERT_TRUE(owner.claim(3));
  other.want(1);
  owner.lend(3);
  EXPECT_FALSE(other.holds(3));
  EXPECT_TRUE(owner.take_back_if_free(3));
}

TEST(LendTable, is_private_and_goes_with_its_last_process) {
  std::string path;
  {
    Table first(name_of_test());
    path = first.path();
    struct stat state{};
    ASSERT_EQ(stat(path.c_str(), &state), 0);
    EXPECT_EQ(state.st_mode & 0777, 0600U);
    {
      Table second(name_of_test());
      EXPECT_EQ(first.members(), 2);
    }
    EXPECT_EQ(first.members(), 1);
    EXPECT_TRUE(exists(path));
  }
  EXPECT_FALSE(exists(path));
}

TEST(LendTable, lends_no_processor_of_a_process_that_has_left) {
  Table borrower(name_of_test());
  {
    Table owner(name_of_test());
    ASSERT_TRUE(owner.claim(1));
    owner.lend(1);
  }
  EXPECT_FALSE(borrower.borrow(1));
  EXPECT_TRUE(borrower.claim(1));
}

TEST(LendTable, refuses_a_file_that_others_may_write_to) {
  const std::string path = fmt::format("/dev/shm/imbrex-lend-{}-{}", geteuid(), name_of_test());
  std::FILE* const file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fclose(file);
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  EXPECT_THROW(Table table(name_of_test()), Error);
  unlink(path.c_str());
}

// ---- processes that are killed or stopped ------------------------------------------------------

// Runs `body` in a child, which must not return.
template <class Body>
pid_t fork_with(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(0);
  }
  return child;
}
void kill_and_await(const pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}
template <class Condition>
[[nodiscard]] bool comes_true(const Condition condition) {
  for (int round = 0; round < 10'000; ++round) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

TEST(LendTable, takes_back_what_a_killed_borrower_held) {
  Table owner(name_of_test());
  ASSERT_TRUE(owner.claim(0));
  owner.lend(0);
  const std::string name = name_of_test();
  const pid_t child = fork_with([&name] {
    Table borrower(name);
    (void)borrower.borrow(0);
    pause();
  });
  ASSERT_TRUE(comes_true([&] { return !owner.take_back_if_free(0) || (owner.lend(0), false); }));
  kill_and_await(child);
  EXPECT_FALSE(owner.take_back(0));
  owner.bury_dead();
  EXPECT_TRUE(owner.holds(0));
  EXPECT_EQ(owner.members(), 1);
}

TEST(LendTable, lends_what_a_killed_owner_had) {
  Table borrower(name_of_test());
  const std::string name = name_of_test();
  const pid_t child = fork_with([&name] {
    Table owner(name);
    (void)owner.claim(0);
    pause();
  });
  ASSERT_TRUE(comes_true([&] { return borrower.members() == 2; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  kill_and_await(child);
  EXPECT_FALSE(borrower.borrow(0));
  borrower.bury_dead();
  EXPECT_TRUE(borrower.borrow(0));
}

TEST(LendTable, goes_with_the_next_job_if_its_processes_are_dead) {
  const std::string name = name_of_test();
  const std::string path = fmt::format("/dev/shm/imbrex-lend-{}-{}", geteuid(), name);
  const pid_t child = fork_with([&name] {
    Table table(name);
    pause();
  });
  ASSERT_TRUE(comes_true([&] { return exists(path); }));
  Table meanwhile(name + "-other");
  EXPECT_TRUE(exists(path));
  kill_and_await(child);
  Table afterwards(name + "-another");
  EXPECT_FALSE(exists(path));
}

// Methodology: processes lend and borrow eight processors as fast as they can. A parent kills,
// stops and continues them, and starts others in their place. In the end all are killed, and this
// process must get every processor without waiting for anybody.
TEST(LendTable, survives_processes_that_are_killed_and_stopped) {
  constexpr int processors = 8;
  constexpr int processes = 4;
  const std::string name = name_of_test();
  Table judge(name);
  const auto run = [&name](const int index) {
    Table table(name);
    for (int own = index; own < processors; own += processes) (void)table.claim(own);
    for (int processor = 0; processor < processors; ++processor) table.expect(processor);
    std::minstd_rand random(static_cast<unsigned>(getpid()));
    for (;;) {
      const auto processor = static_cast<int>(random() % processors);
      switch (random() % 6) {
        case 0: table.lend(processor); break;
        case 1: (void)table.take_back(processor); break;
        case 2: (void)table.await(processor, 1 + random() % 100'000); break;
        case 3: table.want(static_cast<std::int64_t>(random() % 3)); break;
        case 4:
          if (table.borrow(processor) || table.holds(processor)) table.give_back(processor, 1);
          break;
        default: if (random() % 64 == 0) table.bury_dead();
      }
    }
  };
  std::vector<pid_t> children;
  for (int index = 0; index < processes; ++index) {
    children.push_back(fork_with([&run, index] { run(index); }));
  }
  std::minstd_rand random(1);
  for (int round = 0; round < 60; ++round) {
    const auto index = static_cast<int>(random() % processes);
    pid_t& child = children[static_cast<std::size_t>(index)];
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    if (random() % 2 == 0) {
      kill(child, SIGSTOP);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      kill(child, SIGCONT);
    } else {
      kill_and_await(child);
      child = fork_with([&run, index] { run(index); });
    }
  }
  for (const pid_t child : children) kill_and_await(child);
  judge.bury_dead();
  EXPECT_EQ(judge.members(), 1);
  for (int processor = 0; processor < processors; ++processor) {
    EXPECT_TRUE(judge.borrow(processor)) << "processor " << processor;
  }
}

// Methodology: threads stand for processes. Each owns one processor, and uses each processor that
// it holds; `users` must never be two.
TEST(LendTable, never_has_two_users_of_a_processor) {
  constexpr int members = 4;
  std::vector<std::atomic<int>> users(members);
  std::atomic<int> doubled{0};
  std::atomic<int> at_start{0};
  std::atomic<int> at_end{0};
  const std::string name = name_of_test();
  const auto run = [&](const int me) {
    Table table(name);
    if (!table.claim(me)) ++doubled;
    for (int each = 0; each < members; ++each) table.expect(each);
    ++at_start;
    while (at_start.load() < members) std::this_thread::yield();
    std::minstd_rand random(static_cast<unsigned>(me) + 1);
    const auto use = [&](const int processor) {
      std::atomic<int>& here = users[static_cast<std::size_t>(processor)];
      if (here.fetch_add(1) != 0) ++doubled;
      base::pause();
      here.fetch_sub(1);
    };
    // In the runtime the worker of each processor does that.
    const auto give_others_back = [&] {
      for (int each = 0; each < members; ++each) {
        if (each != me && table.holds(each)) table.give_back(each, 0);
      }
    };
    for (int round = 0; round < 3'000; ++round) {
      const auto each = static_cast<int>(random() % members);
      if (each == me) {
        table.lend(me);
        while (!table.take_back(me)) {
          give_others_back();
          (void)table.await(me, 20'000);
        }
        use(me);
        continue;
      }
      table.want(static_cast<std::int64_t>(random() % 2));
      if (!table.borrow(each) && !table.holds(each)) continue;
      use(each);
      table.give_back(each, 1);
    }
    table.want(0);
    ++at_end;  // the owners of others may still wait for what this one holds
    while (at_end.load() < members) {
      give_others_back();
      std::this_thread::yield();
    }
  };
  std::vector<std::thread> threads;
  for (int me = 0; me < members; ++me) threads.emplace_back(run, me);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(doubled.load(), 0);
}

}  // namespace
}  // namespace imbrex::sched::lend
