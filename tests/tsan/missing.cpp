// SPDX-License-Identifier: BSD-3-Clause
// Under ThreadSanitizer: one access is missing; argv[1] says in which of these programs. Both lines
// must be in the report, whichever workers ran the tasks.
#include <cstdio>
#include <cstring>
#include <vector>

#include "imbrex/imbrex.hpp"

static int while_tasks_run(const char* which, std::vector<int>& cells);

static int once(char** const argv) {
  const auto is = [argv](const char* const name) { return std::strcmp(argv[1], name) == 0; };
  std::vector<int> cells(100);
  if (is("access")) {
    imbrex::finish([&] {
      imbrex::task("writes").out(cells[0]).launch([&] {
        cells[0] = 1;
        cells[50] = 2;  // not declared
      });
      imbrex::task("reads").in(cells[50]).launch([&] { std::printf("%d\n", cells[50]); });
    });
  } else if (is("element")) {  // another object than its container
    imbrex::finish([&] {
      imbrex::task("writes").out(cells[0]).launch([&] { cells.assign(100, 1); });
      imbrex::task("reads").in(cells[3]).launch([&] { std::printf("%d\n", cells[3]); });
    });
  } else if (is("wait")) {  // the parent does not wait
    auto done = imbrex::task("writes").spawn([&] { cells[7] = 1; });
    imbrex::yield();
    std::printf("%d\n", cells[7]);
    done.get();
  } else if (is("cousins")) {  // accesses order siblings only
    imbrex::finish([&] {
      for (int parent = 0; parent < 2; ++parent) {
        imbrex::task("parent").launch([&] {
          imbrex::task("child").inout(cells[9]).launch([&] { ++cells[9]; });
        });
      }
    });
  } else if (is("grandchild")) {  // a taskwait waits for children only
    imbrex::finish([&] {
      imbrex::task("child").launch([&] {
        imbrex::task("grandchild").launch([&] { cells[11] = 1; });
      });
      imbrex::taskwait();
      std::printf("%d\n", cells[11]);
    });
  } else {
    return while_tasks_run(argv[1], cells);
  }
  return 0;
}

static int while_tasks_run(const char* const which, std::vector<int>& cells) {
  const auto is = [which](const char* const name) { return std::strcmp(which, name) == 0; };
  if (is("released")) {
    imbrex::finish([&] {
      imbrex::task("writes").out(cells[13]).launch([&] {
        imbrex::release(cells[13]);
        cells[13] = 1;
      });
      imbrex::task("reads").in(cells[13]).launch([&] { std::printf("%d\n", cells[13]); });
    });
  } else if (is("suspended")) {  // what another task reads while this one waits
    imbrex::Promise<void> go;
    imbrex::finish([&] {
      imbrex::task("waits").out(cells[15]).launch([&] {
        go.future().get();
        cells[15] = 1;
      });
      imbrex::task("reads").launch([&] {
        go.set();
        std::printf("%d\n", cells[15]);
      });
    });
  } else if (is("range")) {
    imbrex::finish([&] {
      imbrex::task("writes").out(imbrex::range(&cells[0], 50)).launch([&] { cells[50] = 1; });
      imbrex::task("reads").in(imbrex::range(&cells[50], 50)).launch([&] {
        std::printf("%d\n", cells[50]);
      });
    });
  } else if (is("captured")) {  // a local variable that its owner does not wait for
    imbrex::finish([&] {
      imbrex::task("parent").launch([] {
        int local = 1;
        imbrex::task("child").launch([&local] { ++local; });
        std::printf("%d\n", local);
        imbrex::taskwait();
      });
    });
  } else {
    return 2;
  }
  return 0;
}

// ThreadSanitizer may miss two accesses that meet at the same moment: so it gets three chances.
int main(int, char** argv) {
  int code = 0;
  for (int round = 0; round < 3 && code == 0; ++round) code = once(argv);
  return code;
}
