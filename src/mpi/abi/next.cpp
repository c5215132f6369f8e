// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/abi/next.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "mpi/abi/linked.hpp"

namespace imbrex::mpi {

bool passes_through = !linked_with_imbrex();

namespace {
constinit thread_local int depth [[gnu::tls_model("initial-exec")]] = 0;
}  // namespace

[[gnu::noinline]] int& depth_in_next() noexcept {
  asm volatile("" ::: "memory");  // two calls may answer differently
  return depth;
}

void* find_next(const char* const name, const char* const or_else) noexcept {
  if (void* const found = dlsym(RTLD_NEXT, name)) return found;
  if (void* const found = dlsym(RTLD_NEXT, or_else)) return found;
  std::fprintf(stderr,
               "imbrex: no %s behind libimbrex_mpi: it comes after the MPI library, or the MPI "
               "library is linked into the program. Link -limbrex_mpi -limbrex -lmpi in this "
               "order, or preload libimbrex_mpi.so; the MPI must be a shared library.\n",
               name);
  std::_Exit(1);
}

}  // namespace imbrex::mpi
