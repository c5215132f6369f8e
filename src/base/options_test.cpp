// SPDX-License-Identifier: BSD-3-Clause
#include "base/options.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "imbrex/error.hpp"

namespace imbrex::base {
namespace {

// Sets a variable for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

std::string refusal() {
  try {
    (void)read_options();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Options, have_the_defaults_of_the_table) {
  const Options options = read_options();
  EXPECT_EQ(options.WORKERS, 0);
  EXPECT_EQ(options.POLICY, "default");
  EXPECT_EQ(options.STACK_SIZE, 1 << 20);
  EXPECT_TRUE(options.UNTIED);
}

TEST(Options, read_numbers_sizes_words_and_switches) {
  const Variable workers("IMBREX_WORKERS", "3");
  const Variable stack("IMBREX_STACK_SIZE", "256k");
  const Variable policy("IMBREX_POLICY", "seeded:42");
  const Variable bind("IMBREX_BIND", "off");
  const Options options = read_options();
  EXPECT_EQ(options.WORKERS, 3);
  EXPECT_EQ(options.STACK_SIZE, 256 * 1024);
  EXPECT_EQ(options.POLICY, "seeded:42");
  EXPECT_FALSE(options.BIND);
}

TEST(Options, refuse_what_is_malformed_and_name_what_is_valid) {
  for (const char* const value : {"", "x", "-1", "4097", "3x", "1e3", "99999999999999999999"}) {
    const Variable workers("IMBREX_WORKERS", value);
    EXPECT_NE(refusal().find("valid: 0 to 4096"), std::string::npos) << value;
  }
  for (const char* const value : {"FIFO", "seeded:", "seeded:x", "seeded", ""}) {
    const Variable policy("IMBREX_POLICY", value);
    EXPECT_NE(refusal().find("default, steal, fifo"), std::string::npos) << value;
  }
  const Variable bind("IMBREX_BIND", "maybe");
  EXPECT_NE(refusal().find("0 or 1"), std::string::npos);
}

TEST(Options, warn_of_a_name_that_is_not_in_the_table_and_read_the_others) {
  const Variable unknown("IMBREX_WORKER", "3");
  const Variable workers("IMBREX_WORKERS", "5");
  testing::internal::CaptureStderr();
  EXPECT_EQ(read_options().WORKERS, 5);
  EXPECT_EQ(read_options().WORKERS, 5);  // no second warning after the first read
  const std::string output = testing::internal::GetCapturedStderr();
  EXPECT_EQ(output, "imbrex: " + describe_unknown({"WORKER"}) + "\n");
}

TEST(Options, name_the_nearest_option_in_a_line_about_unknown_names) {
  EXPECT_EQ(describe_unknown({}), "");
  const auto suggested = [](const std::string_view name) {
    const std::string text = describe_unknown({name});
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_NE(text.find("IMBREX_" + std::string(name)), std::string::npos);
    const std::size_t begin = text.find("did you mean IMBREX_");
    if (begin == std::string::npos) return std::string();
    return text.substr(begin + 20, text.find('?') - begin - 20);
  };
  EXPECT_EQ(suggested("WORKER"), "WORKERS");
  EXPECT_EQ(suggested("POLCIY"), "POLICY");
  EXPECT_EQ(suggested("STACKSIZE"), "STACK_SIZE");
  EXPECT_EQ(suggested("STALLS"), "STALL");
  EXPECT_EQ(suggested("PROGESS"), "PROGRESS");
  EXPECT_EQ(suggested("MAIN_AS_A_TASK"), "MAIN_AS_TASK");
  for (const char* const other : {"", "X", "QQ", "INSTALLED_IN", "VERSION"}) {
    EXPECT_EQ(suggested(other), "") << other;
  }
  EXPECT_NE(describe_unknown({"ROOT", "WORKER"}).find("no options IMBREX_ROOT, IMBREX_WORKER (did"),
            std::string::npos);
}

TEST(Options, say_where_the_setting_of_an_earlier_version_went) {
  EXPECT_NE(describe_unknown({"POOL_CHUNK"}).find(
                "IMBREX_POOL_CHUNK (removed: set WorkPoolOptions::chunk of each pool)"),
            std::string::npos);
  for (const char* const former : {"SENDS_BYTES", "TREE_MEMORY", "DATA_WINDOW", "POOL_VICTIMS"}) {
    const std::string text = describe_unknown({former});
    EXPECT_NE(text.find("(removed: "), std::string::npos) << text;
    EXPECT_EQ(text.find("did you mean"), std::string::npos) << text;
  }
}

TEST(Options, refuse_a_malformed_value_of_any_length_in_one_short_line) {
  for (const char* const name : {"IMBREX_POLICY", "IMBREX_WORKERS", "IMBREX_BIND"}) {
    std::string value(10'009, 'x');
    value[9] = '\n';
    const Variable option(name, value.c_str());
    const std::string text = refusal();
    EXPECT_NE(text.find(std::string(name) + "=xxx"), std::string::npos) << text;
    EXPECT_LT(text.size(), 300u);
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

TEST(Options, refuse_a_malformed_value_beside_an_unknown_name) {
  const Variable unknown("IMBREX_WORKER", "3");
  const Variable bind("IMBREX_BIND", "maybe");
  EXPECT_NE(refusal().find("IMBREX_BIND=maybe: valid: 0 or 1"), std::string::npos);
}

}  // namespace
}  // namespace imbrex::base
