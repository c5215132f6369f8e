// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/report/waits/wait_text.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "base/text/ranges.hpp"

namespace imbrex::mpi::report {
namespace {

// The facts of a rank with receives and unexpected messages.
diagnosis::Communicator named(const char* name) { return {.name = name, .members = {0, 1, 2, 3}}; }
diagnosis::Wait waits(int peer, int tag, const char* task = "\"halo\" (a.cpp:1)") {
  return {.task_text = task, .kind = diagnosis::WaitKind::receive, .call = "MPI_Recv",
          .comm = named("W"), .peer = peer, .peer_in_comm = peer, .tag = tag, .bytes = 64};
}
diagnosis::Message arrived(const char* comm, int source, int tag, int bytes) {
  return {.comm = named(comm), .source = source, .source_in_comm = source, .tag = tag,
          .bytes = bytes};
}
Lines explained(int rank, std::vector<diagnosis::Message> messages,
                std::vector<diagnosis::Wait> all) {
  return explain({.rank = rank, .ranks = 4, .waits = std::move(all),
                  .messages = std::move(messages)},
                 9);
}

Wait receive(int peer, int tag, const char* task = "\"halo\" (a.cpp:1)") {
  return {.call = "MPI_Recv", .comm = "W", .peer = peer, .tag = tag, .sized = true, .bytes = 64,
          .receives = true, .task = task};
}

TEST(Lines, a_wait_is_described_with_call_peer_tag_bytes_communicator_and_task) {
  EXPECT_EQ(fold({receive(1, 7)}, 9),
            Lines{"MPI_Recv from 1, tag 7, 64 bytes, on W: in \"halo\" (a.cpp:1)"});
  EXPECT_EQ(fold({receive(any, any)}, 9),
            Lines{"MPI_Recv from any, tag any, 64 bytes, on W: in \"halo\" (a.cpp:1)"});
  EXPECT_EQ(fold({{.call = "MPI_Send", .comm = "W", .peer = 2, .tag = 0, .task = "\"s\""}}, 9),
            Lines{"MPI_Send to 2, tag 0, on W: in \"s\""});
  EXPECT_EQ(fold({{.call = "MPI_Barrier", .comm = "W", .task = "\"main\""}}, 9),
            Lines{"MPI_Barrier, on W: in \"main\""});
}

TEST(Lines, equal_waits_become_one_line_that_names_their_tags_and_the_odd_one_comes_first) {
  std::vector<Wait> waits;
  for (int tag = 10; tag < 68; ++tag) waits.push_back(receive(1, tag));
  waits.push_back(receive(2, 3, "\"other\" (b.cpp:2)"));
  const Lines lines = fold(waits, 9);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "MPI_Recv from 2, tag 3, 64 bytes, on W: in \"other\" (b.cpp:2)");
  EXPECT_EQ(lines[1], "MPI_Recv from 1, tag 10, 64 bytes, on W: in \"halo\" (a.cpp:1) (and 57 more "
                      "like this, in all tags 10-67)");
}

TEST(Lines, no_more_lines_than_allowed_and_the_last_says_how_many_are_left_out) {
  std::vector<Wait> waits;
  for (int i = 0; i < 50; ++i) waits.push_back(receive(1, i, std::to_string(i).c_str()));
  const Lines lines = fold(waits, 10);
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines.back(), "... and 41 more kinds of waits");
}

TEST(Lines, a_message_with_another_tag_is_named_beside_the_wait_that_it_misses) {
  EXPECT_EQ(explained(0, {arrived("W", 1, 8, 64)}, {waits(3, 1, "\"far\""), waits(1, 7)}),
            Lines{"a message from 1 with tag 8, 64 bytes, on W has arrived and no receive takes "
                  "it; rank 0 waits for tag 7 from 1 in \"halo\" (a.cpp:1)"});
}

