// SPDX-License-Identifier: BSD-3-Clause
// The MPI's own functions, for programs that measure what imbrex adds to them: MPI_X and PMPI_X of
// a program that libimbrex_mpi serves are both imbrex's. RAW_MPI(Send)(...) calls MPI_Send of the
// first library behind it, in the order of loading. C++ only; a call costs a test more than a plain
// one.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#define RAW_MPI(X) (raw_mpi::function<&PMPI_##X>("PMPI_" #X))

namespace raw_mpi {

inline void* find(const char* const name) {
  Dl_info ours;
  void* map = nullptr;
  void* const first = dlsym(RTLD_DEFAULT, name);
  if (first != nullptr && dladdr1(first, &ours, &map, RTLD_DL_LINKMAP) != 0) {
    for (const link_map* next = static_cast<link_map*>(map)->l_next; next; next = next->l_next) {
      void* const library = dlopen(next->l_name, RTLD_LAZY | RTLD_NOLOAD);
      if (library == nullptr) continue;
      void* const found = dlsym(library, name);
      dlclose(library);
      if (found != nullptr && found != first) return found;
    }
  }
  std::fprintf(stderr, "raw_mpi: no library behind libimbrex_mpi has %s\n", name);
  std::exit(1);
}

template <auto Function>
auto function(const char* const name) {
  static const auto found = reinterpret_cast<decltype(Function)>(find(name));
  return found;
}

}  // namespace raw_mpi
