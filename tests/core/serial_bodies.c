/* SPDX-License-Identifier: BSD-3-Clause */
/* A body whose loop is in serial_test.cpp. */
#include "imbrex/imbrex.h"

int stops_at_5(void* argument, void* result) {
  (void)argument, (void)result;
  return imbrex_iteration() == 5 ? imbrex_stop_iterating() : 0;
}
