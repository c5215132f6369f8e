// SPDX-License-Identifier: BSD-3-Clause
// Addresses of code in a form that is valid in other processes of the program: relative to the
// executable or shared library, wherever that is loaded. (UPC++ does the same.)
#pragma once

#include <cstdint>
#include <string>

namespace imbrex::distributed {

struct CodePlace {
  std::uint64_t module = 0;  // hash of its build-id, or of name and size without one
  std::uint64_t offset = 0;
};

// Throws Error if no loaded module contains the address.
[[nodiscard]] CodePlace place_of(const void* code);
// Null if that module is not loaded here.
[[nodiscard]] void* code_at(const CodePlace& place);

}  // namespace imbrex::distributed
