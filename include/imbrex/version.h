/* SPDX-License-Identifier: BSD-3-Clause */
/* The version of these headers; CMake and the library read it here. A program whose headers do
   not fit its library prints both versions and ends at its start. Library and headers fit if the
   first two numbers are equal, and the library is not older than the headers. */
#ifndef IMBREX_VERSION_H
#define IMBREX_VERSION_H

#define IMBREX_VERSION_MAJOR 0
#define IMBREX_VERSION_MINOR 1
#define IMBREX_VERSION_PATCH 0

#ifndef IMBREX_SERIAL
#ifdef __cplusplus
extern "C" {
#endif
/* Ends the process unless headers of this version, at this path, fit the library. */
void imbrex_compare_version(int major, int minor, int patch, const char* header);
#ifdef __cplusplus
}
#endif

/* Not inline: each program and library compares the headers that it was compiled with, before
   its first task. */
__attribute__((constructor)) static void imbrex_compare_version_at_start(void) {
  imbrex_compare_version(IMBREX_VERSION_MAJOR, IMBREX_VERSION_MINOR, IMBREX_VERSION_PATCH,
                         __FILE__);
}
#endif
#endif
