// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/check/ranks/comparison.hpp"

#include <gtest/gtest.h>

#include <string>

namespace imbrex::mpi::check {
namespace {

Begun call_of(const std::uint64_t number, const std::string& call) {
  return {.number = number, .call = call, .comm = "c", .task = "\"main\""};
}
Begun task_of(const std::uint64_t number, const std::string& task) {
  Begun begun = call_of(number, "MPI_Barrier");
  begun.task = task;
  return begun;
}

bool names(const std::string& finding, const std::string& word) {
  return finding.find(word) != std::string::npos;
}

TEST(Comparison, equal_calls_are_no_finding_in_whatever_order_ranks_come) {
  Comparison all(3);
  for (const int rank : {2, 0, 1}) {
    for (std::uint64_t i = 1; i < 500; ++i) {
      EXPECT_EQ(all.begin(rank, call_of(i, i % 2 == 0 ? "MPI_Barrier" : "MPI_Allreduce")), "");
    }
  }
  for (const int rank : {1, 2, 0}) {
    EXPECT_FALSE(all.is_over());
    EXPECT_EQ(all.end(rank, {.total = 499}), "");
  }
  EXPECT_TRUE(all.is_over());
  EXPECT_EQ(all.end_others(), "");
}

TEST(Comparison, another_call_is_one_finding_that_names_both) {
  Comparison all(2);
  EXPECT_EQ(all.begin(1, call_of(1, "MPI_Bcast")), "");
  const std::string finding = all.begin(0, call_of(1, "MPI_Allreduce"));
  EXPECT_TRUE(names(finding, "collective 1 of c"));
  EXPECT_TRUE(names(finding, "rank 0: MPI_Allreduce"));
  EXPECT_TRUE(names(finding, "rank 1: MPI_Bcast"));
  EXPECT_TRUE(names(finding, "differ in: the call."));
  EXPECT_EQ(all.begin(1, call_of(2, "MPI_Scan")), "");  // what follows is shifted
  EXPECT_EQ(all.begin(0, call_of(2, "MPI_Bcast")), "");
}

TEST(Comparison, forms_of_one_call_match) {
  EXPECT_EQ(kind_of("MPI_Ialltoallv_c"), kind_of("MPI_Alltoallv"));
  EXPECT_EQ(kind_of("MPI_Ineighbor_allgather"), kind_of("MPI_Neighbor_allgather"));
  EXPECT_EQ(kind_of("MPI_Comm_idup"), kind_of("MPI_Comm_dup"));
  EXPECT_NE(kind_of("MPI_Allreduce_init"), kind_of("MPI_Allreduce"));
  EXPECT_NE(kind_of("imbrex::alltoall"), kind_of("MPI_Alltoall"));
  EXPECT_NE(kind_of("MPI_Gather"), kind_of("MPI_Gatherv"));
}

TEST(Comparison, roots_operations_and_bytes_are_compared) {
  const auto compare = [](const Alike& one, const Alike& other) {
    Comparison all(2);
    Begun begun = call_of(1, "MPI_Reduce");
    begun.alike = one;
    EXPECT_EQ(all.begin(0, begun), "");
    begun.alike = other;
    return all.begin(1, begun);
  };
  EXPECT_EQ(compare({1, "MPI_SUM", 8}, {1, "MPI_SUM", 8}), "");
  EXPECT_TRUE(names(compare({1, "MPI_SUM", 8}, {0, "MPI_SUM", 8}), "the root."));
  EXPECT_TRUE(names(compare({1, "MPI_SUM", 8}, {1, "MPI_MAX", 8}), "the operation."));
  EXPECT_TRUE(names(compare({1, "MPI_SUM", 8}, {1, "MPI_SUM", 4}), "the number of bytes."));
}

// One rank branches by its number: another line, and no concurrency.
TEST(Comparison, tasks_are_compared_only_where_they_have_no_order) {
  Comparison all(2);
  EXPECT_EQ(all.begin(0, task_of(1, "\"a\" (a.cpp:1)")), "");
  EXPECT_EQ(all.begin(1, task_of(1, "\"b\" (a.cpp:2)")), "");
  EXPECT_EQ(all.begin(0, task_of(2, "\"a\" (a.cpp:1)")), "");
  Begun beside = task_of(2, "\"b\" (a.cpp:2)");
  beside.unordered = true;
  EXPECT_TRUE(names(all.begin(1, beside), "differ in: the task."));
}

// The first of two that are open together is said before anybody knows of the second.
TEST(Comparison, a_collective_found_unordered_later_is_compared_then) {
  Comparison all(3);
  EXPECT_EQ(all.begin(0, task_of(1, "\"a\" (a.cpp:1)")), "");
  EXPECT_EQ(all.begin(1, task_of(1, "\"a\" (a.cpp:1)")), "");
  EXPECT_EQ(all.begin(2, task_of(1, "\"b\" (a.cpp:2)")), "");
  const std::string finding = all.set_unordered(1);
  EXPECT_TRUE(names(finding, "rank 0: MPI_Barrier: in \"a\" (a.cpp:1)"));
  EXPECT_TRUE(names(finding, "rank 2: MPI_Barrier: in \"b\" (a.cpp:2)"));
}

TEST(Comparison, it_may_be_known_unordered_before_it_is_said) {
  Comparison all(2);
  EXPECT_EQ(all.set_unordered(1), "");
  EXPECT_EQ(all.begin(0, task_of(1, "\"a\" (a.cpp:1)")), "");
  EXPECT_NE(all.begin(1, task_of(1, "\"b\" (a.cpp:2)")), "");
}

TEST(Comparison, an_old_collective_may_be_found_unordered_after_it_was_forgotten) {
  Comparison all(2);
  for (std::uint64_t i = 1; i < 1000; ++i) {
    for (const int rank : {0, 1}) EXPECT_EQ(all.begin(rank, call_of(i, "MPI_Barrier")), "");
  }
  EXPECT_EQ(all.set_unordered(3), "");
  EXPECT_EQ(all.end(0, {.total = 999}), "");
  EXPECT_EQ(all.end(1, {.total = 999}), "");
  EXPECT_TRUE(all.is_over());
}

TEST(Comparison, keys_decide_where_there_are_any) {
  const auto compare = [](const Ordering& one, const Ordering& other) {
    Comparison all(2);
    Begun begun = task_of(1, "\"a\" (a.cpp:1)");
    begun.unordered = true;
    begun.ordering = one;
    EXPECT_EQ(all.begin(0, begun), "");
    begun.task = "\"b\" (a.cpp:2)";
    begun.ordering = other;
    return all.begin(1, begun);
  };
  EXPECT_EQ(compare({By::key, 7, "7"}, {By::key, 7, "\"x\""}), "");
  EXPECT_TRUE(names(compare({By::key, 7, "7"}, {By::key, 8, "8"}), "the key."));
  EXPECT_TRUE(names(compare({By::key, 7, "7"}, {}), "the kind of order."));
}

TEST(Comparison, the_order_as_spawned_compares_the_names_of_tasks) {
  const auto compare = [](const std::string& one, const std::string& other) {
    Comparison all(2);
    Begun begun = task_of(1, one);
    begun.ordering.by = By::spawns;
    EXPECT_EQ(all.begin(0, begun), "");
    begun.task = other;
    return all.begin(1, begun);
  };
  EXPECT_EQ(compare("\"a\" (a.cpp:1)", "\"a\" (a.cpp:2)"), "");
  EXPECT_TRUE(names(compare("\"a\" (a.cpp:1)", "\"b\" (a.cpp:1)"), "Spawn the tasks of"));
}

TEST(Comparison, a_rank_that_begins_fewer_is_named) {
  Comparison all(3);
  for (const int rank : {0, 1, 2}) EXPECT_EQ(all.begin(rank, call_of(1, "MPI_Barrier")), "");
  EXPECT_EQ(all.end(2, {.total = 1, .freed = true}), "");
  const std::string finding = all.begin(1, call_of(2, "MPI_Bcast"));
  EXPECT_TRUE(names(finding, "rank 1: MPI_Bcast"));
  EXPECT_TRUE(names(finding, "rank 2: 1 in all, and it has freed the communicator"));
}

TEST(Comparison, a_rank_that_has_begun_none_is_named_at_the_end) {
  Comparison all(2);
  EXPECT_EQ(all.begin(1, call_of(1, "MPI_Bcast")), "");
  EXPECT_EQ(all.end(1, {.total = 1}), "");
  EXPECT_TRUE(names(all.end_others(), "rank 0: 0 in all, and it is in MPI_Finalize"));
}

// A letter may be overtaken by the last one.
TEST(Comparison, it_is_over_when_all_that_was_counted_has_come) {
  Comparison all(2);
  EXPECT_EQ(all.begin(0, call_of(1, "MPI_Barrier")), "");
  EXPECT_EQ(all.end(0, {.total = 1}), "");
  EXPECT_EQ(all.end(1, {.total = 1}), "");
  EXPECT_FALSE(all.is_over());
  EXPECT_EQ(all.begin(1, call_of(1, "MPI_Barrier")), "");
  EXPECT_TRUE(all.is_over());
}

TEST(Comparison, a_letter_says_what_was_written) {
  Begun begun = task_of(12, "\"a (b), \" (a.cpp:1)");
  begun.alike = {3, "MPI_SUM", 1LL << 40};
  begun.ordering = {By::key, 1ULL << 63, "\"k\""};
  begun.unordered = true;
  const std::optional<Begun> it = read(write(begun));
  ASSERT_TRUE(it.has_value());
  EXPECT_EQ(it->number, 12u);
  EXPECT_EQ(describe(*it), describe(begun));
  EXPECT_EQ(it->comm, "c");
  EXPECT_EQ(it->ordering.key, 1ULL << 63);
  EXPECT_TRUE(it->unordered);
  EXPECT_FALSE(read("").has_value());
  EXPECT_FALSE(read(write(begun) + '\0').has_value());
}

}  // namespace
}  // namespace imbrex::mpi::check
