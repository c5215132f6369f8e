// SPDX-License-Identifier: BSD-3-Clause
#include "sched/policy/expat.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "imbrex/error.hpp"

namespace imbrex::sched {

namespace {

[[noreturn]] void refuse(const std::string& file) {
  const char* const why = dlerror();
  throw Error(fmt::format("imbrex: IMBREX_PLACES={}: files of places are read by libexpat.so.1, "
                          "which cannot be used: {}; install it (Debian: libexpat1), or choose "
                          "tree, numa, package, l3, core or worker",
                          file, why == nullptr ? "no reason given" : why));
}

[[nodiscard]] void* open_library(const std::string& file) {
  void* const library = dlopen("libexpat.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse(file);
  return library;
}

}  // namespace

Expat::Expat(const std::string& file) : file_(file), library_(open_library(file)) {}

void* Expat::find(const char* const name) const {
  void* const function = dlsym(library_, name);
  if (function == nullptr) refuse(file_);
  return function;
}

}  // namespace imbrex::sched
