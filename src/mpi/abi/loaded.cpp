// SPDX-License-Identifier: BSD-3-Clause
// The MPI libraries of this process. Each has a binary interface of its own (handles are pointers
// in one and integers in another), and this library is compiled for one of them. A program that is
// bound to another MPI would crash in its first call, so it is refused when it is loaded. An MPI
// library that the program is not bound to may be loaded beside, as a native one beside one of the
// standard's interface. A program with TAMPI is refused, too, because TAMPI defines the same
// functions for tasks of another runtime.
#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "preload/interface.hpp"

namespace imbrex::mpi {

namespace {

constexpr std::string_view own_interface = IMBREX_MPI_ABI;

std::string_view name_of_interface() {
  if (own_interface == "openmpi") return "Open MPI";
  if (own_interface == "mpich") return "MPICH";
  return "the MPI standard's binary interface";
}

struct Loaded {
  std::vector<std::string> mpis;
  std::vector<std::string> tampis;  // libtampi, libtampi-c, libtampi-fortran
};

int look(dl_phdr_info* object, std::size_t, void* found) {
  const std::string_view file = object->dlpi_name;
  if (file.empty()) return 0;  // the program: it has linked its MPI in, and there is no other
  auto& loaded = *static_cast<Loaded*>(found);
  if (file.substr(file.rfind('/') + 1).starts_with("libtampi")) loaded.tampis.emplace_back(file);
  if (preload::is_mpi(object->dlpi_name)) loaded.mpis.emplace_back(file);
  return 0;
}

std::string own_file() {
  Dl_info here;
  return dladdr(reinterpret_cast<void*>(&look), &here) != 0 ? here.dli_fname : "imbrex::mpi";
}

std::string join(const std::vector<std::string>& files) {
  std::string list;
  for (const std::string& file : files) list += (list.empty() ? "" : " and ") + file;
  return list;
}

// Returns the file of the MPI library that the program is bound to: its calls of the clock, which
// this library does not define, go there. Empty if the dynamic linker finds none.
std::string bound_file() {
  void* const address = dlsym(RTLD_DEFAULT, "PMPI_Wtime");
  Dl_info place;
  return address != nullptr && dladdr(address, &place) != 0 ? place.dli_fname : "";
}

void refuse_another_mpi(const std::vector<std::string>& files) {
  if (files.size() < 2) return;
  const std::string bound = bound_file();
  if (!bound.empty() && preload::interface_of(bound.c_str()) == own_interface) return;
  std::fprintf(stderr,
               "imbrex: this process has loaded %zu MPI libraries: %s. The program is bound to %s, "
               "and %s is built for another MPI: %s. Link or preload the libimbrex_mpi_*.so of the "
               "program's MPI (openmpi, mpich or abi), or build it: cmake -DIMBREX_MPI=<the "
               "compiler wrapper that the program was built with>.\n",
               files.size(), join(files).c_str(), bound.empty() ? "none" : bound.c_str(),
               own_file().c_str(), std::string(name_of_interface()).c_str());
  std::_Exit(1);
}

void refuse_tampi(const std::vector<std::string>& files) {
  if (files.empty()) return;
  std::fprintf(stderr,
               "imbrex: this process has loaded %s beside %s: both implement TAMPI's calls and "
               "MPI's blocking calls, each for the tasks of its own runtime. For tasks of imbrex, "
               "link the program without -ltampi (imbrex::mpi has TAMPI's interface). For tasks of "
               "another runtime, link the program without imbrex, and do not preload imbrex.\n",
               join(files).c_str(), own_file().c_str());
  std::_Exit(1);
}

// Runs before the check that programs reach this library (init_and_finalize.cpp), which would give
// the wrong advice with two MPIs, and before everything else in this library, of which it uses
// nothing.
[[gnu::constructor(1000)]] void refuse_what_does_not_fit() {
  Loaded loaded;
  dl_iterate_phdr(&look, &loaded);
  refuse_another_mpi(loaded.mpis);
  refuse_tampi(loaded.tampis);
}

}  // namespace
}  // namespace imbrex::mpi
