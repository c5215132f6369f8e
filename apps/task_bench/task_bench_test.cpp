// SPDX-License-Identifier: BSD-3-Clause
// Tests of the table of patterns and of the graphs that ranks make of it. Methodology: every
// property is tested for every pattern, on many widths, numbers of steps and radices; beside that,
// sets that are written down by hand pin the definitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <vector>

#include "graph.hpp"

namespace task_bench {
namespace {

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const int width : {1, 2, 3, 4, 5, 7, 8, 13, 16}) {
    for (const int steps : {1, 2, 3, 40}) {
      for (const int radix : {1, 2, 5, 20}) {
        all.push_back({width, steps, radix, static_cast<std::uint64_t>(width + radix)});
      }
    }
  }
  return all;
}

// test(pattern, shape) for all of them.
template <class Test>
void for_each_case(Test&& test) {
  for (const Pattern& pattern : all_patterns()) {
    for (const Shape& shape : shapes()) {
      SCOPED_TRACE(testing::Message() << pattern.name << ", width " << shape.width << ", steps "
                                      << shape.steps << ", radix " << shape.radix);
      test(pattern, shape);
      if (testing::Test::HasFailure()) return;
    }
  }
}

template <class Use>
void for_each_task(const Pattern& pattern, const Shape& shape, Use&& use) {
  for (int step = 0; step < shape.steps; ++step) {
    const Columns columns = pattern.columns(shape, step);
    for (int column = columns.first; column < columns.end; ++column) use(step, column);
  }
}

TEST(patterns, have_tasks_in_every_step_and_within_the_width) {
  for_each_case([](const Pattern& pattern, const Shape& shape) {
    for (int step = 0; step < shape.steps; ++step) {
      const Columns columns = pattern.columns(shape, step);
      EXPECT_LE(0, columns.first);
      EXPECT_LT(columns.first, columns.end) << "step " << step;
      EXPECT_LE(columns.end, shape.width);
    }
  });
}

TEST(readers, are_the_reverse_of_inputs) {
  for_each_case([](const Pattern& pattern, const Shape& shape) {
    using Edge = std::array<int, 3>;  // step of the reader, its column, and that of its input
    std::set<Edge> by_inputs, by_readers;
    for_each_task(pattern, shape, [&](const int step, const int column) {
      for (const int input : inputs(pattern, shape, step, column)) {
        by_inputs.insert({step, column, input});
      }
      for (const int reader : readers(pattern, shape, step, column)) {
        by_readers.insert({step + 1, reader, column});
      }
    });
    EXPECT_EQ(by_inputs, by_readers);
  });
}

TEST(sets, ascend_and_name_tasks_that_exist) {
  for_each_case([](const Pattern& pattern, const Shape& shape) {
    const auto check = [&](const Set& set, const int step) {
      EXPECT_EQ(std::ranges::adjacent_find(set, std::greater_equal<>()), set.end());
      for (const int column : set) EXPECT_TRUE(pattern.columns(shape, step).has(column));
    };
    for_each_task(pattern, shape, [&](const int step, const int column) {
      check(inputs(pattern, shape, step, column), step - 1);
      check(readers(pattern, shape, step, column), step + 1);
    });
  });
}

TEST(patterns, communicate_if_a_task_reads_another_column) {
  for (const Pattern& pattern : all_patterns()) {
    const Shape shape{16, 40, 5, 1};
    bool reads_others = false;
    for_each_task(pattern, shape, [&](const int step, const int column) {
      for (const int input : inputs(pattern, shape, step, column)) {
        reads_others = reads_others || input != column;
      }
    });
    EXPECT_EQ(pattern.communicates, reads_others) << pattern.name;
  }
}

