// SPDX-License-Identifier: BSD-3-Clause
// A forgotten library: the process uses an MPI, and libimbrex_mpi, which would suspend tasks in its
// blocking calls, is missing. No other code would tell: the calls work, until all tasks wait.
//
// The loaded libraries are read from the dynamic linker's tables, not by dlopen() or dlsym(), which
// wait for a library that is being loaded; its constructor may wait for the very worker that
// checks. A library is in the tables before its functions may be called, so a thread made for this
// purpose waits until it is fully loaded.
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/arch.hpp"
#include "base/check.hpp"
#include "base/job.hpp"
#include "imbrex/detail/observation.hpp"
#include "sched/life/life.hpp"
#include "sched/life/process.hpp"

namespace imbrex::sched {

namespace {

// The entries of an object's dynamic section that are needed here.
struct Tables {
  const ElfW(Dyn)* dynamic = nullptr;
  const char* strings = nullptr;
  const ElfW(Sym)* symbols = nullptr;
  const std::uint32_t* hash = nullptr;  // in GNU's format
};

Tables tables_of(const dl_phdr_info& object) noexcept {
  Tables tables;
  for (int index = 0; index < object.dlpi_phnum; ++index) {
    const ElfW(Phdr)& header = object.dlpi_phdr[index];
    if (header.p_type != PT_DYNAMIC) continue;
    tables.dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + header.p_vaddr);
  }
  if (tables.dynamic == nullptr) return tables;
  for (const ElfW(Dyn)* entry = tables.dynamic; entry->d_tag != DT_NULL; ++entry) {
    auto address = entry->d_un.d_ptr;  // most linkers have relocated it
    if (address < object.dlpi_addr) address += object.dlpi_addr;
    if (entry->d_tag == DT_STRTAB) tables.strings = reinterpret_cast<const char*>(address);
    if (entry->d_tag == DT_SYMTAB) tables.symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (entry->d_tag == DT_GNU_HASH) tables.hash = reinterpret_cast<const std::uint32_t*>(address);
  }
  return tables;
}

// The address of a function that the object defines, or null.
void* find_function(const dl_phdr_info& object, const Tables& tables,
                    const std::string_view name) noexcept {
  if (tables.hash == nullptr || tables.symbols == nullptr || tables.strings == nullptr) {
    return nullptr;
  }
  std::uint32_t wanted = 5381;
  for (const char letter : name) wanted = wanted * 33 + static_cast<unsigned char>(letter);
  const std::uint32_t count = tables.hash[0];
  const std::uint32_t first = tables.hash[1];
  const std::uint32_t words = tables.hash[2] * (sizeof(ElfW(Addr)) / 4);  // of a filter
  const std::uint32_t* const buckets = tables.hash + 4 + words;
  const std::uint32_t* const chain = buckets + count;
  std::uint32_t index = count == 0 ? 0 : buckets[wanted % count];
  for (; index >= first && index != 0; ++index) {
    const std::uint32_t hash = chain[index - first];
    const ElfW(Sym)& symbol = tables.symbols[index];
    if ((hash | 1) == (wanted | 1) && name == tables.strings + symbol.st_name) {
      return reinterpret_cast<void*>(object.dlpi_addr + symbol.st_value);
    }
    if ((hash & 1) != 0) break;  // the last of its bucket
  }
  return nullptr;
}

std::string_view file_name(const char* const path) noexcept {
  const std::string_view whole = path == nullptr ? "" : path;
  return whole.substr(whole.rfind('/') + 1);
}

// libmpi.so.40, libmpich.so.12, libmpi_abi.so.0, libmpi_mpifh.so.40, ...
bool is_mpi(const std::string_view file) noexcept {
  return file.starts_with("libmpi") && file.find(".so") != std::string_view::npos;
}

struct MpiSearch {
  std::string mpi;       // its path
  using Asks = int (*)(int*);
  Asks initialised = nullptr, finalised = nullptr;
  bool ours = false;    // libimbrex_mpi is there
  bool linked = false;  // the program itself names an MPI
  bool is_program = true;
};

int look_into(dl_phdr_info* const object, std::size_t, void* const data) noexcept {
  MpiSearch& search = *static_cast<MpiSearch*>(data);
  const std::string_view file = file_name(object->dlpi_name);
  const bool is_program = std::exchange(search.is_program, false);
  if (file.starts_with("libimbrex_mpi")) search.ours = true;
  if (!is_program && !is_mpi(file)) return search.ours ? 1 : 0;
  const Tables tables = tables_of(*object);
  if (is_program) {
    for (const ElfW(Dyn)* entry = tables.dynamic; entry != nullptr && entry->d_tag != DT_NULL;
         ++entry) {
      if (entry->d_tag == DT_NEEDED && tables.strings != nullptr &&
          is_mpi(tables.strings + entry->d_un.d_val)) {
        search.linked = true;
      }
    }
  }
  if (void* const asks = find_function(*object, tables, "PMPI_Initialized")) {
    search.mpi = is_program ? "" : object->dlpi_name;
    search.initialised = reinterpret_cast<MpiSearch::Asks>(asks);
    search.finalised =
        reinterpret_cast<MpiSearch::Asks>(find_function(*object, tables, "PMPI_Finalized"));
  }
  return 0;
}

// Waits while the library is being loaded. It is not unloaded afterwards.
bool wait_until_loaded(const std::string& path) noexcept {
  return path.empty() || dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD) != nullptr;
}

