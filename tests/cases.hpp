// SPDX-License-Identifier: BSD-3-Clause
// For programs of several cases, of which the first argument names the one to run.
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <string>

namespace imbrex::test {

using Cases = std::map<std::string, std::function<int()>>;

// The case that argv[1] names; null, and the usage printed, if it names none. What is printed later
// goes out line by line: an abort loses nothing of it.
inline const std::function<int()>* find_case(const Cases& cases, const int argc, char** const argv,
                                             const char* const more_arguments = "") {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto found = argc >= 2 ? cases.find(argv[1]) : cases.end();
  if (found != cases.end()) return &found->second;
  std::fprintf(stderr, "usage: %s <case>%s; cases:", argv[0], more_arguments);
  for (const auto& [name, run] : cases) std::fprintf(stderr, " %s", name.c_str());
  std::fprintf(stderr, "\n");
  return nullptr;
}

}  // namespace imbrex::test
