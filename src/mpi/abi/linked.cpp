// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/abi/linked.hpp"

#include <dlfcn.h>
#include <link.h>

#include <string_view>

namespace imbrex::mpi {

namespace {

// Whether `object` names a library of imbrex among the libraries that it needs.
bool needs_imbrex(const link_map& object) {
  const char* strings = nullptr;
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
  }
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_NEEDED &&
        std::string_view(strings + entry->d_un.d_val).starts_with("libimbrex")) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool linked_with_imbrex() {
  Dl_info here;
  link_map* own = nullptr;
  if (dladdr1(reinterpret_cast<void*>(&linked_with_imbrex), &here, reinterpret_cast<void**>(&own),
              RTLD_DL_LINKMAP) == 0 ||
      own->l_prev == nullptr) {
    return true;  // in the program itself
  }
  const link_map* object = own;
  while (object->l_prev != nullptr) object = object->l_prev;
  for (; object != nullptr; object = object->l_next) {
    // The kernel's own object has tables that are not relocated.
    const bool kernel = std::string_view(object->l_name).starts_with("linux-");
    if (object != own && !kernel && needs_imbrex(*object)) return true;
  }
  return false;
}

}  // namespace imbrex::mpi
