// SPDX-License-Identifier: BSD-3-Clause
// Part of a program: a machine of 64 processors, with the control groups of the folder that
// GRANTED_ROOT names. These definitions take the place of the C library's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *mask) {
  (void)process;
  memset(mask, 0, bytes);
  for (int processor = 0; processor < 64; ++processor) CPU_SET_S(processor, bytes, mask);
  return 0;
}

static FILE *open_there(const char *call, const char *name, const char *mode) {
  FILE *(*next)(const char *, const char *) =
      (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, call);
  const char *root = getenv("GRANTED_ROOT");
  char there[4096];
  if (root != NULL && (strncmp(name, "/proc/self/cgroup", 17) == 0 ||
                       strncmp(name, "/proc/self/mountinfo", 20) == 0 ||
                       strncmp(name, "/sys/fs/cgroup/", 15) == 0)) {
    snprintf(there, sizeof there, "%s%s", root, name);
    name = there;
  }
  return next(name, mode);
}
FILE *fopen(const char *name, const char *mode) { return open_there("fopen", name, mode); }
FILE *fopen64(const char *name, const char *mode) { return open_there("fopen64", name, mode); }
