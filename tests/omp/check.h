// SPDX-License-Identifier: BSD-3-Clause
// For programs that stop at the first thing that is wrong.
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                     \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE_NAME__, __LINE__, #condition);         \
      exit(1);                                                                               \
    }                                                                                        \
  } while (0)
