// SPDX-License-Identifier: BSD-3-Clause
// Data with owners on a real MPI.
#include "imbrex/data.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "imbrex/imbrex.hpp"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

[[nodiscard]] bool names(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void fill(const View<double> view, const double value) {
  std::ranges::fill(view, value);
}

TEST(DataWithOwners, views_come_in_the_order_in_which_data_are_named) {
  const Ring ring;
  Space space(ring.comm);
  const int last = ring.size - 1;
  const auto a = space.data<int>(0, 1), b = space.data<int>(last, 1), c = space.data<int>(0, 1);
  space.task("three").out(a, b, c).on(last).launch(
      [](View<int> x, View<int> y, View<int> z) {
        x[0] = 1;
        y[0] = 2;
        z[0] = 3;
      });
  space.task("read").in(a, b, c).on(0).launch(
      [](View<const int> x, View<const int> y, View<const int> z) {
        EXPECT_EQ(x[0], 1);
        EXPECT_EQ(y[0], 2);
        EXPECT_EQ(z[0], 3);
      });
  space.finish();
}

TEST(DataWithOwners, a_datum_that_all_ranks_read_is_sent_as_one_broadcast) {
  const Ring ring;
  Space space(ring.comm, {.tasks_ahead = 0});
  const auto source = space.data<double>(0, 100000);
  std::vector<Data<double>> sums;
  for (int i = 0; i < ring.size; ++i) sums.push_back(space.data<double>(i, 1));
  Promise<void> all_inserted;
  space.task("write").out(source).launch([&](View<double> to) {
    all_inserted.future().get();
    fill(to, 2);
  });
  for (int round = 0; round < 3; ++round) {  // the second and third find what is there
    for (const auto& sum : sums) {
      space.task("sum").in(source).inout(sum).launch(
          [](View<const double> from, View<double> to) {
            to[0] += std::accumulate(from.begin(), from.end(), 0.0);
          });
    }
  }
  all_inserted.set();
  space.finish();
  EXPECT_EQ(sums[static_cast<std::size_t>(ring.rank)].view()[0], 600000);
  const SpaceCounters counters = space.counters();
  EXPECT_EQ(counters.inserted, 1 + 3 * static_cast<std::uint64_t>(ring.size));
  if (ring.rank == 0) {
    EXPECT_EQ(counters.versions_sent, ring.size > 1 ? 1 : 0);
    EXPECT_EQ(counters.broadcasts, ring.size > 2 ? 1 : 0);
    EXPECT_EQ(counters.broadcasts_full, counters.broadcasts);
  }
  space.finish();  // again, with nothing new
}

TEST(DataWithOwners, copies_are_counted_for_each_space) {
  const Ring ring;
  Space one(ring.comm, {.name = "one"}), other(ring.comm, {.name = "other"});
  const int last = ring.size - 1;
  const auto a = one.data<double>(0, 1000), b = other.data<double>(0, 500);
  for (int i = 0; i < 3; ++i) {
    one.task("write").out(a).launch([](View<double> to) { fill(to, 1); });
    one.task("read").in(a).on(last).launch([](View<const double>) {});
  }
  other.task("write").out(b).launch([](View<double> to) { fill(to, 1); });
  other.task("read").in(b).on(last).launch([](View<const double>) {});
  one.finish();
  other.finish();
  const SpaceCounters of_one = one.counters(), of_other = other.counters();
  const std::uint64_t sent = ring.rank == 0 && last != 0 ? 1 : 0;
  EXPECT_EQ(of_one.copies_from_root, 3 * sent);
  EXPECT_EQ(of_one.bytes_sent, 3 * sent * 8000);
  EXPECT_EQ(of_other.copies_from_root, sent);
  EXPECT_EQ(of_other.bytes_sent, sent * 4000);
  const std::uint64_t received = ring.rank == last && last != 0 ? 1 : 0;
  EXPECT_EQ(of_one.bytes_received, 3 * received * 8000);
  EXPECT_EQ(of_one.copies_from_relay + of_other.copies_from_relay, 0U);
}

TEST(DataWithOwners, flush_and_move_bring_a_value_to_its_owner) {
  const Ring ring;
  const int last = ring.size - 1;
  std::vector<double> memory(12, 0.5);
  Space space(ring.comm);
  const auto matrix = space.matrix<double>(0, 2, 3, memory.data(), 4);  // with gaps
  space.task("elsewhere").inout(matrix).on(last).launch([](View<double> to) {
    for (std::size_t column = 0; column < 3; ++column) to(1, column) += 1;
  });
  space.finish();
  if (ring.rank == 0 && last != 0) {
    EXPECT_TRUE(names(thrown_by([&] { (void)matrix.view(); }), "flush()"));
  }
  space.flush(matrix);
  space.finish();
  if (ring.rank == 0) {
    EXPECT_EQ(memory, (std::vector<double>{0.5, 1.5, 0.5, 0.5, 0.5, 1.5, 0.5, 0.5, 0.5, 1.5, 0.5,
                                           0.5}));
  }
  space.move(matrix, last);
  EXPECT_EQ(matrix.owner(), last);
  space.task("there").inout(matrix).launch([&](View<double> to) {
    EXPECT_EQ(ring.rank, last);
    to(0, 0) = 7;
  });
  space.finish();
  if (ring.rank == last) {
    EXPECT_EQ(matrix.view()(0, 0), 7);
    EXPECT_EQ(matrix.view()(1, 2), 1.5);
  }
}

TEST(DataWithOwners, reductions_add_to_the_value_that_is_there) {
  const Ring ring;
  Space space(ring.comm);
  const auto sum = space.data<std::int64_t>(0, 2, nullptr, "sum");
  const auto largest = space.temporary<int>(1, "largest");
  space.task("begin").out(sum).launch([](View<std::int64_t> to) { to[0] = to[1] = 1000; });
  for (int i = 0; i < 4 * ring.size; ++i) {
    space.task("add").reduce(sum, op::sum).on(i % ring.size).launch([i](View<std::int64_t> part) {
      part[0] += i;
      part[1] += 1;
    });
    space.task("max").reduce(largest, op::max).on(i % ring.size).launch([i](View<int> part) {
      part[0] = std::max(part[0], i);
    });
  }
  space.flush();
  space.finish();
  const std::int64_t all = 4 * ring.size;
  if (ring.rank == 0) {
    EXPECT_EQ(sum.view()[0], 1000 + all * (all - 1) / 2);
    EXPECT_EQ(sum.view()[1], 1000 + all);
  }
  if (largest.owner() == ring.rank) {
    EXPECT_EQ(largest.view()[0], all - 1);
  }
}

TEST(DataWithOwners, a_failure_is_told_to_every_rank_and_later_tasks_run) {
  const Ring ring;
  const int last = ring.size - 1;
  Space space(ring.comm, {.name = "failing"});
  const auto a = space.data<double>(last, 1000, nullptr, "a");
  const auto b = space.data<double>(0, 1000, nullptr, "b");
  const auto c = space.data<double>(0, 1);
  bool has_run = false;
  space.task("wrong").out(a).launch(
      [](View<double>) { throw std::runtime_error("wrong input"); });
  space.task("needs").in(a).out(b).launch(
      [&](View<const double>, View<double>) { has_run = true; });
  space.task("free").out(c).launch([](View<double> to) { to[0] = 3; });
  if (ring.rank == last) {
    EXPECT_THROW(space.finish(), std::runtime_error);
  } else {
    const std::string text = thrown_by([&] { space.finish(); });
    EXPECT_TRUE(names(text, "\"wrong\"")) << text;
    EXPECT_TRUE(names(text, "wrong input")) << text;
    EXPECT_TRUE(names(text, "on rank " + std::to_string(last))) << text;
  }
  EXPECT_FALSE(has_run);
  if (ring.rank == 0) {
    EXPECT_TRUE(names(thrown_by([&] { (void)b.view(); }), "\"wrong\""));
    EXPECT_EQ(c.view()[0], 3);
  }
  space.task("right").out(a).launch([](View<double> to) { fill(to, 1); });
  space.task("needs").in(a).out(b).launch(
      [&](View<const double> from, View<double> to) { to[999] = from[999] + 1; });
  space.finish();
  if (ring.rank == 0) {
    EXPECT_EQ(b.view()[999], 2);
  }
}

TEST(DataWithOwners, wrong_insertions_say_what_is_wrong) {
  const Ring ring;
  Space space(ring.comm, {.name = "s"});
  Space other(ring.comm, {.name = "other"});
  const auto a = space.data<int>(0, 1, nullptr, "a");
  const auto foreign = other.data<int>(0, 1, nullptr, "f");
  const auto none = space.temporary<int>(1, "t");
  const auto wrong = [&](const char* const part, const auto& insert) {
    const std::string text = thrown_by(insert);
    EXPECT_TRUE(names(text, part)) << text;
  };
  wrong("twice", [&] { space.task("x").in(a).inout(a).launch([](auto, auto) {}); });
  wrong("no task has written", [&] { space.task("x").in(none).on(0).launch([](auto) {}); });
  wrong("by on()", [&] { space.task("x").in(a).launch([](auto) {}); });
  wrong("by on()", [&] { space.task("x").out(none).launch([](auto) {}); });
  wrong("rank", [&] { space.task("x").in(a).on(ring.size).launch([](auto) {}); });
  wrong("is to run on rank -1, but",
        [&] { space.task("x").in(a).on(-1).launch([](auto) {}); });
  wrong("is to run on rank -1, but",
        [&] { space.task("x").inout(a).on(-1).launch([](auto) {}); });
  int memory[3] = {};
  wrong("datum \"m\" of 3 x 1 elements",
        [&] { (void)space.data<int>(-1, 3, memory, "m"); });
  wrong("another space", [&] { space.task("x").out(foreign).launch([](auto) {}); });
  wrong("names rank", [&] { (void)space.data<int>(ring.size, 1); });
  wrong("names rank", [&] { space.move(a, -1); });
  wrong("an empty Data", [&] { space.task("x").in(Data<int>()).on(0).launch([](auto) {}); });
  wrong("no task has written", [&] { space.flush(none); });
  wrong("larger than any memory",
        [&] { (void)space.data<int>(0, std::size_t{1} << 62); });
  wrong("larger than any memory",
        [&] { (void)space.matrix<int>(0, std::size_t{1} << 40, std::size_t{1} << 40); });
  space.task("both").in(a, a).on(ring.size - 1).launch([](View<const int> x, View<const int> y) {
    EXPECT_EQ(x.data(), y.data());
  });
  space.discard(a);
  wrong("discarded", [&] { space.task("x").in(a).on(0).launch([](auto) {}); });
}

// ---- loops -----------------------------------------------------------------------------------

TEST(LoopOfData, inserts_one_period_and_runs_each_iteration) {
  const Ring ring;
  constexpr int count = 50;
  const auto play = [&](Space& space, const bool loops) {
    std::vector<Data<std::int64_t>> parts, sums;
    for (int i = 0; i < ring.size; ++i) {
      parts.push_back(space.data<std::int64_t>(i, 600));
      sums.push_back(space.data<std::int64_t>(i, 1));
    }
    const auto insert = [&](std::int64_t) {
      for (std::size_t i = 0; i < parts.size(); ++i) {
        space.task("grow").inout(parts[i]).launch([i](View<std::int64_t> to) {
          for (std::int64_t& element : to) element += static_cast<std::int64_t>(i) + 1;
        });
      }
      for (std::size_t i = 0; i < parts.size(); ++i) {
        space.task("sum").in(parts[(i + 1) % parts.size()]).inout(sums[i]).launch(
            [](View<const std::int64_t> from, View<std::int64_t> to) { to[0] += from[599]; });
      }
    };
    if (loops) {
      space.iterate(count, insert);
    } else {
      for (int i = 0; i < count; ++i) insert(i);
    }
    space.finish();
    return sums[static_cast<std::size_t>(ring.rank)].view()[0];
  };
  Space plain(ring.comm), looping(ring.comm);
  EXPECT_EQ(play(looping, true), play(plain, false));
  const SpaceCounters counters = looping.counters();
  EXPECT_EQ(counters.inserted, 2 * static_cast<std::uint64_t>(ring.size));
  EXPECT_EQ(counters.tasks, 2 * count);
  EXPECT_EQ(counters.versions_sent, ring.size > 1 ? count : 0);
}

TEST(LoopOfData, a_task_knows_its_iteration) {
  const Ring ring;
  Space space(ring.comm);
  const auto last = space.data<std::int64_t>(ring.size - 1, 2);
  space.iterate(5, [&](std::int64_t) {
    space.task("note").inout(last).launch([](const std::int64_t i, View<std::int64_t> to) {
      to[0] = to[0] * 10 + i;
      to[1] = iteration();
    });
  });
  space.move(last, 0);
  space.finish();
  if (ring.rank != 0) return;
  EXPECT_EQ(last.view()[0], 1234);
  EXPECT_EQ(last.view()[1], 4);
}

TEST(LoopOfData, children_of_a_body_end_with_it_and_their_failure_is_its_failure) {
  const Ring ring;
  Space space(ring.comm, {.name = "s"});
  const int last = ring.size - 1;
  const auto a = space.data<int>(last, 1, nullptr, "a"), b = space.data<int>(0, 1);
  space.iterate(6, [&](std::int64_t) {
    space.task("parent").inout(a).launch([](const std::int64_t i, View<int> to) {
      task("child").launch([i, to] {
        if (i == 3) throw std::runtime_error("wrong child");
        ++to[0];
      });
    });
    space.task("needs").in(a).inout(b).launch(
        [](View<const int> from, View<int> to) { to[0] = from[0]; });
  });
  const std::string text = thrown_by([&] { space.finish(); });
  EXPECT_TRUE(names(text, "wrong child")) << text;
  if (ring.rank == 0) {
    EXPECT_TRUE(names(thrown_by([&] { (void)b.view(); }), "in iteration 3"));
  }
}

// Adds up rounded values, so another order of additions leaves other bits.
template <class Play>
void expect_the_bits_of_a_loop_of_insertions(const Play& play) {
  const Ring ring;
  for (const int count : {0, 1, 2, 7}) {
    Space looping(ring.comm), plain(ring.comm);
    EXPECT_EQ(play(looping, count, true), play(plain, count, false)) << count << " iterations";
  }
}
void insert(Space& space, const int count, const bool loops, const auto& body) {
  if (loops) return space.iterate(count, body);
  for (int i = 0; i < count; ++i) body(i);
}

TEST(LoopOfData, a_reduction_has_the_bits_of_a_loop_of_insertions) {
  expect_the_bits_of_a_loop_of_insertions([](Space& space, const int count, const bool loops) {
    const auto sum = space.data<double>(space.size() - 1, 2);
    std::vector<Data<double>> parts;
    for (int rank = 0; rank < space.size(); ++rank) {
      parts.push_back(space.data<double>(rank, 2));
      space.task("begin").out(parts.back()).launch([rank](View<double> to) {
        to[0] = 0.1 + rank;
        to[1] = 0.7;
      });
    }
    insert(space, count, loops, [&](std::int64_t) {
      space.task("scale").inout(sum).launch([](View<double> to) { to[0] /= 3; });
      for (int rank = 0; rank < space.size(); ++rank) {
        space.task("add").in(parts[static_cast<std::size_t>(rank)]).reduce(sum, op::sum).on(rank)
            .launch([](View<const double> from, View<double> to) {
              for (std::size_t i = 0; i < 2; ++i) to[i] += 1 / from[i];
            });
      }
      for (const auto& part : parts) {
        space.task("take").in(sum).inout(part).launch(
            [](View<const double> from, View<double> to) {
              for (std::size_t i = 0; i < 2; ++i) to[i] = to[i] / 7 + from[i];
            });
      }
    });
    space.finish();
    const auto mine = parts[static_cast<std::size_t>(space.rank())].view();
    return std::vector<double>(mine.begin(), mine.end());
  });
}

// Tasks before and behind the loop add to the same sum as its last and first tasks do. At most two
// on a rank add without a reader between them: more would leave other bits in another order.
TEST(LoopOfData, a_reduction_across_the_ends_of_periods_has_the_bits_of_a_loop_of_insertions) {
  for (const bool is_temporary : {false, true}) {
    expect_the_bits_of_a_loop_of_insertions([&](Space& space, const int count, const bool loops) {
      const auto sum = is_temporary ? space.temporary<double>(1) : space.data<double>(0, 1);
      const auto seen = space.data<double>(0, 1);
      const int last = space.size() - 1;
      const auto add = [&](const double value, const int on) {
        space.task("add").reduce(sum, op::sum).on(on).launch(
            [value](View<double> to) { to[0] += value; });
      };
      add(1e-9, 0);
      insert(space, count, loops, [&](std::int64_t) {
        add(1e5 / 3, last);
        space.task("see").in(sum).inout(seen).launch(
            [](View<const double> from, View<double> to) { to[0] = to[0] / 3 + from[0]; });
        for (int rank = last; rank >= 0; --rank) add(0.1 + 1.0 / (rank + 3), rank);
      });
      add(0.3, 0);
      space.move(sum, 0);
      space.flush();
      space.finish();
      if (space.rank() != 0) return std::vector<double>();
      return std::vector<double>{sum.view()[0], seen.view()[0]};
    });
  }
}

TEST(LoopOfData, a_reduction_that_nothing_ends_goes_on_through_all_iterations) {
  std::vector<std::uint64_t> sent;
  expect_the_bits_of_a_loop_of_insertions([&](Space& space, const int count, const bool loops) {
    const auto sum = space.data<double>(0, 1);
    const auto add = [&](const double value, const int on) {
      space.task("add").reduce(sum, op::sum).on(on).launch(
          [value](View<double> to) { to[0] += value; });
    };
    add(0.7, space.size() - 1);
    insert(space, count, loops, [&](std::int64_t) {
      for (int rank = 0; rank < space.size(); ++rank) add(0.1 + 1.0 / (rank + 3), rank);
    });
    add(0.3, 0);
    space.flush();
    space.finish();
    sent.push_back(space.counters().copies_from_root);
    return space.rank() == 0 ? sum.view()[0] : 0;
  });
  EXPECT_EQ(*std::ranges::max_element(sent), sent.back());  // one combination, whatever the count
}

TEST(LoopOfData, a_reduction_of_a_temporary_begins_anew_behind_its_discard) {
  const Ring ring;
  Space space(ring.comm);
  const auto largest = space.temporary<int>(1);
  std::vector<Data<int>> found;
  for (int rank = 0; rank < ring.size; ++rank) found.push_back(space.data<int>(rank, 6));
  space.iterate(6, [&](std::int64_t) {
    for (int rank = ring.size - 1; rank >= 0; --rank) {
      space.task("max").reduce(largest, op::max).on(rank).launch(
          [rank](const std::int64_t i, View<int> to) {
            to[0] = std::max(to[0], -static_cast<int>(i) - rank);
          });
    }
    for (const auto& list : found) {
      space.task("note").in(largest).inout(list).launch(
          [](const std::int64_t i, View<const int> from, View<int> to) { to[i] = from[0]; });
    }
    space.discard(largest);
  });
  space.finish();
  EXPECT_EQ(largest.owner(), -1);
  const auto mine = found[static_cast<std::size_t>(ring.rank)].view();
  EXPECT_EQ(std::vector<int>(mine.begin(), mine.end()), (std::vector<int>{0, -1, -2, -3, -4, -5}));
}

// The first period reads and adds to the value before the loop, later ones do not.
TEST(LoopOfData, a_sum_that_is_used_and_discarded_grows_anew_in_each_period) {
  for (const bool adds_before : {false, true}) {
    expect_the_bits_of_a_loop_of_insertions([&](Space& space, const int count, const bool loops) {
      const auto sum = space.data<double>(0, 1), seen = space.data<double>(space.size() - 1, 1);
      space.task("begin").out(sum).launch([](View<double> to) { to[0] = 1e7 / 3; });
      insert(space, count, loops, [&](std::int64_t) {
        const auto add = [&](const double value, const int on) {
          space.task("add").reduce(sum, op::sum).on(on).launch(
              [value](View<double> to) { to[0] += value; });
        };
        if (adds_before) add(0.7, 0);
        space.task("use").in(sum).inout(seen).launch(
            [](View<const double> from, View<double> to) { to[0] = to[0] / 3 + from[0]; });
        space.discard(sum);
        for (int rank = 0; rank < space.size(); ++rank) add(0.1 + 1.0 / (rank + 3), rank);
      });
      space.flush();
      space.finish();
      std::vector<double> values;
      for (const auto& datum : {sum, seen}) {
        if (datum.owner() == space.rank()) values.push_back(datum.view()[0]);
      }
      return values;
    });
  }
}

TEST(LoopOfData, a_failed_part_of_a_reduction_fails_it_in_this_iteration_only) {
  const Ring ring;
  Space space(ring.comm);
  const int last = ring.size - 1;
  const auto sum = space.data<int>(0, 1);
  const auto good = space.data<int>(last, 5), end = space.data<int>(0, 1);
  space.iterate(5, [&](std::int64_t) {
    space.task("clear").out(sum).launch([](View<int> to) { to[0] = 0; });
    for (int rank = 0; rank < ring.size; ++rank) {
      space.task("add").reduce(sum, op::sum).on(rank).launch(
          [rank, last](const std::int64_t i, View<int> to) {
            if (i == 2 && rank == last) throw std::runtime_error("no part");
            ++to[0];
          });
    }
    space.task("take").in(sum).out(good).launch(
        [](const std::int64_t i, View<const int> from, View<int> to) { to[i] = from[0]; });
    space.task("count").inout(end).launch([](View<int> to) { ++to[0]; });
  });
  EXPECT_TRUE(names(thrown_by([&] { space.finish(); }), "no part"));
  if (ring.rank == last) {
    EXPECT_EQ(good.view()[4], ring.size);
  }
  if (ring.rank == 0) {
    EXPECT_EQ(end.view()[0], 5);
  }
}

TEST(LoopOfData, flush_and_move_bring_a_value_to_its_owner_in_each_period) {
  const Ring ring;
  const int last = ring.size - 1;
  std::vector<int> memory(1, 0);
  Space space(ring.comm);
  const auto a = space.data<int>(0, 1, memory.data()), seen = space.data<int>(0, 4);
  space.iterate(4, [&](std::int64_t) {
    space.task("there").inout(a).on(last).launch([](View<int> to) { ++to[0]; });
    space.flush(a);
    space.task("here").in(a).inout(seen).launch(
        [&](const std::int64_t i, View<const int> from, View<int> to) {
          to[i] = from[0] * 100 + memory[0];
        });
    space.move(a, last);
    space.task("by owner").inout(a).launch([&](View<int> to) {
      EXPECT_EQ(ring.rank, last);
      to[0] += 10;
    });
    space.move(a, 0);
  });
  space.flush();
  space.finish();
  EXPECT_EQ(a.owner(), 0);
  if (ring.rank != 0) return;
  EXPECT_EQ(memory[0], 44);
  const auto all = seen.view();
  EXPECT_EQ(std::vector<int>(all.begin(), all.end()), (std::vector<int>{101, 1212, 2323, 3434}));
}

// ---- the end of loops ------------------------------------------------------------------------

// Counts on each rank, in a ring of tasks that read their neighbour; `stop` is the deciding task.
void expect_end(const int count, const std::int64_t period, const int last, const auto& stop) {
  const Ring ring;
  Space space(ring.comm);
  std::vector<Data<std::int64_t>> parts;
  for (int rank = 0; rank < ring.size; ++rank) parts.push_back(space.data<std::int64_t>(rank, 2));
  const auto kept = space.data<std::int64_t>(ring.size - 1, 1);
  space.task("begin").out(kept).launch([](View<std::int64_t> to) { to[0] = -1; });
  space.iterate(count, {.period = period}, [&](const std::int64_t i) {
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      std::vector<Data<std::int64_t>> neighbour;
      if (ring.size > 1) neighbour.push_back(parts[(rank + 1) % parts.size()]);
      space.task("count").in(neighbour).inout(parts[rank]).launch(
          [last](const std::int64_t now, Views<const std::int64_t>, View<std::int64_t> to) {
            EXPECT_LE(now, last);
            ++to[0];
          });
    }
    if (i % period == period - 1) {
      space.task("last of the period").out(kept).on(0).launch(
          [](const std::int64_t now, View<std::int64_t> to) { to[0] = now; });
    }
    stop(space, parts);
  });
  space.flush(kept);
  for (const auto& part : parts) {  // insertions go on
    space.task("behind").inout(part).launch([](View<std::int64_t> to) { to[1] = to[0]; });
  }
  space.finish();
  EXPECT_EQ(parts[static_cast<std::size_t>(ring.rank)].view()[1], last + 1);
  if (ring.rank == ring.size - 1) {
    EXPECT_EQ(kept.view()[0], (last + 1) / period * period - 1);
  }
}

