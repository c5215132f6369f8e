// SPDX-License-Identifier: BSD-3-Clause
// parallel_for and reduce, against a loop.
#include "imbrex/parallel.hpp"

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/on_runtime.hpp"
#include "imbrex/accumulator.hpp"

namespace imbrex::test {
namespace {

class ParallelTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, ParallelTest, testing::ValuesIn(every_policy({1, 2, 4, 8, 64})),
                         name_of);

constexpr std::size_t grains[] = {0, 1, 3, 64, std::size_t{1} << 63};
constexpr int lengths[] = {0, 1, 2, 17, 700};

struct Concat {
  std::string operator()(std::string a, const std::string& b) const { return std::move(a) + b; }
};

TEST_P(ParallelTest, every_element_has_its_turn_once) {
  for (const std::size_t grain : grains) {
    for (const int length : lengths) {
      std::vector<int> turns(static_cast<std::size_t>(length), 0);
      parallel_for(turns, {.grain = grain}, [](int& turn) { ++turn; });
      parallel_for(std::views::iota(0, length), {.grain = grain},
                   [&](const int i) { turns[static_cast<std::size_t>(i)] += 2; });
      EXPECT_EQ(turns, std::vector<int>(static_cast<std::size_t>(length), 3));
    }
  }
}

TEST_P(ParallelTest, reduce_is_what_a_loop_computes_in_order) {
  for (const std::size_t grain : grains) {
    for (const int length : lengths) {
      const auto numbers = std::views::iota(0, length);
      std::string expected;
      for (const int i : numbers) expected += std::to_string(i) + ",";
      const auto text = [](const int i) { return std::to_string(i) + ","; };
      EXPECT_EQ(imbrex::reduce(numbers, {.grain = grain}, std::string(), Concat(), text),
                expected);
      EXPECT_EQ(imbrex::reduce(numbers, {.grain = grain}, 0L, std::plus()),
                long{length} * (length - 1) / 2);
    }
  }
  EXPECT_TRUE(imbrex::reduce(std::vector{true, true}, true, std::logical_and()));
}

TEST_P(ParallelTest, the_result_of_reduce_has_the_wider_type) {
  const std::vector<double> halves(9, 0.5);
  EXPECT_EQ(imbrex::reduce(halves, 0, std::plus()), 4.5);
  EXPECT_EQ(imbrex::reduce(halves, {.grain = 2}, 0, op::max), 0.5);  // of one type alone
  const std::vector<int> many(3, 1'000'000'000);
  EXPECT_EQ(imbrex::reduce(many, 0L, std::plus()), 3'000'000'000);
  const auto size = [](const int i) { return std::string(static_cast<std::size_t>(i), 'x'); };
  const auto longer = [](std::string a, std::string b) { return a.size() < b.size() ? b : a; };
  EXPECT_EQ(imbrex::reduce(std::views::iota(0, 9), std::string(), longer, size).size(), 8u);
}

TEST_P(ParallelTest, a_grain_of_ones_own_gives_the_same_bits_for_any_number_of_workers) {
  std::vector<double> values;
  for (int i = 1; i <= 1000; ++i) values.push_back(1.0 / i);
  double expected = 0;
  for (std::size_t first = 0; first < values.size(); first += 16) {
    double part = 0;
    const std::size_t last = std::min(values.size(), first + 16);
    for (std::size_t i = first; i < last; ++i) part += values[i];
    expected += part;
  }
  EXPECT_EQ(imbrex::reduce(values, {.grain = 16}, 0.0, std::plus()), expected);
}

TEST_P(ParallelTest, an_exception_of_a_body_arrives_and_other_parts_go_on) {
  std::atomic<int> turns = 0;
  const auto wrong = [&](const int i) {
    ++turns;
    if (i % 10 == 5) throw std::out_of_range("an element");
    return i;
  };
  const auto numbers = std::views::iota(0, 100);
  EXPECT_THROW(parallel_for(numbers, {.grain = 1}, wrong), std::out_of_range);
  EXPECT_EQ(turns, 100);
  turns = 0;
  EXPECT_THROW((void)imbrex::reduce(numbers, {.grain = 10}, 0, std::plus(), wrong),
               std::out_of_range);
  EXPECT_EQ(turns, 60);  // six of each part
  EXPECT_THROW(parallel_for(std::views::iota(5, 6), wrong), std::out_of_range);
}

TEST_P(ParallelTest, bodies_may_wait_and_have_loops_of_their_own) {
  const Promise<int> promise;
  std::atomic<long> sum = 0;
  finish([&] {
    task("loops").launch([&] {
      parallel_for(std::views::iota(0, 8), [&](const int i) {
        const int more = promise.future().get();
        yield();
        sum += imbrex::reduce(std::views::iota(0, i), long{more}, std::plus());
      });
    });
    promise.set(0);
  });
  EXPECT_EQ(sum, 56);
}

TEST_P(ParallelTest, a_thread_of_the_program_waits_and_tasks_stay_in_their_place) {
  std::atomic<int> in_place = 0;
  std::atomic<bool> over = false;
  std::thread thread([&] {
    parallel_for(std::views::iota(0, 10), [&](int) { in_place += current_worker() >= 0; });
    over = true;
  });
  while (!over) yield();  // main is a worker, perhaps the only one
  thread.join();
  const Place first = place(0);
  task("here").at(first).spawn([&] {
    parallel_for(std::views::iota(0, 10), [&](int) { in_place += current_place() == first; });
  }).get();
  EXPECT_EQ(in_place, 20);
}

TEST_P(ParallelTest, reports_name_the_loop_and_its_line) {
  int line = 0;
  try {
    line = __LINE__ + 1;
    parallel_for(std::views::iota(0, 4), {.name = "mine"}, [](int) { throw Error("no"); });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("\"mine\" ("), std::string::npos) << text;
    EXPECT_NE(text.find("parallel_test.cpp:" + std::to_string(line)), std::string::npos) << text;
  }
}

template <class R, class F>
concept loops = requires(R range, F body) { parallel_for(range, body); };
constexpr auto shared = [](int) {};
constexpr auto changes = [n = 0](int) mutable { ++n; };
static_assert(loops<std::vector<int>, decltype(shared)>);
static_assert(!loops<std::vector<int>, decltype(changes)>);  // tasks would share what it changes
static_assert(!loops<std::list<int>, decltype(shared)>);
static_assert(!loops<std::vector<std::string>, decltype(shared)>);

}  // namespace
}  // namespace imbrex::test