// The definitions, on 8 columns: inputs of (step, column).
TEST(patterns, have_the_inputs_of_their_definitions) {
  const Shape shape{8, 20, 5, 1};
  const auto of = [&](const char* name, const int step, const int column) {
    return inputs(*find_pattern(name), shape, step, column);
  };
  EXPECT_EQ(of("trivial", 3, 4), Set());
  EXPECT_EQ(of("no_communication", 3, 4), Set({4}));
  EXPECT_EQ(of("stencil_1d", 3, 4), Set({3, 4, 5}));
  EXPECT_EQ(of("stencil_1d", 3, 0), Set({0, 1}));
  EXPECT_EQ(of("stencil_1d_periodic", 3, 0), Set({0, 1, 7}));
  EXPECT_EQ(of("dom", 9, 4), Set({3, 4}));
  EXPECT_EQ(of("dom", 4, 4), Set({3}));  // the sweep reaches column 4
  EXPECT_EQ(of("dom", 16, 4), Set({3, 4}));
  EXPECT_EQ(of("dom", 19, 7), Set({6, 7}));  // the last corner
  EXPECT_EQ(of("tree", 2, 3), Set({1}));
  EXPECT_EQ(of("tree", 9, 7), Set({3}));
  EXPECT_EQ(of("fft", 1, 4), Set({3, 4, 5}));
  EXPECT_EQ(of("fft", 2, 4), Set({2, 4, 6}));
  EXPECT_EQ(of("fft", 3, 4), Set({0, 4}));
  EXPECT_EQ(of("fft", 4, 4), Set({3, 4, 5}));
  EXPECT_EQ(of("all_to_all", 3, 4), Set({0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(of("nearest", 3, 4), Set({2, 3, 4, 5, 6}));
  EXPECT_EQ(of("nearest", 3, 0), Set({0, 1, 2}));
  EXPECT_EQ(of("spread", 1, 0), Set({0, 1, 3, 4, 6}));
  EXPECT_EQ(of("spread", 2, 0), Set({0, 2, 4, 5, 7}));
  EXPECT_EQ(find_pattern("nothing"), nullptr);
}

TEST(dom, has_a_task_for_each_point_of_its_rectangle) {
  const Shape shape{5, 12, 5, 1};
  int tasks = 0;
  for_each_task(*find_pattern("dom"), shape, [&tasks](int, int) { ++tasks; });
  EXPECT_EQ(tasks, 5 * 8);
}

TEST(random_nearest, keeps_about_half_of_nearest_and_differs_by_step) {
  const Shape shape{32, 40, 8, 7};
  const Pattern& random = *find_pattern("random_nearest");
  int kept = 0;
  int all = 0;
  for_each_task(random, shape, [&](const int step, const int column) {
    const Set some = inputs(random, shape, step, column);
    const Set nearest = inputs(*find_pattern("nearest"), shape, step, column);
    EXPECT_TRUE(std::ranges::includes(nearest, some));
    kept += static_cast<int>(some.size());
    all += static_cast<int>(nearest.size());
  });
  EXPECT_NEAR(static_cast<double>(kept) / all, 0.5, 0.05);
  bool differs = false;
  for (int column = 0; column < shape.width; ++column) {
    differs = differs || inputs(random, shape, 1, column) != inputs(random, shape, 2, column);
  }
  EXPECT_TRUE(differs);
}

TEST(graph, has_the_sets_of_its_pattern_in_every_step) {
  for_each_case([](const Pattern& pattern, const Shape& shape) {
    const Graph graph(pattern, shape, 0, 1);
    for (int step = 0; step < shape.steps; ++step) {
      EXPECT_EQ(graph.columns(step).first, pattern.columns(shape, step).first);
      EXPECT_EQ(graph.columns(step).end, pattern.columns(shape, step).end);
    }
    for_each_task(pattern, shape, [&](const int step, const int column) {
      EXPECT_EQ(graph.inputs(step, column), inputs(pattern, shape, step, column)) << step;
    });
  });
}

TEST(graph, has_equal_sets_in_repeated_steps_a_period_apart) {
  for_each_case([](const Pattern& pattern, const Shape& shape) {
    const Graph graph(pattern, shape, 0, 1);
    const Steps repeated = graph.repeated();
    EXPECT_LE(repeated.end, shape.steps);
    for (int step = repeated.first; step + graph.period() < repeated.end; ++step) {
      const int later = step + graph.period();
      const Columns columns = pattern.columns(shape, step);
      EXPECT_EQ(columns.first, pattern.columns(shape, later).first);
      EXPECT_EQ(columns.end, pattern.columns(shape, later).end);
      for (int column = columns.first; column < columns.end; ++column) {
        EXPECT_EQ(inputs(pattern, shape, step, column), inputs(pattern, shape, later, column));
        EXPECT_EQ(readers(pattern, shape, step, column), readers(pattern, shape, later, column));
      }
    }
  });
}

TEST(graph, repeats_all_steps_but_those_at_its_ends) {
  for (const Pattern& pattern : all_patterns()) {
    const Shape shape{16, 1000, 5, 1};
    const Steps repeated = Graph(pattern, shape, 0, 1).repeated();
    const std::string_view name = pattern.name;
    EXPECT_EQ(repeated.first, name == "dom" ? 16 : name == "tree" ? 5 : 1) << name;
    EXPECT_EQ(repeated.end, name == "dom" ? 984 : 999) << name;
  }
}

// Each rank knows which outputs it gets, and each owner to which ranks it sends: both from the sets
// of the tasks alone.
TEST(graphs_of_ranks, agree_on_owners_and_on_messages) {
  for_each_case([](const Pattern& pattern, const Shape& shape) {
    for (const int ranks : {2, 3, 5}) {
      if (ranks > shape.width) continue;
      std::vector<Graph> graphs;
      for (int rank = 0; rank < ranks; ++rank) graphs.emplace_back(pattern, shape, rank, ranks);
      using Message = std::array<int, 3>;  // step, column, receiver
      std::set<Message> needed, sent, expected;
      for_each_task(pattern, shape, [&](const int step, const int column) {
        const int owner = graphs[0].owner(column);
        EXPECT_TRUE(graphs[static_cast<std::size_t>(owner)].my_columns(step).has(column));
        for (const int input : inputs(pattern, shape, step, column)) {
          if (graphs[0].owner(input) != owner) needed.insert({step - 1, input, owner});
        }
        for (const int rank : graphs[static_cast<std::size_t>(owner)].receivers(step, column)) {
          sent.insert({step, column, rank});
        }
      });
      for (int step = 0; step < shape.steps; ++step) {
        int columns = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          const Graph& graph = graphs[static_cast<std::size_t>(rank)];
          columns += graph.my_columns(step).count();
          for (const int column : graph.imports(step)) expected.insert({step, column, rank});
        }
        EXPECT_EQ(columns, pattern.columns(shape, step).count());
      }
      EXPECT_EQ(sent, needed) << ranks << " ranks";
      EXPECT_EQ(expected, needed) << ranks << " ranks";
    }
  });
}

TEST(uniform, is_spread_over_its_range) {
  double sum = 0;
  for (int i = 0; i < 1000; ++i) {
    const double value = uniform(1, i, 2, 3);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 1000, 0.5, 0.05);
  EXPECT_NE(uniform(1, 2, 3, 4), uniform(2, 2, 3, 4));
  EXPECT_NE(uniform(1, 2, 3, 4), uniform(1, 3, 2, 4));
}

}  // namespace
}  // namespace task_bench
