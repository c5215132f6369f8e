// SPDX-License-Identifier: BSD-3-Clause
#include "omp/environment/fatal.hpp"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace imbrex::omp {

std::atomic<bool> speaks_llvm{false};

namespace {

void print(const char* const kind, const char* const format, std::va_list values) {
  char text[1024];
  std::vsnprintf(text, sizeof text, format, values);
  if (is_llvm()) {
    std::fprintf(stderr, "OMP: %s #0: %s\n", kind, text);  // #0: not of libomp's catalogue
  } else {
    std::fprintf(stderr, "\nlibgomp: %s\n", text);
  }
}

}  // namespace

// Threads of one team may fail together, but only one thread may call exit().
void fatal(const char* const format, ...) {
  static std::atomic<bool> ends{false};
  while (ends.exchange(true, std::memory_order_relaxed)) pause();
  std::va_list values;
  va_start(values, format);
  print("Error", format, values);
  va_end(values);
  std::exit(EXIT_FAILURE);
}

void warn(const char* const format, ...) {
  std::va_list values;
  va_start(values, format);
  print("Warning", format, values);
  va_end(values);
}

void refuse_variable(const char* const name) {
  if (!is_llvm()) return warn("Invalid value for environment variable %s", name);
  const char* const value = std::getenv(name);
  std::fprintf(stderr, "OMP: Warning #42: %s: \"%s\" is an invalid value; ignored.\n", name,
               value != nullptr ? value : "");
}

}  // namespace imbrex::omp
