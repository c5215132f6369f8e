// SPDX-License-Identifier: BSD-3-Clause
// The variables and functions outside of a static libhwloc.a, under the names that
// ImbrexStaticDependencies.cmake gives them there. The libraries of imbrex hide these names.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>

#pragma GCC visibility push(hidden)

// Debian compiles the archive for programs, so it reaches variables only in its own library.
FILE* imbrex_hwloc_stderr;
FILE* imbrex_hwloc_stdout;
char* imbrex_hwloc_program;

// Before other constructors: one of them may start the runtime, which loads a topology.
__attribute__((constructor(101))) static void copy_variables(void) {
  imbrex_hwloc_stderr = stderr;
  imbrex_hwloc_stdout = stdout;
  imbrex_hwloc_program = program_invocation_name;
}

// Stands in for dlopen(): a plug-in of the system belongs to the system's libhwloc, which may have
// another version.
void* imbrex_hwloc_dlopen(const char* path, int mode) {
  (void)path, (void)mode;
  return NULL;
}

// libudev, of which there is no static library: hwloc leaves out the names of devices, which imbrex
// does not read.
void* udev_new(void) { return NULL; }

void* udev_unref(void* udev) {
  (void)udev;
  return NULL;
}

void* udev_device_new_from_subsystem_sysname(void* udev, const char* subsystem, const char* name) {
  (void)udev, (void)subsystem, (void)name;
  return NULL;
}

const char* udev_device_get_property_value(void* device, const char* key) {
  (void)device, (void)key;
  return NULL;
}

void* udev_device_unref(void* device) {
  (void)device;
  return NULL;
}
