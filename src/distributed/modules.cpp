// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/modules.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/guarded.hpp"
#include "imbrex/error.hpp"

namespace imbrex::distributed {
namespace {

struct Module {
  std::uintptr_t base = 0, first = UINTPTR_MAX, end = 0;  // addresses of the loaded segments
  std::uint64_t key = 0xcbf29ce484222325u;                // FNV-1a
  void mix(const void* const data, const std::size_t bytes) noexcept {
    for (const char c : std::string_view(static_cast<const char*>(data), bytes)) {
      key = (key ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    }
  }
};

// True if the segment of notes has the build-id, which is then in `module`.
[[nodiscard]] bool mix_build_id(Module& module, const std::uintptr_t at, const std::size_t bytes) {
  std::size_t offset = 0;
  while (offset + sizeof(ElfW(Nhdr)) <= bytes) {
    ElfW(Nhdr) note;
    std::memcpy(&note, reinterpret_cast<const void*>(at + offset), sizeof note);
    const std::size_t name = offset + sizeof note;
    const std::size_t text = name + ((note.n_namesz + 3U) & ~3U);
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(reinterpret_cast<const void*>(at + name), "GNU", 4) == 0) {
      module.mix(reinterpret_cast<const void*>(at + text), note.n_descsz);
      return true;
    }
    offset = text + ((note.n_descsz + 3U) & ~3U);
  }
  return false;
}

int add(dl_phdr_info* const info, std::size_t, void* const context) {
  Module module;
  module.base = info->dlpi_addr;
  bool has_id = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const std::uintptr_t at = module.base + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) {
      module.first = std::min(module.first, at);
      module.end = std::max(module.end, at + segment.p_memsz);
    } else if (segment.p_type == PT_NOTE && !has_id) {
      has_id = mix_build_id(module, at, segment.p_memsz);
    }
  }
  if (!has_id) {
    std::string_view name(info->dlpi_name);
    name.remove_prefix(name.find_last_of('/') + 1);
    const std::uintptr_t bytes = module.end - module.first;
    module.mix(name.data(), name.size());
    module.mix(&bytes, sizeof bytes);
  }
  static_cast<std::vector<Module>*>(context)->push_back(module);
  return 0;
}

// The loaded modules; read again if an address is not found, since libraries may be loaded late.
class Modules {
 public:
  template <class Fits>
  [[nodiscard]] bool find(const Fits& fits, Module& found) {
    const std::lock_guard guard(mutex_);
    for (int look = 0; look < 2; ++look) {
      for (const Module& module : all_) {
        if (!fits(module)) continue;
        found = module;
        return true;
      }
      all_.clear();
      dl_iterate_phdr(add, &all_);
    }
    return false;
  }

 private:
  std::mutex mutex_;
  std::vector<Module> all_ IMBREX_GUARDED_BY(mutex_);
};

Modules& modules() {
  static auto& all = *new Modules;
  return all;
}

}  // namespace

CodePlace place_of(const void* const code) {
  const auto at = reinterpret_cast<std::uintptr_t>(code);
  Module module;
  if (!modules().find([at](const Module& one) { return one.first <= at && at < one.end; },
                      module)) {
    throw Error(fmt::format("imbrex: the function at {} is in no loaded executable or library, so "
                            "other ranks cannot find the function", code));
  }
  return {module.key, at - module.base};
}

void* code_at(const CodePlace& place) {
  Module module;
  if (!modules().find([&](const Module& one) { return one.key == place.module; }, module)) {
    return nullptr;
  }
  return reinterpret_cast<void*>(module.base + place.offset);
}

}  // namespace imbrex::distributed
