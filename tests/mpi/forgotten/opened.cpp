// SPDX-License-Identifier: BSD-3-Clause
// opened MPI [init]: a program that knows no MPI loads one when tasks have run, as an interpreter
// does, and perhaps initialises it.
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <string_view>
#include <thread>

#include "imbrex/imbrex.hpp"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  imbrex::task("early").spawn([] {}).get();
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    std::printf("opened: %s\n", dlerror());
    return 1;
  }
  if (argc > 2 && std::string_view(argv[2]) == "init") {
    using Init = int (*)(int*, char***);
    reinterpret_cast<Init>(dlsym(library, "MPI_Init"))(nullptr, nullptr);
  }
  // Workers fall asleep again and again, as when messages do not come.
  for (int round = 0; round < 14; ++round) {
    imbrex::task("nap").spawn([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
    }).get();
  }
  using Finalize = int (*)();
  if (argc > 2) reinterpret_cast<Finalize>(dlsym(library, "MPI_Finalize"))();
  std::printf("opened: ran to its end\n");
  return 0;
}
