// SPDX-License-Identifier: BSD-3-Clause
// Finds the name and the place of a function, for unnamed tasks that a compiler has made of a
// construct. The search runs when a report asks or a trace is written, never when a task is made or
// begins.
#pragma once

#include <string>
#include <string_view>

namespace imbrex::trace {

struct Symbol {
  std::string name;   // of the function in the source; empty: unknown
  std::string place;  // file:line; empty without debug information
};

// The symbol of any address; it lives for ever. Any thread may call it. The first call for an
// address costs milliseconds, and the first call of all reads the program's debug information.
[[nodiscard]] const Symbol& symbol_of(const void* code);

// The readable form of "main._omp_fn.3": "main", with the number if nothing else tells two such
// functions apart.
[[nodiscard]] std::string readable(std::string_view symbol, bool has_place);

// Looks an address up in the information that the process itself has.
[[nodiscard]] Symbol look_up(const void* code);

}  // namespace imbrex::trace