TEST(LoopOfData, a_deciding_task_ends_the_loop_on_all_ranks) {
  constexpr int count = 20;
  for (const std::int64_t period : {1, 3}) {
    for (const int last : {0, 1, 4, 18, 19}) {
      for (const int decider : {0, -1}) {
        expect_end(count, period, last, [&](Space& space, const auto& parts) {
          const auto& part = decider == 0 ? parts.front() : parts.back();
          space.task("decide").in(part).on(decider == 0 ? 0 : space.size() - 1).decides().launch(
              [last](const std::int64_t i, View<const std::int64_t>) {
                if (i == last) stop_iterating();
              });
        });
      }
    }
  }
  expect_end(count, 1, count - 1, [&](Space& space, const auto& parts) {
    space.task("decide").in(parts.front()).on(0).decides().launch([](auto) {});
  });
}

TEST(LoopOfData, each_of_several_deciding_tasks_ends_the_loop) {
  expect_end(100, 1, 6, [](Space& space, const auto& parts) {
    for (int rank = 0; rank < space.size(); ++rank) {
      space.task("decide").in(parts[static_cast<std::size_t>(rank)]).on(rank).decides().launch(
          [rank, last = space.size() - 1](const std::int64_t i, View<const std::int64_t>) {
            if (i == 6 && (rank == 0 || rank == last)) stop_iterating();
          });
    }
  });
}

