// SPDX-License-Identifier: BSD-3-Clause
#include "omp/environment/others.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "omp/environment/fatal.hpp"

namespace imbrex::omp {

namespace {

// The program or a loaded library; the path of the program itself is empty.
struct Object {
  std::string path;
  std::vector<std::string> needs;
  bool is_ours = false;  // the runtime, or one of its faces
  const char* static_runtime = nullptr;  // the runtime that the program contains
};

struct Search {
  std::vector<Object> objects;
  const void* own_code;
};

std::string_view file_name(const std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

// A file name such as libomp.so.5, libiomp5.so, libgomp.so.1, or libgomp-1a2b.so.1.0.0 of a package
// with a copy of its own.
bool is_runtime(const std::string_view path) {
  const std::string_view name = file_name(path);
  static constexpr std::string_view stems[] = {"libomp", "libiomp5", "libgomp"};
  return std::ranges::any_of(stems, [name](const std::string_view stem) {
    if (!name.starts_with(stem) || name.size() == stem.size()) return false;
    const char next = name[stem.size()];
    return next == '.' || next == '-';
  });
}

std::vector<std::string> needed_by(const dl_phdr_info& info, const ElfW(Phdr) & header) {
  const auto* const first = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + header.p_vaddr);
  const char* strings = nullptr;
  for (const ElfW(Dyn)* entry = first; entry->d_tag != DT_NULL; ++entry) {
    // In the kernel's own object this is no address.
    if (entry->d_tag == DT_STRTAB && entry->d_un.d_ptr >= info.dlpi_addr) {
      strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    }
  }
  std::vector<std::string> names;
  for (const ElfW(Dyn)* entry = first; strings != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_NEEDED) names.emplace_back(strings + entry->d_un.d_val);
  }
  return names;
}

// Byte by byte, without a function of the C library: in a program compiled with AddressSanitizer,
// memory between the constants must not be read, and those functions would report it.
[[gnu::no_sanitize_address]] bool holds(const std::string_view bytes,
                                        const std::string_view text) {
  const char* const first = bytes.data();
  const char* const wanted = text.data();
  for (std::size_t at = 0; at + text.size() <= bytes.size(); ++at) {
    std::size_t same = 0;
    while (same < text.size() && first[at + same] == wanted[same]) ++same;
    if (same == text.size()) return true;
  }
  return false;
}

// The runtime whose constants are there: constants that a program does not contain otherwise.
const char* runtime_in(const std::string_view bytes) {
  if (holds(bytes, "GOMP_SPINCOUNT") && holds(bytes, "Invalid value for environment variable %s")) {
    return "libgomp";
  }
  if (holds(bytes, "__KMP_REGISTERED_LIB_") && holds(bytes, "KMP_BLOCKTIME")) return "libomp";
  return nullptr;
}

int collect(dl_phdr_info* const info, std::size_t, void* const argument) {
  auto& search = *static_cast<Search*>(argument);
  Object object;
  object.path = info->dlpi_name;
  std::vector<std::string_view> constants;
  for (int index = 0; index < info->dlpi_phnum; ++index) {
    const ElfW(Phdr)& header = info->dlpi_phdr[index];
    const char* const begin = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    if (header.p_type == PT_DYNAMIC) object.needs = needed_by(*info, header);
    if (header.p_type != PT_LOAD) continue;
    const std::string_view bytes(begin, header.p_memsz);
    const auto* const code = static_cast<const char*>(search.own_code);
    object.is_ours = object.is_ours || (code >= begin && code < begin + header.p_memsz);
    if ((header.p_flags & (PF_R | PF_W)) == PF_R) constants.push_back(bytes);
  }
  object.is_ours = object.is_ours || std::ranges::any_of(object.needs, [](const std::string& name) {
    return name.starts_with("libimbrex_omp.so");
  });
  const bool is_program = search.objects.empty();
  if (is_program && std::ranges::none_of(object.needs, &is_runtime)) {
    for (const std::string_view bytes : constants) {
      if (object.static_runtime == nullptr) object.static_runtime = runtime_in(bytes);
    }
  }
  search.objects.push_back(std::move(object));
  return 0;
}

std::vector<Object> loaded_objects() {
  Search search{{}, reinterpret_cast<const void*>(&look_for_others)};
  dl_iterate_phdr(&collect, &search);
  return std::move(search.objects);
}

// The number of library loads, as the loader counts them.
unsigned long long count_loads() {
  unsigned long long loads = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* const info, std::size_t, void* const argument) {
        *static_cast<unsigned long long*>(argument) = info->dlpi_adds;
        return 1;
      },
      &loads);
  return loads;
}

std::atomic<unsigned long long> loads_seen{0};
base::SpinLock lock;
std::vector<std::string>* reported IMBREX_GUARDED_BY(lock);  // paths; never destroyed

bool is_new(const std::string& path) {
  const std::lock_guard guard(lock);
  if (reported == nullptr) reported = new std::vector<std::string>;
  if (std::ranges::find(*reported, path) != reported->end()) return false;
  reported->push_back(path);
  return true;
}

// "libomp" of "libomp.so.5".
std::string_view stem_of(const std::string_view name) { return name.substr(0, name.find(".so")); }

