// SPDX-License-Identifier: BSD-3-Clause
// Addresses of code as other processes of the same program know them: relative to the executable or
// shared library that they are in, wherever that is loaded. (UPC++ does the same.)
#pragma once

#include <cstdint>
#include <string>

namespace imbrex::distributed {

struct CodePlace {
  std::uint64_t module = 0;  // of its build-id; of name and size if it has none
  std::uint64_t offset = 0;
};

// Throws Error if no module that is loaded has the address.
[[nodiscard]] CodePlace place_of(const void* code);
// Null if no module that is loaded here is that one.
[[nodiscard]] void* code_at(const CodePlace& place);

}  // namespace imbrex::distributed
