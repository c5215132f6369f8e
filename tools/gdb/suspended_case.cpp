// SPDX-License-Identifier: BSD-3-Clause
// For gdb_test.py: a process whose tasks stand still in known places. Prints "ready", then waits to
// be killed.
#include <imbrex/imbrex.hpp>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace {

imbrex::detail::EventWord never;
std::atomic<int> waiting{0};

[[gnu::noinline]] int innermost(int depth) {
  ++waiting;
  imbrex::detail::await(never, {.kind = imbrex::detail::WaitKind::event});
  return depth;
}

[[gnu::noinline]] int deeper(int depth) {
  return depth == 0 ? innermost(depth) : deeper(depth - 1) + 1;
}

}  // namespace

int main() {
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // gdb is no ancestor of this process
  int data = 0;
  const imbrex::Promise<int> promise("the answer");
  imbrex::finish([&] {
    imbrex::task("waits for an event").out(data).launch([&data] { data = deeper(3); });
    imbrex::task("depends on it").in(data).launch([] {});
    imbrex::task("waits for a promise").launch([&promise] {
      ++waiting;
      (void)promise.future().get();
    });
    imbrex::task("runs").launch([] {
      while (waiting < 2) imbrex::yield();
      usleep(200'000);  // until the others have left their stacks
      std::puts("ready");
      std::fflush(stdout);
      for (;;) pause();
    });
  });
}
