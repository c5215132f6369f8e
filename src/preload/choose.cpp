// SPDX-License-Identifier: BSD-3-Clause
// libimbrex_preload.so: one library to preload under any program. It shows all functions of MPI, as
// jumps (jumps.py). The first call of one looks which MPI library the process has by then, loads
// the libimbrex_mpi that fits, from the folder of this library, and sets all jumps to it. A
// program that never calls MPI is left alone. The library needs no other than the C library.
// Where the MPI library comes late, functions that are newer than MPI 3.1 go to it without imbrex.
//
// Thread safety: several threads may come here at once. Each finds out the same, and writes the
// same addresses; the dynamic linker loads the library once, and lets no thread go on before its
// constructors have ended. A lock here could be held by a thread that waits for the linker's, and
// wanted by a thread that loads a library and calls MPI in its constructor.
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "preload/interface.hpp"

extern "C" {
// Made by jumps.py. Targets are written here with a release, and a jump reads its target with an
// acquire: all that a target leads to is there before the address.
extern void* imbrex_targets[];
extern const char imbrex_newer_begin[];
extern const char imbrex_newer_end[];
extern const char imbrex_names[];  // one behind the other; an empty one comes last
[[gnu::visibility("hidden")]] void* imbrex_choose(unsigned number) noexcept;
// The definition of `name` behind this library: of a tool that is preloaded behind it, or of the
// MPI. libimbrex_mpi asks for it (src/mpi/abi/next.cpp).
[[gnu::visibility("default")]] void* imbrex_preload_next(const char* name) noexcept;
}

namespace imbrex::preload {

namespace {

struct File {
  char path[4096];
};

int look(dl_phdr_info* const object, std::size_t, void* const found) noexcept {
  const std::string_view file = object->dlpi_name;
  if (file.empty() || file.size() >= sizeof(File::path)) return 0;
  if (!is_mpi(object->dlpi_name)) return 0;
  std::strcpy(static_cast<File*>(found)->path, object->dlpi_name);
  return 1;
}

// Finds the MPI library that the program is bound to, else an MPI library that was loaded with
// RTLD_LOCAL, as Python's modules are. False if there is none.
bool find_mpi(File& mpi) noexcept {
  void* const address = dlsym(RTLD_NEXT, "PMPI_Wtime");
  Dl_info place;
  if (address != nullptr && dladdr(address, &place) != 0 &&
      std::strlen(place.dli_fname) < sizeof mpi.path) {
    std::strcpy(mpi.path, place.dli_fname);
    return true;
  }
  return dl_iterate_phdr(&look, &mpi) != 0;
}

// Prints the message once in the process.
std::atomic<bool> has_reported{false};
void report_bypass(const char* const mpi, const char* const why) noexcept {
  if (has_reported.exchange(true, std::memory_order_relaxed)) return;
  std::fprintf(stderr, "imbrex: MPI calls go directly to %s, without imbrex: %s.\n", mpi, why);
}

// Loads the libimbrex_mpi for this MPI; reports and returns null if there is none.
void* open_backend(const char* const mpi) noexcept {
  const std::string_view interface = interface_of(mpi);
  if (interface.empty()) {
    report_bypass(mpi, "that library has neither the binary interface of Open MPI, nor that of "
                       "MPICH, nor that of the MPI standard");
    return nullptr;
  }
  char name[64];
  std::snprintf(name, sizeof name, "libimbrex_mpi_%.*s.so.%s", static_cast<int>(interface.size()),
                interface.data(), IMBREX_SOVERSION);
  // The program may have been linked with it.
  if (void* const there = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return there;
  Dl_info here;
  File file;
  if (dladdr(reinterpret_cast<void*>(&open_backend), &here) == 0) return nullptr;
  const char* const slash = std::strrchr(here.dli_fname, '/');
  const int folder = slash == nullptr ? 0 : static_cast<int>(slash - here.dli_fname) + 1;
  std::snprintf(file.path, sizeof file.path, "%.*s%s", folder, here.dli_fname, name);
  void* const backend = dlopen(file.path, RTLD_NOW | RTLD_GLOBAL);
  if (backend == nullptr) report_bypass(mpi, dlerror());
  return backend;
}

bool is_question_before_mpi(const std::string_view name) noexcept {
  return name.ends_with("MPI_Initialized") || name.ends_with("MPI_Finalized");
}
// The answer for a program without MPI that asks whether a part of it has begun MPI.
int answer_no(int* const flag) noexcept {
  *flag = 0;
  return 0;
}

[[noreturn]] void end_at(const char* const name, const char* const why) noexcept {
  std::fprintf(stderr, "imbrex: the program has called %s, %s.\n", name, why);
  std::abort();
}

const char* name_of(unsigned number) noexcept {
  const char* name = imbrex_names;
  for (; number != 0; --number) name += std::strlen(name) + 1;
  return name;
}

// Programs ask whether their MPI has a function that is newer than MPI 3.1 by a weak reference or
// by dlsym(). So this library must not define functions that the MPI lacks. This function hides, in
// the library's own table of symbols, the functions between imbrex_newer_begin and imbrex_newer_end
// that no later library defines. In a process whose MPI is loaded later, it hides all of them. The
// dynamic linker does not take a symbol without a value as a definition.
[[gnu::constructor]] void hide_what_the_mpi_lacks() noexcept {
  Dl_info here;
  link_map* own = nullptr;
  if (dladdr1(imbrex_newer_begin, &here, reinterpret_cast<void**>(&own), RTLD_DL_LINKMAP) == 0) {
    return;
  }
  ElfW(Sym)* symbols = nullptr;
  const char* texts = nullptr;
  const ElfW(Word)* hash = nullptr;
  for (const ElfW(Dyn)* entry = own->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<ElfW(Sym)*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) texts = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_HASH) hash = reinterpret_cast<const ElfW(Word)*>(entry->d_un.d_ptr);
  }
  if (symbols == nullptr || texts == nullptr || hash == nullptr) return;
  const std::size_t count = hash[1];
  const std::uintptr_t page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(symbols) / page * page;
  const std::size_t bytes = reinterpret_cast<std::uintptr_t>(symbols + count) - begin;
  if (mprotect(reinterpret_cast<void*>(begin), bytes, PROT_READ | PROT_WRITE) != 0) return;
  const bool has_mpi = dlsym(RTLD_NEXT, "PMPI_Wtime") != nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    const auto address = own->l_addr + symbols[i].st_value;
    const bool is_newer = address >= reinterpret_cast<std::uintptr_t>(imbrex_newer_begin) &&
                          address < reinterpret_cast<std::uintptr_t>(imbrex_newer_end);
    if (!is_newer || (has_mpi && dlsym(RTLD_NEXT, texts + symbols[i].st_name) != nullptr)) continue;
    symbols[i].st_value = 0;
  }
  mprotect(reinterpret_cast<void*>(begin), bytes, PROT_READ);
}