std::string who_needs(const std::vector<Object>& objects, const std::string& path) {
  for (const Object& object : objects) {
    for (const std::string& name : object.needs) {
      if (stem_of(name) == stem_of(file_name(path))) {
        return object.path.empty() ? "the program" : object.path;
      }
    }
  }
  return "dlopen or LD_PRELOAD";
}

// The file name of the face that stands for the runtime `name`.
std::string_view face_for(const std::string_view name) {
  if (name.starts_with("libgomp")) return "libgomp.so.1";
  return name.starts_with("libiomp5") ? "libiomp5.so" : "libomp.so.5";
}

// The folder of the runtime, with a slash, in which its faces are, too.
std::string own_folder(const std::vector<Object>& objects) {
  const auto own = std::ranges::find_if(objects, &Object::is_ours);
  if (own == objects.end()) return "";
  return own->path.substr(0, own->path.rfind('/') + 1);
}

void report_others(const std::vector<Object>& objects) {
  for (const Object& object : objects) {
    if (object.is_ours || !is_runtime(object.path) || !is_new(object.path)) continue;
    const std::string needer = who_needs(objects, object.path);
    const std::string face(face_for(file_name(object.path)));
    std::fprintf(stderr,
                 "imbrex: another OpenMP runtime is loaded: %s, needed by %s. Code that calls it "
                 "does not run on imbrex, and its threads compete with imbrex's. Load imbrex's "
                 "library before it (LD_PRELOAD=%s%s); against a copy under another name, or "
                 "RTLD_DEEPBIND, link with %s.\n",
                 object.path.c_str(), needer.c_str(), own_folder(objects).c_str(), face.c_str(),
                 face.c_str());
  }
}

void find_users(const std::vector<Object>& objects) {
  const auto uses = [](const Object& object) {
    return !object.is_ours && std::ranges::any_of(object.needs, [](const std::string& name) {
      return name.starts_with("libimbrex");
    });
  };
  openmp_only.store(std::ranges::none_of(objects, uses), std::memory_order_relaxed);
}

std::vector<Object> look() {
  loads_seen.store(count_loads(), std::memory_order_relaxed);
  std::vector<Object> objects = loaded_objects();
  report_others(objects);
  find_users(objects);
  return objects;
}

bool needs_runtime(const Object& object, const std::string_view stem) {
  return !object.is_ours &&
         std::ranges::any_of(object.needs, [stem](const std::string& name) {
           return name.starts_with(stem) && is_runtime(name);
         });
}

// Reports a function that calls of the program reach in another library than imbrex's.
void report_if_elsewhere(const std::vector<Object>& objects, const char* const function,
                         const char* const face) {
  Dl_info found{};
  void* const first = dlsym(RTLD_DEFAULT, function);
  if (first == nullptr || dladdr(first, &found) == 0) return;
  const auto is_it = [&found](const Object& object) {
    return object.is_ours && object.path == found.dli_fname;
  };
  if (std::ranges::any_of(objects, is_it)) return;
  std::fprintf(stderr,
               "imbrex: %s comes from %s, so OpenMP regions do not run on imbrex. Load imbrex's "
               "library first: LD_PRELOAD=%s%s\n",
               function, found.dli_fname, own_folder(objects).c_str(), face);
}

// Reports on standard error if OpenMP calls of the program do not reach this library.
void report_if_unreachable(const std::vector<Object>& objects) {
  if (!objects.empty() && objects.front().static_runtime != nullptr) {
    const std::string name = objects.front().static_runtime;
    std::fprintf(stderr,
                 "imbrex: the program contains %s (%s.a, %s): its OpenMP regions do not run on "
                 "imbrex. Link it with %s.\n",
                 name.c_str(), name.c_str(),
                 name == "libgomp" ? "-static-libgomp" : "-static-openmp",
                 std::string(face_for(name)).c_str());
  }
  const auto needs = [&objects](const std::string_view stem) {
    return std::ranges::any_of(
        objects, [stem](const Object& object) { return needs_runtime(object, stem); });
  };
  if (needs("libgomp")) report_if_elsewhere(objects, "GOMP_parallel", "libgomp.so.1");
  if (needs("libomp")) report_if_elsewhere(objects, "__kmpc_fork_call", "libomp.so.5");
  if (needs("libiomp5")) report_if_elsewhere(objects, "__kmpc_fork_call", "libiomp5.so");
}

}  // namespace

std::atomic<bool> openmp_only{false};

bool look_for_others() {
  const std::vector<Object> objects = look();
  report_if_unreachable(objects);
  const auto is_linked = [&objects](const std::string_view stem) {
    return std::ranges::any_of(
        objects, [stem](const Object& object) { return needs_runtime(object, stem); });
  };
  const bool llvm = is_linked("libomp") || is_linked("libiomp5");
  const bool gnu = is_linked("libgomp");
  speaks_llvm.store(llvm && !gnu, std::memory_order_relaxed);
  return llvm || gnu;
}

void look_for_new_others() {
  if (loads_seen.load(std::memory_order_relaxed) != count_loads()) (void)look();
}

void forget_look() noexcept {
  ::new (&lock) base::SpinLock;
  const std::lock_guard guard(lock);
  reported = nullptr;
}

namespace {

[[gnu::destructor]] void at_end() { look_for_new_others(); }

}  // namespace

}  // namespace imbrex::omp
