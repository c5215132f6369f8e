// SPDX-License-Identifier: BSD-3-Clause
// Uses the installed headers and the library; succeeds if a task's value arrives.
#include <imbrex/imbrex.hpp>

int main() {
  const imbrex::Runtime runtime;
  auto answer = imbrex::task("answer").spawn([] { return 42; });
  return answer.get() == 42 ? 0 : 1;
}