// Sets all jumps. The jump of a function that neither the backend nor the MPI has stays as it is.
void set_targets(void* const backend) noexcept {
  std::size_t number = 0;
  for (const char* name = imbrex_names; *name != '\0'; name += std::strlen(name) + 1) {
    void* found = backend != nullptr ? dlsym(backend, name) : nullptr;
    if (found == nullptr) found = imbrex_preload_next(name);
    if (found != nullptr) __atomic_store_n(&imbrex_targets[number], found, __ATOMIC_RELEASE);
    ++number;
  }
}

}  // namespace

}  // namespace imbrex::preload

void* imbrex_preload_next(const char* const name) noexcept {
  if (void* const found = dlsym(RTLD_NEXT, name)) return found;
  imbrex::preload::File mpi;
  if (!imbrex::preload::find_mpi(mpi)) return nullptr;
  void* const library = dlopen(mpi.path, RTLD_LAZY | RTLD_NOLOAD);
  return library != nullptr ? dlsym(library, name) : nullptr;
}

// The function that call `number` goes to.
void* imbrex_choose(const unsigned number) noexcept {
  using namespace imbrex::preload;
  const char* const name = name_of(number);
  void* const before = __atomic_load_n(&imbrex_targets[number], __ATOMIC_ACQUIRE);
  File mpi;
  if (!find_mpi(mpi)) {
    if (is_question_before_mpi(name)) return reinterpret_cast<void*>(&answer_no);
    end_at(name, "but the process has no MPI library: link the program with one");
  }
  set_targets(open_backend(mpi.path));
  void* const target = __atomic_load_n(&imbrex_targets[number], __ATOMIC_ACQUIRE);
  if (target == before) end_at(name, "which neither imbrex nor its MPI library has");
  return target;
}
