// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/life/reach.hpp"

#include <dlfcn.h>
#include <link.h>
#include <mpi.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "mpi/engine/mpi_errors.hpp"

namespace imbrex::mpi {

namespace {

// The file of `function` if that is not this library, else empty.
std::string foreign_file_of(const char* function) {
  void* const address = dlsym(RTLD_DEFAULT, function);
  Dl_info here;
  Dl_info there;
  ElfW(Sym)* symbol = nullptr;
  if (dladdr(reinterpret_cast<void*>(&describe_bypass), &here) == 0) return "";
  if (address == nullptr ||
      dladdr1(address, &there, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) == 0) {
    return "nowhere";
  }
  if (there.dli_fbase == here.dli_fbase) return "";
  // A jump of libimbrex_preload.so, which leads here.
  Dl_info preload;
  void* const next = dlsym(RTLD_DEFAULT, "imbrex_preload_next");
  if (next != nullptr && dladdr(next, &preload) != 0 && preload.dli_fbase == there.dli_fbase) {
    return "";
  }
  // If a program is not position-independent and takes the function's address, dlsym() finds the
  // program's jump to the definition, which is no definition itself.
  if (symbol != nullptr && symbol->st_shndx == SHN_UNDEF) return "";
  return there.dli_fname;
}

}  // namespace

// A tool may be above this library: it calls PMPI_X, which is this library's, too, or the MPI_X
// behind its own.
std::string describe_bypass(const std::span<const char* const> functions) {
  for (const char* const profiled : functions) {
    const char* const function = profiled + 1;
    const std::string file = foreign_file_of(function);
    if (file.empty() || foreign_file_of(profiled).empty()) continue;
    return std::string(function) + " comes from " + file +
           ", not from libimbrex_mpi: blocking calls in tasks would block their workers. Link "
           "libimbrex_mpi before the MPI library (c++ ... -limbrex_mpi -limbrex -lmpi; with CMake "
           "name imbrex::mpi first and no MPI::MPI_* before it), or preload libimbrex_mpi.so.";
  }
  return "";
}

namespace {

// If this library is linked behind the MPI library, its MPI_Init is never called: that is reported
// when the library is loaded. Loaded after MPI_Init, the library waits for imbrex_attach().
[[gnu::constructor]] void check_that_init_is_ours() {
  constexpr std::array init{"PMPI_Init", "PMPI_Init_thread"};
  const std::string bypass = describe_bypass(init);
  if (bypass.empty()) return;
  // The program's MPI is asked itself: behind it, this library would find no MPI.
  using Ask = int(int*);
  auto* const ask = reinterpret_cast<Ask*>(dlsym(RTLD_DEFAULT, "PMPI_Initialized"));
  int initialised = 0;
  (void)(ask != nullptr ? ask(&initialised) : PMPI_Initialized(&initialised));
  if (initialised != 0) return;
  print(bypass);
  std::_Exit(1);
}

}  // namespace

std::string name_of_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  PMPI_Get_library_version(text, &length);
  const std::string_view all(text, static_cast<std::size_t>(length));
  return std::string(all.substr(0, all.find('\n')));
}

void warn_of_launcher() {
  struct Launcher {
    const char* name;
    const char* size;
    const char* rank;
  };
  constexpr Launcher launchers[] = {
      {"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
      {"a launcher that speaks PMI (mpiexec of MPICH or Intel MPI, srun)", "PMI_SIZE", "PMI_RANK"}};
  int ranks = 0;
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  PMPI_Comm_get_parent(&parent);
  if (ranks != 1 || parent != MPI_COMM_NULL) return;
  const auto number = [](const char* const variable) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? 0L : std::strtol(text, nullptr, 10);
  };
  for (const Launcher& it : launchers) {
    if (number(it.size) <= 1 || number(it.rank) != 0) continue;
    print(std::string("MPI_Init: ") + it.name + " has started " + std::to_string(number(it.size)) +
          " processes, but each is alone in MPI_COMM_WORLD: the program's MPI is " +
          name_of_library() + ", which does not know that launcher. Use the mpirun or mpiexec of "
          "the program's MPI.");
    return;
  }
}

}  // namespace imbrex::mpi
