// SPDX-License-Identifier: BSD-3-Clause
#include "trace/symbols.hpp"

#include <cxxabi.h>
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"

namespace imbrex::trace {

std::string readable(const std::string_view symbol, const bool has_place) {
  constexpr std::string_view outlined = "._omp_fn.";  // the suffix of GCC for a construct of OpenMP
  const std::size_t end = symbol.find(outlined);
  const std::string function(symbol.substr(0, end));
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(function.c_str(), nullptr, nullptr, &status), &std::free);
  std::string text = status == 0 ? demangled.get() : function;
  if (end != std::string_view::npos && !has_place) {
    text += fmt::format(", construct {}", symbol.substr(end + outlined.size()));
  }
  return text;
}

const Symbol& symbol_of(const void* const code) {
  struct Known {
    base::LastingLock<std::mutex> lock;  // no task waits while it is held
    std::map<const void*, Symbol> symbols IMBREX_GUARDED_BY(lock);
  };
  static Known& known = *new Known;  // also used after static destructors have run
  const std::lock_guard guard(known.lock);
  const auto [entry, is_new] = known.symbols.try_emplace(code);
  if (is_new) entry->second = look_up(code);
  return entry->second;
}

}  // namespace imbrex::trace
