// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/abi/next.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mpi/abi/linked.hpp"

namespace imbrex::mpi {

bool passes_through = !linked_with_imbrex();

namespace {
constinit thread_local int depth [[gnu::tls_model("initial-exec")]] = 0;
}  // namespace

[[gnu::noinline]] int& depth_in_next() noexcept {
  asm volatile("" ::: "memory");  // two calls may return different values
  return depth;
}

void* find_behind(const char* const name) noexcept { return dlsym(RTLD_NEXT, name); }

void require_mpi() noexcept {
  if (find_behind("PMPI_Init") != nullptr || find_behind("MPI_Init") != nullptr) return;
  std::fprintf(stderr,
               "imbrex: no MPI_Init behind libimbrex_mpi: it comes after the MPI library, or the "
               "MPI library is linked into the program. Link -limbrex_mpi -limbrex -lmpi in this "
               "order, or preload libimbrex_mpi.so; the MPI must be a shared library.\n");
  std::_Exit(1);
}

void end_at_missing(const char* const function) noexcept {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "an MPI that does not tell its version";
  int length = 0;
  // Not by real<>, which may lead here.
  using Tell = int(char*, int*);
  if (auto* const tell = reinterpret_cast<Tell*>(find_behind("PMPI_Get_library_version"))) {
    const InNext guard;
    (void)tell(version, &length);
    version[std::strcspn(version, "\n")] = '\0';
  }
  std::fprintf(stderr,
               "imbrex: the program has called %s, which its MPI library lacks: %s. The MPI "
               "standard may have removed the function, or added it in a later version: change "
               "the call, or use an MPI that has the function.\n",
               function, version);
  std::abort();
}

}  // namespace imbrex::mpi
