// SPDX-License-Identifier: BSD-3-Clause
// What a call throws, and whether that says what it should.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "imbrex/error.hpp"

namespace imbrex::test {

// Returns the text of the Error that `call` throws, or "".
template <class F>
std::string error_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
// Returns whether `text` has all of these parts, in this order.
inline testing::AssertionResult has(const std::string& text,
                                    const std::vector<std::string>& parts) {
  std::size_t at = 0;
  for (const std::string& part : parts) {
    at = text.find(part, at);
    if (at == std::string::npos) return testing::AssertionFailure() << part << "\nin: " << text;
  }
  return testing::AssertionSuccess();
}

}  // namespace imbrex::test
