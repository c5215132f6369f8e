// SPDX-License-Identifier: BSD-3-Clause
// Each kind of hang is planted as facts; and programs that go on get no certain cause.
#include "diagnosis/causes.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace imbrex::diagnosis {
namespace {

Communicator world(int ranks) {
  Communicator comm{.name = "MPI_COMM_WORLD", .id = 1};
  for (int rank = 0; rank < ranks; ++rank) comm.members.push_back(rank);
  return comm;
}
Communicator named(const char* name, int ranks) {
  Communicator comm = world(ranks);
  comm.name = name;
  comm.id = 0;
  return comm;
}

// Ranks whose tasks all wait.
std::vector<RankFacts> stopped(int ranks) {
  std::vector<RankFacts> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back({.rank = rank, .ranks = ranks, .host = "node7", .process = 4711 + rank,
                   .still_ms = 30'000, .may_continue = false});
  }
  return all;
}

Wait receive(int from, int tag, int ranks, const char* task = "\"main\"") {
  return {.task = 1, .task_text = task, .kind = WaitKind::receive, .call = "MPI_Recv",
          .comm = world(ranks), .peer = from, .peer_in_comm = from, .tag = tag, .bytes = 64};
}
Wait send(int to, int tag, int ranks) {
  Wait wait = receive(to, tag, ranks);
  wait.kind = WaitKind::send;
  wait.call = "MPI_Send";
  wait.bytes = 1 << 20;
  return wait;
}
Wait collective(const char* call, int ranks, int root = none) {
  return {.task = 1, .task_text = "\"main\"", .kind = WaitKind::collective, .call = call,
          .comm = world(ranks), .peer = root, .peer_in_comm = root};
}
Wait on_tasks(std::uint64_t task, const char* text, WaitKind kind, const char* call,
              std::vector<std::uint64_t> tasks) {
  return {.task = task, .task_text = text, .kind = kind, .call = call, .tasks = std::move(tasks)};
}
Message message(int from, int tag, const Communicator& comm) {
  return {.comm = comm, .source = from, .source_in_comm = from, .tag = tag, .bytes = 64};
}

Finding first_of(const std::vector<RankFacts>& all) {
  const std::vector<Finding> findings = find_causes(all);
  return findings.empty() ? Finding{Cause::silent_rank, false, "nothing", "", {}}
                          : findings.front();
}

void expect(const std::vector<RankFacts>& all, Cause cause, const std::string& sentence) {
  const Finding first = first_of(all);
  EXPECT_EQ(first.cause, cause);
  EXPECT_EQ(first.text(), sentence);
  EXPECT_FALSE(first.advice.empty());
  EXPECT_FALSE(first.advice.ends_with('.'));
}

TEST(Causes, a_rank_that_is_missing_in_a_collective_is_named_with_its_own_wait) {
  auto all = stopped(4);
  for (const int rank : {0, 1, 3}) {
    all[static_cast<std::size_t>(rank)].waits = {collective("MPI_Allreduce", 4)};
  }
  all[2].waits = {receive(3, 5, 4)};
  expect(all, Cause::missing_rank,
         "rank 2 has not come to the MPI_Allreduce on MPI_COMM_WORLD in which ranks 0, 1, 3 wait: "
         "it waits in MPI_Recv from 3, tag 5, on MPI_COMM_WORLD, in \"main\"");
  all[2].waits.clear();
  all[2].state = RankState::ended;
  expect(all, Cause::missing_rank,
         "rank 2 has not come to the MPI_Allreduce on MPI_COMM_WORLD in which ranks 0, 1, 3 wait: "
         "it has ended");
  all[2].state = RankState::answers;
  all[2].running = {"\"x\" (a.cpp:1)"};
  expect(all, Cause::missing_rank,
         "perhaps: rank 2 has not come to the MPI_Allreduce on MPI_COMM_WORLD in which ranks 0, 1, "
         "3 wait: it runs \"x\" (a.cpp:1)");
}

TEST(Causes, ranks_that_have_left_a_rooted_collective_are_not_blamed_for_certain) {
  auto all = stopped(3);
  all[0].waits = {collective("MPI_Reduce", 3, 0)};
  all[1].waits = {receive(0, 5, 3)};
  all[2].waits = {receive(0, 6, 3)};
  EXPECT_FALSE(first_of(all).is_certain);
  all[2].waits = {collective("MPI_Barrier", 3)};  // rank 1 is missing in both
  for (const Finding& finding : find_causes(all)) EXPECT_NE(finding.cause, Cause::other_order);
  all = stopped(3);
  for (const std::size_t rank : {1, 2}) all[rank].waits = {collective("MPI_Bcast", 3, 0)};
  all[0].waits = {receive(1, 5, 3)};
  EXPECT_TRUE(first_of(all).is_certain);
}

TEST(Causes, a_rank_under_another_name_of_the_communicator_is_not_missing) {
  auto all = stopped(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    Wait wait = collective("MPI_Barrier", 2);
    wait.comm = named(rank == 0 ? "communicator #3 of 2 ranks" : "communicator #4 of 2 ranks", 2);
    wait.comm.is_named = false;
    all[rank].waits = {wait};
  }
  EXPECT_TRUE(find_causes(all).empty());
}

TEST(Causes, ranks_in_different_collectives_are_named) {
  auto all = stopped(2);
  all[0].waits = {collective("MPI_Reduce", 2)};
  all[1].waits = {collective("MPI_Bcast", 2)};
  expect(all, Cause::other_order,
         "on MPI_COMM_WORLD ranks wait in different collectives: rank 1 in MPI_Bcast (\"main\"); "
         "rank 0 in MPI_Reduce (\"main\")");
  EXPECT_EQ(first_of(all).ranks, (std::vector{0, 1}));
}

TEST(Causes, ranks_in_collectives_of_two_communicators_crosswise_are_named) {
  auto all = stopped(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    all[rank].waits = {collective("a phase of an MpiPhaser", 2)};
    all[rank].waits.front().comm = named(rank == 0 ? "MpiPhaser \"a\"" : "MpiPhaser \"b\"", 2);
  }
  expect(all, Cause::other_order,
         "ranks begin collectives of several communicators in different orders: rank 0 in a phase "
         "of an MpiPhaser on MpiPhaser \"a\" (\"main\"); rank 1 in a phase of an MpiPhaser on "
         "MpiPhaser \"b\" (\"main\")");
  EXPECT_EQ(find_causes(all).size(), 1u);
  all[1].waits = {receive(0, 5, 2)};
  EXPECT_EQ(first_of(all).cause, Cause::missing_rank);
  EXPECT_TRUE(first_of(all).sentence.starts_with(
      "rank 1 has not come to the phase of an MpiPhaser on MpiPhaser \"a\" in which rank 0 waits"));
}

TEST(Causes, the_holder_of_a_windows_lock_is_named) {
  auto all = stopped(3);
  Communicator window = named("window of 3 ranks", 3);
  window.is_named = false;
  const WindowLock lock{.task = 1, .task_text = "\"main\"", .window = window, .target = 2,
                        .is_exclusive = true};
  const Wait wait{.task = 1, .task_text = "\"main\"", .kind = WaitKind::window,
                  .call = "MPI_Win_lock"};
  all[0].locks = {lock};
  all[0].waits = {receive(1, 5, 3)};
  all[1].locks = {lock};
  all[1].waits = {wait};
  all[2].waits = {collective("MPI_Win_free", 3)};
  expect(all, Cause::held_lock,
         "rank 1 waits in MPI_Win_lock, in \"main\", and needs the lock of rank 2's part of a "
         "window of 3 ranks, which rank 0 keeps since its MPI_Win_lock in \"main\": it waits in "
         "MPI_Recv from 1, tag 5, on MPI_COMM_WORLD, in \"main\"");
  EXPECT_EQ(first_of(all).ranks, (std::vector{0, 1}));
  all[1].waits.front().call = "MPI_Win_unlock";  // an MPI that asks for the lock late
  EXPECT_EQ(first_of(all).cause, Cause::held_lock);
  all[2].locks = {lock};  // which of these is in the way?
  all[2].waits = {receive(0, 6, 3)};
  EXPECT_FALSE(first_of(all).is_certain);
  all[2].locks.clear();
  all[0].locks.front().target = 1;
  EXPECT_NE(first_of(all).cause, Cause::held_lock);
  all[0].locks.front().target = any;
  EXPECT_EQ(first_of(all).cause, Cause::held_lock);
  all[0].locks.front().is_exclusive = all[1].locks.front().is_exclusive = false;
  EXPECT_NE(first_of(all).cause, Cause::held_lock);
}

TEST(Causes, ranks_that_receive_from_one_another_are_a_circle) {
  auto all = stopped(3);
  for (int rank = 0; rank < 3; ++rank) {
    all[static_cast<std::size_t>(rank)].waits = {receive((rank + 1) % 3, 3, 3)};
  }
  expect(all, Cause::rank_circle,
         "ranks 0-2 receive from one another before they send: rank 0 waits in MPI_Recv from 1, "
         "tag 3, on MPI_COMM_WORLD, in \"main\"; rank 1 waits in MPI_Recv from 2, tag 3, on "
         "MPI_COMM_WORLD, in \"main\"; rank 2 waits in MPI_Recv from 0, tag 3, on MPI_COMM_WORLD, "
         "in \"main\"");
}

TEST(Causes, ranks_that_send_long_messages_to_each_other_are_a_circle) {
  auto all = stopped(2);
  all[0].waits = {send(1, 3, 2)};
  all[1].waits = {send(0, 3, 2)};
  const Finding first = first_of(all);
  EXPECT_EQ(first.cause, Cause::rank_circle);
  EXPECT_TRUE(first.sentence.starts_with("ranks 0, 1 send long messages to each other and none "
                                         "receives: rank 0 waits in MPI_Send to 1, tag 3, 1048576 "
                                         "bytes"))
      << first.sentence;
}

TEST(Causes, a_circle_names_the_task_that_has_not_begun) {
  auto all = stopped(2);
  all[0].waits = {receive(1, 3, 2)};
  all[1].waits = {receive(0, 4, 2, "\"recv\""),
                  on_tasks(2, "\"send\"", WaitKind::dependency, "dependency on task \"recv\"",
                           {1})};
  const Finding first = first_of(all);
  EXPECT_EQ(first.cause, Cause::rank_circle);
  EXPECT_TRUE(first.sentence.ends_with("; on rank 1 \"send\" has not begun, since it follows task "
                                       "\"recv\""))
      << first.sentence;
}

TEST(Causes, a_circle_is_no_circle_while_one_of_its_ranks_runs_or_could_get_another_message) {
  auto all = stopped(2);
  all[0].waits = {receive(1, 3, 2)};
  all[1].waits = {receive(0, 3, 2)};
  all[1].still_ms = 20;  // a message in flight looks like this
  EXPECT_TRUE(find_causes(all).empty());
  all[1].still_ms = 30'000;
  all[1].running = {"\"x\""};
  EXPECT_TRUE(find_causes(all).empty());
  all[1].running.clear();
  all[1].waits[0].call = "MPI_Waitany";
  EXPECT_NE(first_of(all).cause, Cause::rank_circle);
}

TEST(Causes, a_message_with_another_tag_or_communicator_or_source_is_named) {
  auto all = stopped(3);
  all[0].waits = {receive(1, 7, 3, "\"halo\"")};
  all[0].messages = {message(1, 8, world(3))};
  expect(all, Cause::other_message,
         "rank 0 waits in MPI_Recv from 1, tag 7, on MPI_COMM_WORLD, in \"halo\", but the message "
         "from rank 1 on MPI_COMM_WORLD that has come has tag 8");
  EXPECT_EQ(find_causes(all).size(), 1u);  // it explains the wait, whatever rank 1 does
  all[0].messages = {message(1, 7, named("halo", 3))};
  expect(all, Cause::other_message,
         "rank 0 waits in MPI_Recv from 1, tag 7, on MPI_COMM_WORLD, in \"halo\", but the message "
         "from rank 1 with tag 7 has come on halo");
  all[0].messages = {message(2, 7, world(3))};
  const std::vector<Finding> findings = find_causes(all);
  EXPECT_EQ(findings.back().cause, Cause::other_source);
  EXPECT_FALSE(findings.back().is_certain);
  all[0].messages = {message(2, 9, named("halo", 3))};
  for (const Finding& finding : find_causes(all)) {
    EXPECT_TRUE(finding.cause == Cause::nobody_sends) << finding.sentence;
  }
}

TEST(Causes, a_lock_that_is_held_across_a_wait_is_only_perhaps_the_cause) {
  auto all = stopped(1);
  all[0].waits = {{.task = 2, .task_text = "\"wants\"", .kind = WaitKind::lock, .call = "a lock"},
                  receive(0, 3, 1, "\"holds\"")};
  expect(all, Cause::held_lock,
         "perhaps: a lock on rank 0 is held across a wait: \"wants\" sleeps in a lock, or "
         "something like it, and one of the waiting tasks may hold it: \"holds\" waits in MPI_Recv "
         "from 0, tag 3, on MPI_COMM_WORLD");
}

TEST(Causes, a_task_that_waits_for_a_child_that_follows_it_is_a_circle_of_its_rank) {
  auto all = stopped(1);
  all[0].waits = {on_tasks(5, "\"a\" (a.cpp:1)", WaitKind::finish, "finish (a.cpp:2)", {6}),
                  on_tasks(6, "\"b\" (a.cpp:3)", WaitKind::dependency,
                           "dependency on task \"a\" (a.cpp:1)", {5}),
                  on_tasks(1, "\"main\"", WaitKind::finish, "finish", {5, 6})};
  expect(all, Cause::task_circle,
         "2 tasks wait for each other: \"a\" (a.cpp:1) waits in finish (a.cpp:2) for its child "
         "\"b\" (a.cpp:3); \"b\" (a.cpp:3) follows \"a\" (a.cpp:1), by an access that both have");
  all[0].waits = {on_tasks(5, "\"a\"", WaitKind::dependency, "task \"a\"", {5})};
  expect(all, Cause::task_circle, "a task waits for itself: \"a\" waits for task \"a\"");
}

TEST(Causes, two_tasks_at_two_phasers_are_a_circle) {
  auto all = stopped(1);
  all[0].waits = {on_tasks(5, "\"a\"", WaitKind::phaser, "next: phase 0 of phaser \"red\"", {6}),
                  on_tasks(6, "\"b\"", WaitKind::phaser, "next: phase 0 of phaser \"blue\"", {5})};
  expect(all, Cause::task_circle,
         "2 tasks wait for each other: \"a\" waits for next: phase 0 of phaser \"red\"; \"b\" "
         "waits for next: phase 0 of phaser \"blue\"");
  EXPECT_TRUE(first_of(all).advice.starts_with("Signal every phaser"));
}

TEST(Causes, a_message_from_a_rank_at_its_end_is_sent_by_nobody) {
  auto all = stopped(2);
  all[0].waits = {receive(1, 3, 2)};
  all[1].state = RankState::finalizes;
  expect(all, Cause::nobody_sends,
         "rank 0 waits in MPI_Recv from 1, tag 3, on MPI_COMM_WORLD, in \"main\", and rank 1 does "
         "not send: it is in MPI_Finalize");
  all[1].failures = {"task \"load\" has failed: no such file\nmore"};
  EXPECT_TRUE(first_of(all).sentence.ends_with("; on rank 1 task \"load\" has failed: no such "
                                               "file"));
  EXPECT_TRUE(first_of(all).advice.starts_with("Look first at what has failed"));
  all[0].waits = {receive(0, 3, 2)};
  expect(all, Cause::nobody_sends,
         "rank 0 waits in MPI_Recv from 0, tag 3, on MPI_COMM_WORLD, in \"main\", and does not "
         "send it itself");
  all[0].waits = {receive(any, any, 2)};
  EXPECT_EQ(first_of(all).cause, Cause::nobody_sends);
}

TEST(Causes, the_wait_at_the_end_of_a_chain_is_named_and_not_those_that_follow_from_it) {
  auto all = stopped(3);
  all[0].waits = {receive(1, 3, 3)};
  all[1].waits = {receive(2, 3, 3)};
  const std::vector<Finding> findings = find_causes(all);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].ranks, (std::vector{1, 2}));
}

