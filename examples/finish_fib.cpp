// SPDX-License-Identifier: BSD-3-Clause
// Recursive fork-join: finish() waits for the tasks spawned in it, however deep, and gives up its
// worker meanwhile. The exception of a task arrives at the finish() around it.
#include <imbrex/imbrex.hpp>

#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace {

long fib(int n) {
  if (n < 0) throw std::domain_error("fib of a negative number");
  if (n < 2) return n;
  long left = 0;
  long right = 0;
  imbrex::finish([&] {
    imbrex::task("fib").launch([&, n] { left = fib(n - 1); });
    right = fib(n - 2);
  });
  return left + right;
}

}  // namespace

int main() {
  const long value = fib(24);
  std::printf("fib(24) = %ld\n", value);
  if (value != 46368) return 1;

  try {
    imbrex::finish([] { imbrex::task("wrong").launch([] { (void)fib(-1); }); });
  } catch (const std::domain_error& error) {
    std::printf("caught: %s\n", error.what());
    // fib of a negative number (in task "wrong" (finish_fib.cpp:32))
    return std::strstr(error.what(), "in task \"wrong\"") != nullptr ? 0 : 1;
  }
  return 1;  // nothing was thrown
}