TEST(LoopOfData, a_deciding_task_that_fails_or_cannot_run_ends_the_loop) {
  const Ring ring;
  for (const bool runs : {true, false}) {
    Space space(ring.comm);
    const int last = ring.size - 1;
    const auto value = space.data<int>(0, 1), count = space.data<int>(last, 1);
    space.iterate(1000, [&](std::int64_t) {
      space.task("count").inout(count).launch([](View<int> to) { ++to[0]; });
      space.task("make").out(value).launch([runs](const std::int64_t i, View<int>) {
        if (i == 4 && !runs) throw std::runtime_error("no value");
      });
      space.task("decide").in(value).on(last).decides().launch(
          [](const std::int64_t i, View<const int>) {
            if (i == 4) throw std::runtime_error("no decision");
          });
    });
    const std::string text = thrown_by([&] { space.finish(); });
    EXPECT_TRUE(names(text, runs ? "no decision" : "no value")) << text;
    if (ring.rank == last) {
      EXPECT_EQ(count.view()[0], 5);
    }
  }
}

TEST(LoopOfData, a_task_that_does_not_decide_must_not_end_the_loop) {
  const Ring ring;
  Space space(ring.comm);
  const auto a = space.data<int>(0, 1);
  space.iterate(3, [&](std::int64_t) {
    space.task("stop").inout(a).launch([](View<int>) { stop_iterating(); });
  });
  EXPECT_TRUE(names(thrown_by([&] { space.finish(); }), "which does not decide"));
}

