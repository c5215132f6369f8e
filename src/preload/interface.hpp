// SPDX-License-Identifier: BSD-3-Clause
// Which binary interface an MPI library has. Used by libimbrex_preload.so, and by imbrex::mpi to
// refuse a program of another MPI. Knows no header of an MPI.
#pragma once

#include <dlfcn.h>

#include <cstring>
#include <string_view>

namespace imbrex::preload {

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
