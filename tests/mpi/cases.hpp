// SPDX-License-Identifier: BSD-3-Clause
// A program that does one of several things, which its argument names.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

namespace imbrex::test {

using Cases = std::map<std::string, std::function<void()>>;

// Returns the case that `argv` names. Lists all, and ends the program with 2, if it names none.
inline const Cases::value_type& chosen(const Cases& cases, int argc, char** argv) {
  const auto found = cases.find(argc == 2 ? argv[1] : "");
  if (found != cases.end()) return *found;
  for (const auto& [name, run] : cases) std::fprintf(stderr, "%s %s\n", argv[0], name.c_str());
  std::exit(2);
}

}  // namespace imbrex::test