TEST(Causes, a_dead_rank_comes_first_and_a_silent_one_last) {
  auto all = stopped(3);
  all[0].waits = {collective("MPI_Barrier", 3)};
  all[1].state = RankState::dead;
  all[2].state = RankState::silent;
  const std::vector<Finding> findings = find_causes(all);
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings.front().sentence, "the process of rank 1 has died (4712 on node7)");
  EXPECT_EQ(findings.back().text(), "perhaps: rank 2 does not answer");
}

TEST(Causes, ranks_that_await_futures_of_each_other_are_a_circle) {
  auto all = stopped(2);
  for (int rank = 0; rank < 2; ++rank) {
    const std::string future = rank == 0 ? "future 7" : "future 8";
    all[static_cast<std::size_t>(rank)].waits = {
        {.task = 1, .task_text = "\"main\"", .kind = WaitKind::future, .call = future,
         .peer = 1 - rank, .object = future}};
  }
  expect(all, Cause::future_circle,
         "ranks 0, 1 await futures of each other: rank 0 waits for future 7, in \"main\"; rank 1 "
         "waits for future 8, in \"main\"");
  all[1].waits = {all[0].waits[0]};
  expect(all, Cause::nobody_puts,
         "ranks 0, 1 await future 7, and no rank puts it: every task of all ranks waits");
}

