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

TEST(Options, refuse_a_name_that_is_not_in_the_table_and_list_all) {
  const Variable unknown("IMBREX_WORKER", "3");
  EXPECT_NE(refusal().find("IMBREX_WORKER is no option"), std::string::npos);
  EXPECT_NE(refusal().find("IMBREX_WORKERS"), std::string::npos);
}

}  // namespace
}  // namespace imbrex::base
