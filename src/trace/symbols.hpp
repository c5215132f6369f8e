// SPDX-License-Identifier: BSD-3-Clause
// Finds what a function is called and where it stands, for tasks that a compiler has made of a
// construct and that nobody has named. The search runs when a report asks or a trace is written,
// never when a task is made or begins.
#pragma once

#include <string>
#include <string_view>

namespace imbrex::trace {

struct Symbol {
  std::string name;   // of the function that the source has; empty: unknown
  std::string place;  // file:line; empty without debug information
};

// The symbol of any address; it lives for ever. Any thread may call. The first call for an address
// costs milliseconds, and the first call of all reads the program's debug information.
[[nodiscard]] const Symbol& symbol_of(const void* code);

// "main._omp_fn.3" as a reader would say it: "main", and the number if it is all there is to tell
// one from another.
[[nodiscard]] std::string readable(std::string_view symbol, bool has_place);

// Finds out about an address by what the process itself tells of it.
[[nodiscard]] Symbol look_up(const void* code);

}  // namespace imbrex::trace
