// SPDX-License-Identifier: BSD-3-Clause
// For programs that go on after a report: they wait until it is there.
#pragma once

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace imbrex::test {

// Returns once the report that this text is part of has been printed: machines are busy at times,
// and no duration would do on all. If no report will come, since IMBREX_STALL_S is 0 or an hour, or
// none can be seen, since the program was started by hand, it returns after a while.
inline void until_printed(const std::string& text) {
  const char* const output = std::getenv("EXPECT_OUTPUT");  // tests/life/expect.sh
  const char* const seconds = std::getenv("IMBREX_STALL_S");
  const int told_after = seconds == nullptr ? 1 : std::atoi(seconds);
  if (output == nullptr || told_after == 0 || told_after >= 3600) {
    return std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  }
  const auto longest = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < longest) {
    std::stringstream printed;
    printed << std::ifstream(output).rdbuf();
    if (printed.str().find(text) != std::string::npos) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace imbrex::test
