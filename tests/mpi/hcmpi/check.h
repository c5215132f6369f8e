/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of hcmpi.h share: CHECK, and the look for a word in the last message. */
#ifndef IMBREX_TESTS_HCMPI_CHECK_H
#define IMBREX_TESTS_HCMPI_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imbrex/compat/hcmpi.h"

#define CHECK(condition)                                                                         \
  do {                                                                                           \
    if (!(condition)) {                                                                          \
      fprintf(stderr, "%s:%d: not true: %s: %s\n", __FILE__, __LINE__, #condition, hc_message()); \
      exit(1);                                                                                   \
    }                                                                                            \
  } while (0)

static inline int said(const char* word) { return strstr(hc_message(), word) != NULL; }
/* The call is refused with this code, and its message has these two words. */
#define REFUSED(call, code, first, second) \
  CHECK((call) == (code) && said(first) && said(second))

#endif
