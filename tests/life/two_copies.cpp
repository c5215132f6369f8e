// SPDX-License-Identifier: BSD-3-Clause
// two_copies <libimbrex.so> <another copy of it>: a second copy of the runtime in one process must
// refuse to start and name both. This program itself links neither.
#include <dlfcn.h>

#include <cstdio>
#include <exception>

namespace {

using Start = void();

Start* start_of(const char* path) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("dlopen: %s\n", dlerror());
    return nullptr;
  }
  // imbrex::detail::start()
  return reinterpret_cast<Start*>(dlsym(library, "_ZN6imbrex6detail5startEv"));
}

// Prints whether the copy at `path` has started.
bool start(const char* path) {
  Start* const start_it = start_of(path);
  if (start_it == nullptr) return false;
  try {
    start_it();
    std::printf("started\n");
    return true;
  } catch (const std::exception& error) {
    std::printf("refused: %s\n", error.what());
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc != 3) return 2;
  if (!start(argv[1])) return 3;
  return start(argv[2]) ? 1 : 0;
}