TEST(LoopOfData, a_body_that_inserts_nothing_is_called_and_nothing_runs) {
  const Ring ring;
  Space space(ring.comm);
  int calls = 0;
  space.iterate(5, [&](std::int64_t) { ++calls; });
  EXPECT_GE(calls, 1);
  space.finish();
}

TEST(LoopOfData, refuses_what_cannot_repeat) {
  const Ring ring;
  Space space(ring.comm, {.name = "s"});
  const auto a = space.data<int>(0, 1, nullptr, "a");
  const auto b = space.data<int>(ring.size - 1, 1, nullptr, "b");
  const auto none = space.temporary<int>(1, "t");
  const auto wrong = [&](const char* const part, const auto& body) {
    const std::string text = thrown_by([&] { space.iterate(4, body); });
    EXPECT_TRUE(names(text, part)) << text;
  };
  const auto write = [&](const Data<int>& data) {
    space.task("write").out(data).launch([](View<int> to) { to[0] = 1; });
  };
  wrong("finish() of space \"s\" in the body", [&](std::int64_t) { space.finish(); });
  wrong("view() of space \"s\" in the body", [&](std::int64_t) { (void)a.view(); });
  wrong("a new datum of space", [&](std::int64_t) { (void)space.data<int>(0, 1); });
  wrong("iterate() of space \"s\" in the body",
        [&](std::int64_t) { space.iterate(1, [](std::int64_t) {}); });
  if (ring.size > 1) {
    wrong("leaves datum \"a\" of space \"s\" with the owner rank 1 behind the period, which began "
          "with the owner rank 0", [&](std::int64_t) { space.move(a, 1); });
  }
  // IMBREX_CHECK=1 calls the body for a second period, which is refused first.
  const char* const check = std::getenv("IMBREX_CHECK");
  const bool is_checked = check != nullptr && std::string_view(check) == "1";
  wrong(is_checked ? "reads datum \"a\" of space \"s\", which no task has written since it was "
                     "discarded"
                   : "reads datum \"a\" of space \"s\", which has no value in the second period",
        [&](std::int64_t) {
          space.task("x").in(a).on(0).launch([](auto) {});
          space.discard(a);
        });
  wrong("flush() of datum \"a\" of space \"s\"", [&](std::int64_t) {
    space.flush(a);
    space.discard(a);
  });
  EXPECT_TRUE(names(thrown_by([&] {
    space.task("x").out(a).decides().launch([](View<int>) {});
  }), "decides() of space \"s\", outside of the body of its iterate()"));
  space.task("again").out(a).launch([](View<int> to) { to[0] = 1; });
  wrong("no task has written",
        [&](std::int64_t) { space.task("x").in(none).on(0).launch([](auto) {}); });
  wrong("out of the body", [&](std::int64_t) {
    write(b);
    throw std::runtime_error("out of the body");
  });
  EXPECT_TRUE(names(
      thrown_by([&] { space.iterate(1, {.period = 0}, [](std::int64_t) {}); }), ".period = 0"));
  EXPECT_TRUE(names(thrown_by([&] {
    space.task("x").out(a).launch([](std::int64_t, View<int>) {});
  }), "outside of the body of its iterate()"));
  bool was_called = false;
  space.iterate(0, [&](std::int64_t) { was_called = true; });
  space.iterate(-1, [&](std::int64_t) { was_called = true; });
  EXPECT_FALSE(was_called);
  space.finish();
  if (ring.rank == 0) {
    EXPECT_EQ(a.view()[0], 1);
  }
}

}  // namespace
}  // namespace imbrex::test
