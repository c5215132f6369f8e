/* SPDX-License-Identifier: BSD-3-Clause */
/* Data-driven tasks (section II.A of the same paper): a sum over a binary tree, whose tasks are
   spawned in any order and start when what they await has been put. */
#include <stdio.h>

#include "imbrex/compat/hcmpi.h"

enum { LEAVES = 64, NODES = 2 * LEAVES }; /* node i has the children 2i and 2i + 1; 1 is the root */

static DDF_t* nodes[NODES];
static int values[NODES];

static void add(void* argument) {
  int i = *(const int*)argument;
  values[i] = *(int*)DDF_GET(nodes[2 * i]) + *(int*)DDF_GET(nodes[2 * i + 1]);
  DDF_PUT(nodes[i], &values[i]);
}

int main(void) {
  for (int i = 1; i < NODES; i++) nodes[i] = DDF_CREATE();
  hc_finish_begin();
  for (int i = 1; i < LEAVES; i++) {
    hc_clauses both = {.await = &nodes[2 * i], .await_count = 2};
    hc_async(add, &i, sizeof i, &both);
  }
  for (int i = LEAVES; i < NODES; i++) {
    values[i] = i - LEAVES;
    DDF_PUT(nodes[i], &values[i]);
  }
  hc_finish_end();
  int sum = *(int*)DDF_GET(nodes[1]);
  for (int i = 1; i < NODES; i++) DDF_FREE(&nodes[i]);
  printf("the sum is %d\n", sum);
  return sum == LEAVES * (LEAVES - 1) / 2 ? 0 : 1;
}
