// SPDX-License-Identifier: BSD-3-Clause
// Looks symbols up in the program's symbol table, which has local functions, too, and in its debug
// information, by libbacktrace.
#include <backtrace.h>
#include <fmt/format.h>

#include "trace/symbols.hpp"

namespace imbrex::trace {

namespace {

void ignore(void*, const char*, int) {}  // the program may have no debug information, for example

void take_name(void* const data, std::uintptr_t, const char* const name, std::uintptr_t,
               std::uintptr_t) {
  if (name != nullptr) *static_cast<std::string*>(data) = name;
}

// The innermost of several inlined functions comes first; it is the one that the source shows.
int take_place(void* const data, std::uintptr_t, const char* const file, const int line,
               const char*) {
  if (file == nullptr || line == 0) return 0;
  const std::string_view path = file;
  *static_cast<std::string*>(data) = fmt::format("{}:{}", path.substr(path.rfind('/') + 1), line);
  return 1;
}

}  // namespace

Symbol look_up(const void* const code) {
  static backtrace_state* const state = backtrace_create_state(nullptr, 1, &ignore, nullptr);
  if (state == nullptr || code == nullptr) return {};
  const auto address = reinterpret_cast<std::uintptr_t>(code);
  Symbol symbol;
  backtrace_pcinfo(state, address, &take_place, &ignore, &symbol.place);
  std::string name;
  backtrace_syminfo(state, address, &take_name, &ignore, &name);
  if (!name.empty()) symbol.name = readable(name, !symbol.place.empty());
  return symbol;
}

}  // namespace imbrex::trace
