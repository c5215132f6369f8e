// SPDX-License-Identifier: BSD-3-Clause
// For programs of one test: what does not hold is printed and counted.
#pragma once

#include <cstdio>

namespace imbrex::test {

inline int failures = 0;

inline void expect(bool condition, const char* text) {
  if (condition) return;
  std::printf("failed: %s\n", text);
  ++failures;
}

}  // namespace imbrex::test
