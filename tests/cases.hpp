// SPDX-License-Identifier: BSD-3-Clause
// For programs of several cases, of which the first argument names the one to run.
#pragma once

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <string>

namespace imbrex::test {

using Cases = std::map<std::string, std::function<int()>>;

// The case that argv[1] names; null, and the usage printed, if it names none. Later output is
// flushed line by line, so that an abort loses nothing.
inline const std::function<int()>* find_case(const Cases& cases, const int argc, char** const argv,
                                             const char* const more_arguments = "") {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const auto found = argc >= 2 ? cases.find(argv[1]) : cases.end();
  if (found != cases.end()) return &found->second;
  std::fprintf(stderr, "usage: %s <case>%s; cases:", argv[0], more_arguments);
  for (const auto& [name, run] : cases) std::fprintf(stderr, " %s", name.c_str());
  std::fprintf(stderr, "\n");
  return nullptr;
}

// Prints what does not hold, and counts it. Thread safety: one thread.
inline int failures = 0;
inline void expect(const bool holds, const char* const what) {
  if (holds) return;
  std::printf("FAILS: %s\n", what);
  ++failures;
}

// Runs the case `name` of this program `times` times, each time in a new process, until one ends
// with anything but 0. Returns the exit code of the whole.
inline int run_often(char* const name, const int times) {
  char program[] = "/proc/self/exe";
  for (int run = 0; run < times; ++run) {
    char* const arguments[] = {program, name, nullptr};
    pid_t child = 0;
    int status = 0;
    if (posix_spawn(&child, program, nullptr, nullptr, arguments, environ) != 0) return 2;
    waitpid(child, &status, 0);
    if (status == 0) continue;
    std::printf("run %d of %d ends with status 0x%x\n", run, times, static_cast<unsigned>(status));
    return 1;
  }
  return 0;
}

}  // namespace imbrex::test