std::atomic<std::uint64_t> next_look_ns{0};  // any thread; an extra check does no harm

// Whether the functions of the library may be called. A worker calls it: it does not wait, and once
// the answer is known a check is due.
bool is_loaded(const std::string& path) noexcept {
  enum : int { unknown, looked_for, loaded };
  static std::atomic<int> state{unknown};  // any thread
  int before = unknown;
  if (state.compare_exchange_strong(before, looked_for, std::memory_order_acq_rel)) {
    try {
      std::thread([path] {
        const detail::OwnThread own;
        state.store(wait_until_loaded(path) ? loaded : unknown, std::memory_order_release);
        next_look_ns.store(0, std::memory_order_relaxed);
      }).detach();
    } catch (const std::exception&) {
      state.store(unknown, std::memory_order_relaxed);  // tries again later
    }
  }
  return before == loaded;
}

bool is_in_use(const MpiSearch& search) noexcept {
  int initialised = 0;
  int finalised = 0;
  if (search.initialised != nullptr) search.initialised(&initialised);
  if (search.finalised != nullptr) search.finalised(&finalised);
  return initialised != 0 && finalised == 0;
}

std::atomic<bool> has_reported{false};  // any thread

void look(const bool at_start) noexcept {
  MpiSearch search;
  dl_iterate_phdr(&look_into, &search);
  if (search.ours) has_reported.store(true, std::memory_order_relaxed);  // nothing is missing
  if (search.ours || search.initialised == nullptr) return;
  if (!(at_start ? wait_until_loaded(search.mpi) : is_loaded(search.mpi))) return;
  if (!is_in_use(search) && !(at_start && search.linked)) return;
  if (has_reported.exchange(true, std::memory_order_relaxed) || base::job_rank() != 0) return;
  base::report(fmt::format(
      "this process uses an MPI ({}), and libimbrex_mpi is not loaded: a blocking call of MPI in a "
      "task blocks its worker, and the program may hang. Build the program by imbrex-c++ (or "
      "imbrex-cc) instead of the MPI's wrapper, or put the output of `imbrex config --libs` before "
      "the MPI library: behind it, linkers drop -limbrex_mpi as not needed. Or start it by `imbrex "
      "run`. IMBREX_MPI_WARNING=0 switches this warning off",
      search.mpi.empty() ? "in the program" : file_name(search.mpi.c_str())));
}

// OpenMP programs work equally well without libimbrex_mpi, and `imbrex run` gives it to them.
bool is_requested(const RuntimeState& runtime) noexcept {
  return runtime.options.MPI_WARNING && life().joiners_max == 0;
}

}  // namespace

void warn_of_plain_mpi(const RuntimeState& runtime) noexcept {
  if (is_requested(runtime)) look(true);
}

void look_for_plain_mpi(const RuntimeState& runtime) noexcept {
  if (IMBREX_TSAN) return;  // ThreadSanitizer does not see the loader's lock for its list
  constexpr std::uint64_t gap_ns = 500'000'000;
  const std::uint64_t now = base::monotonic_ns();
  if (has_reported.load(std::memory_order_relaxed) ||
      now < next_look_ns.load(std::memory_order_relaxed)) {
    return;
  }
  next_look_ns.store(now + gap_ns, std::memory_order_relaxed);
  if (is_requested(runtime)) look(false);
}

}  // namespace imbrex::sched
