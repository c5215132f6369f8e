// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer on the OMP_*, GOMP_* and KMP_* variables: each line of the input is one. The settings
// that result, for a program of GCC and for one of LLVM, are within their bounds for every input.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "imbrex/detail/plug_ins.hpp"
#include "omp/environment/fatal.hpp"
#include "omp/environment/settings.hpp"

extern char** environ;

// The core is not linked.
std::string imbrex::detail::text_option(const char*) { return "all"; }
int imbrex::detail::threads_by_quota() { return 3; }

namespace {

void expect(const bool right) {
  if (!right) std::abort();
}

void check(const imbrex::omp::Settings& now) {
  const imbrex::omp::Variables& initial = now.initial;
  expect(initial.threads >= 1 && initial.thread_limit >= 1 && initial.chunk >= 0);
  expect(initial.bind <= 4 && initial.allocator >= 1 && initial.allocator <= 8);
  expect(std::ranges::all_of(now.threads_by_level, [](const int count) { return count >= 1; }));
  expect(now.priority_max >= 0 && now.spin_count >= 0);
  for (const imbrex::omp::Place& place : now.places) {
    expect(!place.empty() && std::ranges::includes(now.allowed, place));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* const data, const std::size_t size) {
  std::istringstream input(std::string(reinterpret_cast<const char*>(data), size));
  std::vector<std::string> variables;
  for (std::string line; std::getline(input, line);) {
    line.resize(std::min(line.find('\0'), line.size()));
    for (const char* const prefix : {"OMP_", "GOMP_", "KMP_"}) {
      if (line.starts_with(prefix)) variables.push_back(line);
    }
  }
  std::vector<char*> entries;
  for (std::string& variable : variables) entries.push_back(variable.data());
  entries.push_back(nullptr);

  char** const kept = environ;
  environ = entries.data();
  for (const bool llvm : {false, true}) {
    imbrex::omp::speaks_llvm.store(llvm, std::memory_order_relaxed);
    imbrex::omp::Settings now;
    imbrex::omp::read_settings(now);
    check(now);
  }
  environ = kept;
  return 0;
}
