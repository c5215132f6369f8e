// SPDX-License-Identifier: BSD-3-Clause
// Which libraries are an MPI, and which binary interface an MPI has. Used by libimbrex_preload.so,
// and by imbrex::mpi to refuse a program of another MPI. Knows no header of an MPI.
#pragma once

#include <dlfcn.h>

#include <cstring>
#include <string_view>

namespace imbrex::preload {

// True if the loaded library `file` is an MPI library: it defines PMPI_Wtime itself. Tools on top
// of MPI define MPI_X only, and the libraries of imbrex do not define the clock.
[[nodiscard]] inline bool is_mpi(const char* const file) noexcept {
  void* const library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  // Also searches the libraries that this one needs: the address may belong to one of them.
  void* const address = dlsym(library, "PMPI_Wtime");
  Dl_info place;
  const bool is_its =
      address != nullptr && dladdr(address, &place) != 0 && std::strcmp(place.dli_fname, file) == 0;
  dlclose(library);
  return is_its;
}

// Returns "abi", "openmpi", "mpich", or an empty text for a library of another MPI. `file` is
// loaded. MPICH and its relatives share no symbol that the others lack, but the version in their
// file names: libmpi.so.12, Debian's libmpich.so.12, Cray's libmpi_gnu_91.so.12.
[[nodiscard]] inline std::string_view interface_of(const char* const file) noexcept {
  const char* const slash = std::strrchr(file, '/');
  const std::string_view name = slash == nullptr ? file : slash + 1;
  if (name.starts_with("libmpi_abi.so")) return "abi";
  if (void* const library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD)) {
    const bool is_openmpi = dlsym(library, "ompi_mpi_comm_world") != nullptr;
    dlclose(library);
    if (is_openmpi) return "openmpi";
  }
  const auto has = [name](const std::string_view part) {
    return name.find(part) != std::string_view::npos;
  };
  return name.starts_with("libmpi") && (has(".so.12") || has(".so.0")) ? "mpich" : "";
}

}  // namespace imbrex::preload