TEST(Lines, a_message_on_another_communicator_is_named_beside_the_wait_that_it_misses) {
  EXPECT_EQ(explained(2, {arrived("V", 1, 7, 0)}, {waits(1, 7)}),
            Lines{"a message from 1 with tag 7, 0 bytes, on V has arrived and no receive takes it; "
                  "rank 2 waits for tag 7 from 1 on W in \"halo\" (a.cpp:1)"});
}

TEST(Lines, a_message_that_a_wait_would_take_is_no_mystery) {
  EXPECT_TRUE(explained(0, {arrived("W", 1, 7, 64)}, {waits(1, 7)}).empty());
  EXPECT_TRUE(explained(0, {arrived("W", 1, 7, 64)},
                        {waits(diagnosis::any, diagnosis::any)})
                  .empty());
}

TEST(Lines, a_message_that_nothing_comes_close_to_stands_alone) {
  EXPECT_EQ(explained(0, {arrived("W", 1, 8, 64)}, {}),
            Lines{"a message from 1 with tag 8, 64 bytes, on W has arrived and no receive takes "
                  "it"});
}

TEST(Lines, ranks_that_await_one_future_are_listed) {
  const std::string seven = R"(future 7 of space "future space", whose home is rank 1)";
  const std::string eight = R"(future 8 of space "of space "b"", whose home is rank 12)";
  const std::string both = "2 tasks wait\n  " + seven + ": no value was put: in \"a\"\n  any of " +
                           eight + ", " + seven + ": in \"b\"\n";
  EXPECT_TRUE(list_awaiting({{3, both}}, 8).empty());
  EXPECT_TRUE(list_awaiting({{0, ""}, {1, ", whose home is rank 7"}, {2, seven}}, 8).empty());
  EXPECT_EQ(list_awaiting({{0, seven}, {1, both}, {2, eight}, {3, eight}}, 8)[0],
            "ranks 0, 1 await " + seven);
  EXPECT_EQ(list_awaiting({{0, both}, {1, both}, {2, both}}, 8).size(), 2u);
  EXPECT_EQ(list_awaiting({{0, both}, {1, both}}, 1),
            Lines{"... and 2 more futures that several ranks await"});
}

TEST(Lines, the_first_future_of_a_text_is_found) {
  const std::string seven = R"(future 7 of space "sums", whose home is rank 1)";
  EXPECT_EQ(future_in("any of " + seven + ": no value was put"), seven);
  EXPECT_EQ(home_in(seven), 1);
  EXPECT_EQ(home_in(""), diagnosis::none);
  EXPECT_EQ(future_in("promise"), "");
  EXPECT_EQ(future_in(", whose home is rank 7"), "");
}

TEST(Lines, active_messages_are_summed_where_all_ranks_tell) {
  const std::string some = "all wait\n  " + describe_messages(12, 3) + "\n";
  const std::string rest = "all wait\n  " + describe_messages(1, 10) + "\n";
  EXPECT_TRUE(sum_messages({{0, some}}, 2).empty());
  EXPECT_TRUE(sum_messages({{0, some}, {1, "all wait\n"}}, 2).empty());
  ASSERT_EQ(sum_messages({{0, some}, {1, rest}}, 2).size(), 1u);
  EXPECT_TRUE(sum_messages({{0, some}, {1, rest}}, 2)[0].starts_with("every active message"));
  EXPECT_EQ(sum_messages({{0, some}, {1, some}}, 2)[0],
            "active messages: 24 sent by all ranks, 6 handled: some are in flight");
}

TEST(Lines, ranges_are_short) {
  using base::text::ranges;
  EXPECT_EQ(ranges({7, 1, 2, 3}), "1-3, 7");
  EXPECT_EQ(ranges({5, 4}), "4, 5");
  EXPECT_EQ(ranges({0, 2, 4, 6, 8, 10, 12}), "0, 2, 4, 6, 8, 10 and 1 more");
}

TEST(Lines, equal_lines_are_counted) {
  EXPECT_EQ(unite({"a", "b", "a", "a"}, 9), (Lines{"a (and 2 more like this)", "b"}));
}

}  // namespace
}  // namespace imbrex::mpi::report
