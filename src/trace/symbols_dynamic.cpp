// SPDX-License-Identifier: BSD-3-Clause
// For builds without libbacktrace: asks the dynamic linker, which knows no local functions.
#include <dlfcn.h>

#include "trace/symbols.hpp"

namespace imbrex::trace {

Symbol look_up(const void* const code) {
  Dl_info info;
  if (code == nullptr || dladdr(code, &info) == 0) return {};
  if (info.dli_sname == nullptr || info.dli_saddr != code) return {};
  return {readable(info.dli_sname, false), {}};
}

}  // namespace imbrex::trace