TEST(Causes, a_promise_that_nobody_sets_is_a_cause_where_there_is_no_other) {
  auto all = stopped(2);
  all[1].waits = {on_tasks(4, "\"expects\"", WaitKind::promise, "promise \"a\"", {})};
  expect(all, Cause::nobody_puts,
         "rank 1 waits for promise \"a\", in \"expects\", and nothing sets it: every task of all "
         "ranks waits");
  all[0].waits = {receive(0, 3, 2)};
  EXPECT_EQ(first_of(all).cause, Cause::nobody_sends);
  all[0].may_continue = true;
  all[0].waits.clear();
  EXPECT_TRUE(find_causes(all).empty());
}

TEST(Causes, a_rank_that_holds_a_part_or_waits_for_its_turn_is_described) {
  auto all = stopped(2);
  all[0].waits = {collective("MPI_Barrier", 2)};
  all[1].waits = {{.kind = WaitKind::part, .call = "MPI_Barrier waits for its turn"}};
  EXPECT_TRUE(first_of(all).sentence.ends_with(": it waits: MPI_Barrier waits for its turn"));
}

TEST(Causes, no_facts_have_no_cause) {
  EXPECT_TRUE(find_causes({}).empty());
  EXPECT_TRUE(find_causes(stopped(3)).empty());
}

