// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "runs.hpp"

namespace apps {
namespace {

enum class Kind { real, timed };
constexpr Choice<Kind> kinds[] = {{"real", Kind::real}, {"timed", Kind::timed}};

struct Options {
  int n = 7;
  double share = 2;  // outside of its limits: not given
  std::optional<double> line_us;
  std::vector<int> sizes{1, 2};
  std::vector<std::string> variants;
  Kind kind = Kind::real;
};

Options parse(std::vector<std::string> words) {
  words.insert(words.begin(), "program");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  Options options;
  CommandLine line("program", "Says what it does.");
  line.number("--n", options.n, {1, 16}, "How many");
  line.number("--share", options.share, {0, 1}, "How much");
  line.number("--line-us", options.line_us, {0}, "How long");
  line.numbers("--sizes", options.sizes, {1}, "How large");
  line.words("--variants", options.variants, {"one", "two"}, "Which");
  line.choice("--kernels", options.kind, kinds, "How");
  line.parse(static_cast<int>(argv.size()), argv.data());
  line.needs({"--line-us", "--share"}, options.kind == Kind::timed, "--kernels timed");
  return options;
}

std::string refusal(const std::vector<std::string>& words) {
  try {
    (void)parse(words);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(command_line, reads_each_kind_of_option) {
  const Options options = parse({"--n", "16", "--kernels", "timed", "--line-us", "2.5", "--sizes",
                                 "3,4", "--variants", "two,one"});
  EXPECT_EQ(options.n, 16);
  EXPECT_EQ(options.line_us, 2.5);
  EXPECT_EQ(options.sizes, (std::vector{3, 4}));
  EXPECT_EQ(options.variants, (std::vector<std::string>{"two", "one"}));
  EXPECT_EQ(options.kind, Kind::timed);
  EXPECT_STREQ(word_of(kinds, options.kind), "timed");
  EXPECT_EQ(parse({}).line_us, std::nullopt);
}

TEST(command_line, refuses_wrong_values_with_the_option_and_its_limits) {
  EXPECT_EQ(refusal({"--n", "17"}),
            "--n: Value 17 not in range 1 to 16 (--help lists the options)");
  EXPECT_EQ(refusal({"--sizes", "4,0"}),
            "--sizes: Value 0 is less than 1 (--help lists the options)");
  EXPECT_NE(refusal({"--n", "many"}).find("--n"), std::string::npos);
  EXPECT_NE(refusal({"--n", "99999999999"}).find("--n"), std::string::npos);
  EXPECT_NE(refusal({"--n", "1", "--n", "2"}).find("--n"), std::string::npos);
  EXPECT_NE(refusal({"--variants", "three"}).find("three not in {one,two}"), std::string::npos);
  EXPECT_NE(refusal({"--nonsense"}).find("--help lists the options"), std::string::npos);
  EXPECT_EQ(refusal({"--line-us", "3"}), "--line-us: needs --kernels timed");
}

TEST(command_line, refuses_numbers_that_are_not_finite) {
  for (const char* const text : {"nan", "inf", "-inf"}) {
    EXPECT_EQ(refusal({"--kernels", "timed", "--line-us", text}),
              "--line-us: must be a finite number (--help lists the options)");
  }
}

TEST(command_line, help_shows_values_that_stand_for_something) {
  try {
    (void)parse({"--help"});
    FAIL() << "no help";
  } catch (const HelpAsked& help) {
    EXPECT_NE(help.text.find("--n INT:INT in [1 - 16]=7"), std::string::npos) << help.text;
    EXPECT_NE(help.text.find("TEXT:{real,timed}=real"), std::string::npos) << help.text;
    EXPECT_EQ(help.text.find("=2 "), std::string::npos) << help.text;
  }
  EXPECT_EQ(look_at(0, nullptr, [](int, char**) -> int { throw HelpAsked{}; }), std::nullopt);
}

TEST(runs, variants_take_turns) {
  std::string order;
  Runs runs({"a", "b"}, 2, false);
  runs.measure([&](const Turn& turn) {
    order += runs.variants()[turn.variant] + (turn.last ? "! " : " ");
    return apps::Run{.seconds = static_cast<double>(turn.number),
                     .right = turn.number != 2,
                     .figures = {{"size", turn.number}}};
  });
  EXPECT_EQ(order, "a b a! b! ");
  EXPECT_FALSE(runs.right());
  EXPECT_EQ(runs.median(1), 3);
  EXPECT_EQ(runs.figures()[2].dump(), R"({"seconds":3.0,"size":3,"variant":"a"})");
}

TEST(runs, spread_is_least_median_and_most) {
  const Spread spread = spread_of({4, 1, 3});
  EXPECT_EQ(spread.least, 1);
  EXPECT_EQ(spread.median, 3);
  EXPECT_EQ(spread.most, 4);
  EXPECT_EQ(median_of({8, 1, 2, 4}), 3);
}

TEST(runs, a_file_that_cannot_be_written_is_an_error) {
  write_json("", {});
  EXPECT_THROW(write_json("/no/such/folder/figures.json", {}), std::runtime_error);
}

}  // namespace
}  // namespace apps
