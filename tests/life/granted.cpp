// SPDX-License-Identifier: BSD-3-Clause
// Prints the number of workers on the machine of granted_machine.c.
#include <cstdio>

#include "imbrex/imbrex.hpp"

int main() {
  imbrex::finish([] {});
  std::printf("%d workers\n", imbrex::worker_count());
}
