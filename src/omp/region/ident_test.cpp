// SPDX-License-Identifier: BSD-3-Clause
// The table of places, which threads read and fill without a lock.
#include "omp/region/ident.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace imbrex::omp {
namespace {

// The constants of a program with that many constructs, one a line.
class Idents {
 public:
  Idents(const std::string_view file, const std::size_t count) : idents_(count) {
    for (std::size_t index = 0; index < count; ++index) {
      texts_.push_back(std::make_unique<std::string>(";" + std::string(file) + ";function;" +
                                                     std::to_string(index + 1) + ";7;;"));
      idents_[index].text = texts_.back()->c_str();
    }
  }
  [[nodiscard]] const std::vector<Ident>& all() const noexcept { return idents_; }

 private:
  std::vector<std::unique_ptr<std::string>> texts_;
  std::vector<Ident> idents_;
};

bool is_known(const Construct& construct) { return construct.place.line() != 0; }

void expect_right(const Construct& construct, const std::string_view file,
                  const std::size_t index) {
  EXPECT_EQ(construct.place.line(), index + 1);
  EXPECT_EQ(construct.place.column(), 7u);
  EXPECT_EQ(std::string_view(construct.place.file_name()), file);
  EXPECT_EQ(std::string_view(construct.place.function_name()), "function");
  EXPECT_EQ(construct.task, "function:" + std::to_string(index + 1));
}

TEST(Ident, names_file_function_line_and_column) {
  static const Ident ident{0, 0, 0, 0, ";some folder/solver.c;relax;42;9;;"};
  const Construct construct = construct_at(&ident);
  const std::source_location place = construct.place;
  EXPECT_EQ(std::string_view(construct.task), "relax:42");
  EXPECT_EQ(std::string_view(place.file_name()), "some folder/solver.c");
  EXPECT_EQ(std::string_view(place.function_name()), "relax");
  EXPECT_EQ(place.line(), 42u);
  EXPECT_EQ(place.column(), 9u);
}

TEST(Ident, names_nothing_where_the_compiler_knows_nothing) {
  static const Ident unknown{0, 0, 0, 0, ";unknown;unknown;0;0;;"};
  static const Ident without{0, 0, 0, 0, nullptr};
  static const Ident other{0, 0, 0, 0, "no semicolons"};
  static const Ident cut{0, 0, 0, 0, ";file.c"};
  EXPECT_FALSE(is_known(construct_at(nullptr)));
  EXPECT_FALSE(is_known(construct_at(&unknown)));
  EXPECT_FALSE(is_known(construct_at(&without)));
  EXPECT_FALSE(is_known(construct_at(&other)));
  EXPECT_EQ(std::string_view(construct_at(&cut).place.file_name()), "file.c");
  EXPECT_STREQ(construct_at(nullptr).task, "task");
}

// Methodology: threads ask for the same constructs at once, each in an order of its own, so that
// several want to fill each entry. A place is right or none, and stays what it is once it is known.
TEST(Ident, threads_that_ask_at_once_get_right_places) {
  static constexpr std::string_view file = "stress.c";
  constexpr std::size_t count = 1500;
  constexpr std::size_t threads = 6;
  static const Idents idents(file, count);
  std::atomic<std::size_t> ready{0};
  std::vector<std::jthread> asking;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    asking.emplace_back([&ready, thread] {
      ready.fetch_add(1);
      while (ready.load() != threads) std::this_thread::yield();
      std::vector<bool> known(count);
      for (std::size_t step = 0; step < 3 * count; ++step) {
        const std::size_t index = thread % 2 == 0 ? (step * 7 + thread / 2) % count
                                                  : (3 * count - step + thread) % count;
        const Construct construct = construct_at(&idents.all()[index]);
        if (is_known(construct)) expect_right(construct, file, index);
        EXPECT_FALSE(known[index] && !is_known(construct));
        known[index] = is_known(construct);
      }
    });
  }
  asking.clear();
  std::size_t found = 0;
  for (std::size_t index = 0; index < count; ++index) {
    const Construct construct = construct_at(&idents.all()[index]);
    if (!is_known(construct)) continue;
    ++found;
    expect_right(construct, file, index);
  }
  EXPECT_GT(found, count * 9 / 10);  // few neighbourhoods are full
}

TEST(Ident, a_full_table_leaves_constructs_without_a_place) {
  constexpr std::string_view file = "large.c";
  static const Idents idents(file, 20'000);
  std::size_t found = 0;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t index = 0; index < idents.all().size(); ++index) {
      const Construct construct = construct_at(&idents.all()[index]);
      if (!is_known(construct)) continue;
      ++found;
      expect_right(construct, file, index);
    }
  }
  EXPECT_GT(found, 0u);
  EXPECT_LE(found, 2u * 4096);
}

}  // namespace
}  // namespace imbrex::omp
