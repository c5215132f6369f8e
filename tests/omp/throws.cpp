// SPDX-License-Identifier: BSD-3-Clause
// throws <case>: an exception that leaves an OpenMP task ends the program, as the standard says,
// whether the task is deferred or runs where it is met. The compiler sees to it in the functions
// that it makes of tasks; GOMP_task is also called here as by a compiler that does not.
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>

extern "C" void GOMP_task(void (*function)(void*), void* data, void (*copy)(void*, void*),
                          long bytes, long alignment, bool if_clause, unsigned flags,
                          void** depend, int priority, void* detach);

namespace {

[[noreturn]] void fail(void*) { throw std::runtime_error("out of a task"); }

void copy_nothing(void*, void*) {}

void call_task(const bool deferrable, void (*const copy)(void*, void*)) {
  char data = 0;
  GOMP_task(fail, &data, copy, 1, 1, deferrable, 0, nullptr, 0, nullptr);
}

void run(const char* const name) {
  if (std::strcmp(name, "undeferred") == 0) {
#pragma omp task if (0)
    fail(nullptr);
  } else if (std::strcmp(name, "deferred") == 0) {
#pragma omp task
    fail(nullptr);
#pragma omp taskwait
  } else if (std::strcmp(name, "called") == 0) {
    call_task(false, nullptr);
  } else if (std::strcmp(name, "called_with_copy") == 0) {
    call_task(false, copy_nothing);
  } else if (std::strcmp(name, "called_deferred") == 0) {
    call_task(true, nullptr);
#pragma omp taskwait
  }
}

// Not in the frame of a region, whose function would end the program for the exception too.
void expect_end(const char* const name) {
  try {
    run(name);
  } catch (const std::exception& error) {
    std::printf("caught: %s\n", error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  if (std::strcmp(argv[1], "outside") == 0) {
    expect_end(argv[2]);
  } else {
#pragma omp parallel
#pragma omp single
    expect_end(argv[2]);
  }
  std::printf("went on\n");
  return 0;
}
