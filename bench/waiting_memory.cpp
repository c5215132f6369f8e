// SPDX-License-Identifier: BSD-3-Clause
// The memory that tasks take while they wait. Makes COUNT tasks of which each is suspended, in
// get() of a promise or in a plain MPI_Recv, and reads /proc/self/status before and after. The body
// of a task touches TOUCH bytes of its stack.
//
//   waiting_memory get|recv COUNT [TOUCH]
//
// Prints a line of JSON: bytes of resident memory, and of address space, for each waiting task.
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "measure.h"

namespace {

// In bytes; `name` is VmRSS or VmSize.
long memory(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long kib = 0;
    if (word == name + ":" && status >> kib) return kib * 1024;
  }
  fail("/proc/self/status has no such line", 0, 1);
  return 0;
}

void touch(const std::size_t bytes) {
  auto* const stack = static_cast<volatile char*>(__builtin_alloca(bytes + 1));
  for (std::size_t i = 0; i <= bytes; i += 1024) stack[i] = 1;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long count = argc > 2 ? std::atol(argv[2]) : 0;
  const std::size_t touched = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 0;
  const bool receives = argc > 1 && std::strcmp(argv[1], "recv") == 0;
  if (count < 1 || (!receives && std::strcmp(argv[1], "get") != 0)) {
    std::fprintf(stderr, "usage: waiting_memory get|recv COUNT [TOUCH]\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const imbrex::Promise<void> promise("go on");
  std::atomic<long> began{0}, ended{0};
  long resident = 0, space = 0;
  imbrex::finish([&] {
    const auto future = promise.future();
    // The first tasks make what the runtime and the MPI make once.
    for (long i = -8; i < count; ++i) {
      if (i == 0) {
        while (began.load() < 8) imbrex::yield();
        resident = -memory("VmRSS"), space = -memory("VmSize");
      }
      imbrex::task("wait").launch([&, i, future] {
        touch(touched);
        began.fetch_add(1);
        int got = 0;
        if (receives) {
          MPI_Recv(&got, 1, MPI_INT, 0, int(i + 8), MPI_COMM_SELF, MPI_STATUS_IGNORE);
        } else {
          future.get();
        }
        ended.fetch_add(1);
      });
    }
    while (began.load() < count + 8) imbrex::yield();
    resident += memory("VmRSS"), space += memory("VmSize");
    for (int i = 0; receives && i < count + 8; ++i) MPI_Send(&i, 1, MPI_INT, 0, i, MPI_COMM_SELF);
    promise.set();
  });
  require_equal("tasks that ended", ended.load(), count + 8);
  std::printf("{\"case\": \"%s\", \"tasks\": %ld, \"touched\": %zu, \"resident_bytes\": %ld, "
              "\"address_space_bytes\": %ld}\n",
              argv[1], count, touched, resident / count, space / count);
  MPI_Finalize();
}
