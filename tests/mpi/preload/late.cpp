// SPDX-License-Identifier: BSD-3-Clause
// A program that is linked with no MPI, as Python is: it may load one, for itself only. Then four
// threads make its first calls at a time.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

template <class Function>
Function* find(const char* const name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// The calls go to the preloaded library, as those of a module that is loaded with its MPI do.
int use_mpi() {
  auto* const version = find<int(int*, int*)>("MPI_Get_version");
  auto* const init = find<int(int*, char***)>("MPI_Init");
  auto* const finalize = find<int()>("MPI_Finalize");
  auto* const initialized = find<int(int*)>("MPI_Initialized");
  if (version == nullptr || init == nullptr || finalize == nullptr) return 2;
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      int major = 0;
      int minor = 0;
      if (version(&major, &minor) == 0 && major >= 3) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  int is_on = 0;
  if (init(nullptr, nullptr) != 0 || initialized(&is_on) != 0 || finalize() != 0) return 3;
  std::printf("%s\n", right == 4 && is_on == 1 ? "ended" : "wrong");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    if (dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) == nullptr) {
      std::printf("%s\n", dlerror());
      return 1;
    }
    return use_mpi();
  }
  int flag = 1;
  auto* const initialized = find<int(int*)>("MPI_Initialized");
  const bool is_off = initialized == nullptr || (initialized(&flag) == 0 && flag == 0);
  // A function that is newer than MPI 3.1 is not shown in a process without MPI.
  const bool is_hidden = dlsym(RTLD_DEFAULT, "MPI_Session_init") == nullptr;
  std::printf("%s\n", is_off && is_hidden ? "without_MPI" : "wrong");
}
