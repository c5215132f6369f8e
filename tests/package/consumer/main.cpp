// SPDX-License-Identifier: BSD-3-Clause
// Uses the installed headers and the library; succeeds if a task's value arrives. With an argument
// the program prints the version, by C++ and by C.
#include <imbrex/imbrex.h>
#include <imbrex/imbrex.hpp>

#include <cstdio>

int main(int argc, char**) {
  if (argc > 1) return std::printf("%s %s\n", imbrex::version(), imbrex_version()) < 0;
  const imbrex::Runtime runtime;
  auto answer = imbrex::task("answer").spawn([] { return 42; });
  return answer.get() == 42 ? 0 : 1;
}
