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

namespace {

using Next = void*(const char*);

// libimbrex_preload.so loads this library at the first call of MPI. This library then stands behind
// the MPI in the dynamic linker's order, and the preloaded library finds the next functions. Null
// if the program was linked with this library, or this library was preloaded.
Next* find_preload() noexcept {
  auto* const next = reinterpret_cast<Next*>(dlsym(RTLD_DEFAULT, "imbrex_preload_next"));
  if (next == nullptr) return nullptr;
  Dl_info here;
  Dl_info there;
  void* const found = next("PMPI_Init");
  const bool is_own = found != nullptr && dladdr(found, &there) != 0 &&
                      dladdr(reinterpret_cast<void*>(&find_preload), &here) != 0 &&
                      here.dli_fbase == there.dli_fbase;
  return is_own ? nullptr : next;
}

}  // namespace

void* find_behind(const char* const name) noexcept {
  static Next* const preload = find_preload();
  void* const found = preload != nullptr ? preload(name) : nullptr;
  return found != nullptr ? found : dlsym(RTLD_NEXT, name);
}

void require_mpi() noexcept {
  if (find_behind("PMPI_Init") != nullptr || find_behind("MPI_Init") != nullptr) return;
  std::fprintf(stderr,
               "imbrex: no MPI_Init behind libimbrex_mpi: the link line names libimbrex_mpi after "
               "the MPI library, or the MPI library is linked into the program. Link -limbrex_mpi "
               "-limbrex -lmpi in this order, or preload libimbrex_mpi.so; the MPI must be a "
               "shared library.\n");
  std::_Exit(1);
}

namespace {

using Version = char[MPI_MAX_LIBRARY_VERSION_STRING];

// Writes the first line of the text of MPI_Get_library_version; writes nothing if the MPI lacks
// that function. Does not use real<>, which may lead to end_at_missing().
void read_version(Version& version) noexcept {
  using GetVersion = int(char*, int*);
  auto* const get_version = reinterpret_cast<GetVersion*>(find_behind("PMPI_Get_library_version"));
  if (get_version == nullptr) return;
  int length = 0;
  const InNext guard;
  (void)get_version(version, &length);
  version[std::strcspn(version, "\n")] = '\0';
}

}  // namespace

void learn_quirks() noexcept {
#ifdef MPICH_NUMVERSION  // 40200300 is 4.2.0
  constexpr int built_for =
      version_of(MPICH_NUMVERSION / 10'000'000, MPICH_NUMVERSION / 100'000 % 100);
#else
  constexpr int built_for = version_of(4, 1);
#endif
  Version version = "";
  read_version(version);
  const Identity mpi = identify(version, built_for);
  for (std::size_t i = 0; i < quirks_count; ++i) {
    found_quirks[i] = has_quirk(mpi, static_cast<Quirk>(i));
  }
}

void end_at_missing(const char* const function) noexcept {
  Version version = "an MPI that does not tell its version";
  read_version(version);
  std::fprintf(stderr,
               "imbrex: the program has called %s, which its MPI library lacks: %s. The MPI "
               "standard may have removed the function, or added it in a later version: change "
               "the call, or use an MPI that has the function.\n",
               function, version);
  std::abort();
}

}  // namespace imbrex::mpi
