// SPDX-License-Identifier: BSD-3-Clause
#include "trace/symbols.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace imbrex::trace {
namespace {

[[gnu::noinline]] int local_function(int value) { return value * 3 + 1; }

TEST(Symbols, a_local_function_has_its_name_and_place) {
  const auto code = reinterpret_cast<const void*>(&local_function);
  if (look_up(code).name.empty()) GTEST_SKIP() << "built without libbacktrace";
  const Symbol& symbol = symbol_of(code);
  EXPECT_NE(symbol.name.find("local_function(int)"), std::string::npos) << symbol.name;
  EXPECT_TRUE(symbol.place.empty() || symbol.place.starts_with("symbols_test.cpp:"))
      << symbol.place;
  EXPECT_EQ(&symbol, &symbol_of(code));
}

TEST(Symbols, an_address_of_nothing_has_none) {
  EXPECT_EQ(symbol_of(nullptr).name, "");
  EXPECT_EQ(symbol_of(reinterpret_cast<const void*>(16)).name, "");
  int on_stack = 0;
  EXPECT_EQ(symbol_of(&on_stack).place, "");
}

TEST(Symbols, outlined_functions_are_called_what_the_source_calls_them) {
  EXPECT_EQ(readable("main._omp_fn.3", true), "main");
  EXPECT_EQ(readable("main._omp_fn.3", false), "main, construct 3");
  EXPECT_EQ(readable("_ZN4Grid5sweepEi._omp_fn.0", true), "Grid::sweep(int)");
  EXPECT_EQ(readable("body", false), "body");
}

TEST(Symbols, many_threads_may_ask_at_once) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] {
      for (int round = 0; round < 100; ++round) {
        const auto code = reinterpret_cast<const char*>(&local_function) + round % 4;
        (void)symbol_of(code);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace imbrex::trace
