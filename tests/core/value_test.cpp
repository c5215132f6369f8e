// SPDX-License-Identifier: BSD-3-Clause
// The value of a future: who may move it out by get() of an rvalue, and what others see then.
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/error_of.hpp"
#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

class ValueTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, ValueTest, testing::ValuesIn(every_setup()), name_of);

struct Odd {
  int value;
};

struct Copied {
  explicit Copied(int& its_copies) : copies(&its_copies) {}
  Copied(const Copied& other) : copies(other.copies) { ++*copies; }
  Copied(Copied&& other) = default;
  int* copies;
};

TEST_P(ValueTest, get_of_an_rvalue_moves_the_value_out_of_the_only_future) {
  int copies = 0;
  (void)task("result").spawn([&] { return Copied(copies); }).get();
  auto named = task("result").spawn([&] {
    yield();
    return Copied(copies);
  });
  { const auto before = named; }
  auto after = task("after").in(named).spawn([] {});  // waits for it, and cannot read it
  (void)std::move(named).get();
  after.get();
  Future<Copied> promised;
  {
    Promise<Copied> promise;
    promised = promise.future();
    promise.set(copies);
  }
  (void)std::move(promised).get();
  EXPECT_EQ(copies, 0);
}

TEST_P(ValueTest, get_of_an_rvalue_copies_what_another_may_read) {
  const std::string text(100, 'x');
  const Promise<std::string> promise;
  promise.set(text);
  EXPECT_EQ(promise.future().get(), text);
  EXPECT_EQ(promise.future().get(), text);
  const auto kept = task("result").spawn([&] { return text; });
  EXPECT_EQ(Future<std::string>(kept).get(), text);
  EXPECT_EQ(kept.get(), text);
  auto holds = task("holds").spawn([kept] { return kept.get(); });
  EXPECT_EQ(Future<std::string>(kept).get(), text);
  EXPECT_EQ(holds.get(), text);
}

TEST_P(ValueTest, many_that_get_an_rvalue_all_have_the_value) {
  const std::string text(100, 'x');
  for (int round = 0; round < scaled(50); ++round) {
    std::atomic<int> right = 0;
    finish([&] {
      auto first = task("result").spawn([&] { return text; });
      for (int i = 0; i < 4; ++i) {
        task("gets").launch([&, mine = first]() mutable {
          right += std::move(mine).get() == text;
        });
      }
      right += std::move(first).get() == text;
    });
    ASSERT_EQ(right, 5);
  }
}

TEST_P(ValueTest, a_move_only_value_that_another_holds_is_refused_and_stays) {
  auto one = task("owner").spawn([] { return std::make_unique<int>(4); });
  auto two = one;
  const std::string text = error_of([&] { (void)std::move(one).get(); });
  EXPECT_TRUE(has(text, {"task \"owner\" (", "value_test.cpp", "1 more Future holds it"})) << text;
  EXPECT_EQ(*two.get(), 4);
  one = {};
  EXPECT_EQ(*std::move(two).get(), 4);
}

TEST_P(ValueTest, a_value_is_moved_out_once) {
  const Promise<std::unique_ptr<int>> promise("pointer");
  promise.set(std::make_unique<int>(4));
  auto first = promise.future();
  EXPECT_EQ(*std::move(first).get(), 4);
  EXPECT_TRUE(has(error_of([&] { (void)promise.future(); }), {"promise \"pointer\"", "moved out"}));
  EXPECT_TRUE(has(error_of([&] { (void)std::move(first).get(); }), {"\"pointer\"", "moved out"}));
  auto text = task("text").spawn([] { return std::string(100, 'x'); });
  EXPECT_EQ(std::move(text).get().size(), 100u);
  EXPECT_TRUE(has(error_of([&] { (void)std::move(text).get(); }), {"\"text\"", "moved out"}));
}

TEST_P(ValueTest, a_value_that_was_moved_out_cannot_be_read) {
  auto text = task("text").spawn([] { return std::string(100, 'x'); });
  const Future<std::string>& named = text;
  EXPECT_EQ(named.get().size(), 100u);
  task("taker").spawn([&text] { EXPECT_EQ(std::move(text).get().size(), 100u); }).get();
  for (int i = 0; i < 2; ++i) {
    const std::string error = error_of([&] { i == 0 ? (void)named.get() : (void)named.try_get(); });
    EXPECT_TRUE(has(error, {"\"text\" (", "moved out", "in task \"taker\""})) << error;
  }
  named.wait();  // it is complete all the same
  EXPECT_TRUE(named.ready());
}

struct Brittle {
  Brittle() = default;
  Brittle(Brittle&&) { throw Odd{5}; }
};

TEST_P(ValueTest, a_move_that_throws_reaches_the_caller_and_counts_as_a_move) {
  const Promise<Brittle> promise("brittle");
  promise.set();
  auto future = promise.future();
  EXPECT_THROW((void)std::move(future).get(), Odd);
  EXPECT_TRUE(has(error_of([&] { (void)future.get(); }), {"\"brittle\"", "moved out"}));
  EXPECT_TRUE(has(error_of([&] { (void)std::move(future).get(); }), {"\"brittle\"", "moved out"}));
}

using Owner = std::unique_ptr<int>;
using Owners = std::vector<Owner>;  // says that it can be copied

template <class T>
[[nodiscard]] T moved_through(T value) {
  return task("result").spawn([value = std::move(value)]() mutable { return std::move(value); })
      .get();
}

TEST_P(ValueTest, a_value_whose_parts_are_move_only_is_moved) {
  const auto owners = [] {
    Owners made;
    made.push_back(std::make_unique<int>(7));
    return made;
  };
  EXPECT_EQ(*std::get<Owners>(moved_through(std::variant<int, Owners>(owners())))[0], 7);
  EXPECT_EQ(*moved_through(std::optional(owners())).value()[0], 7);
  EXPECT_EQ(*moved_through(std::array<Owners, 1>{owners()})[0][0], 7);
  std::map<int, std::vector<Owners>> nested;
  nested[1].push_back(owners());
  EXPECT_EQ(*moved_through(std::move(nested))[1][0][0], 7);
  using Choice = std::variant<std::monostate, std::pair<int, std::optional<Owners>>>;
  Choice choice(std::pair(1, std::optional(owners())));
  EXPECT_EQ(*std::get<1>(moved_through(std::move(choice))).second.value()[0], 7);
  static_assert(detail::is_copyable<std::variant<int, std::string>>);
  static_assert(detail::is_copyable<std::shared_ptr<Owner>>);
}

TEST_P(ValueTest, get_of_an_lvalue_gives_a_reference) {
  auto future = task("result").spawn([] { return std::make_unique<int>(4); });
  const std::unique_ptr<int>& one = future.get();
  EXPECT_EQ(&one, &future.get());
  const auto other = future;
  EXPECT_EQ(&one, &other.get());
  struct Fixed {
    Fixed() = default;
    Fixed(const Fixed&) = delete;
    int value = 3;
  };
  Promise<Fixed> fixed;
  fixed.set();
  EXPECT_EQ(fixed.future().get().value, 3);  // neither moved nor copied
}

}  // namespace
}  // namespace imbrex::test