// Methodology: draws ranks with waits of all kinds at random. One rank at least runs a task, does
// not answer, or has moved a moment ago; tasks wait for older tasks only.
TEST(Causes, a_program_that_may_go_on_has_no_certain_cause) {
  std::mt19937 draw(11);
  const auto below = [&draw](const int end) {
    return static_cast<int>(draw() % static_cast<unsigned>(end));
  };
  int with_findings = 0;
  for (int round = 0; round < 20'000; ++round) {
    const int ranks = 2 + below(4);
    auto all = stopped(ranks);
    for (RankFacts& facts : all) {
      const int waits = below(4);
      for (int index = 0; index < waits; ++index) {
        Wait wait = receive(below(ranks + 1) - 1, below(3), ranks);
        if (wait.peer < 0) wait.peer = wait.peer_in_comm = any;
        wait.task = static_cast<std::uint64_t>(index + 1);
        wait.kind = static_cast<WaitKind>(below(16));
        if (wait.kind == WaitKind::collective) {
          constexpr const char* calls[] = {"MPI_Barrier", "MPI_Reduce", "MPI_Bcast"};
          wait.call = calls[below(3)];
        }
        if (below(2) == 0) wait.comm = named("halo", ranks);
        if (wait.kind == WaitKind::future) wait.object = "future 7";
        if (index > 0 && below(2) == 0) wait.tasks = {static_cast<std::uint64_t>(index)};
        facts.waits.push_back(wait);
      }
      if (below(3) == 0) facts.messages.push_back(message(below(ranks), below(3), world(ranks)));
      if (below(5) == 0) facts.state = below(2) == 0 ? RankState::ended : RankState::finalizes;
    }
    RankFacts& mover = all[static_cast<std::size_t>(below(ranks))];
    mover.state = RankState::answers;
    switch (below(5)) {
      case 0: mover.running = {"\"x\""}; break;
      case 1: mover.state = RankState::silent; break;
      case 2: mover.may_continue = true; break;
      case 3: mover.still_ms = 10; break;
      default: all.erase(all.begin() + (&mover - all.data())); break;
    }
    const std::vector<Finding> findings = find_causes(all);
    with_findings += findings.empty() ? 0 : 1;
    for (const Finding& finding : findings) {
      EXPECT_FALSE(finding.is_certain) << finding.sentence;
      EXPECT_FALSE(finding.ranks.empty()) << finding.sentence;
    }
  }
  EXPECT_GT(with_findings, 1000);
}

}  // namespace
}  // namespace imbrex::diagnosis
