/* SPDX-License-Identifier: BSD-3-Clause
 * The jumps of jumps.py without an MPI: the first call of a function chooses its target, and each
 * call hands on its arguments, in registers and on the stack. */
#include <stdio.h>
#include <string.h>

extern void* imbrex_targets[];
extern const char imbrex_names[];

static int chosen;

/* Longer than what is declared by MPI: the jumps know no types. */
static long digits(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j) {
  const long in_order[] = {a, b, c, d, e, f, g, h, i, j};
  long all = 0;
  for (int k = 0; k < 10; ++k) all = 10 * all + in_order[k];
  return all;
}

void* imbrex_choose(unsigned number) {
  const char* name = imbrex_names;
  for (unsigned i = 0; i < number; ++i) name += strlen(name) + 1;
  printf("chooses the target of %s\n", name);
  ++chosen;
  if (strcmp(name, "PMPI_Alltoallw") == 0) imbrex_targets[number] = (void*)&digits;
  return (void*)&digits;
}

long PMPI_Alltoallw(long, long, long, long, long, long, long, long, long, long);
long MPI_Send(long, long, long, long, long, long, long, long, long, long);

static int is_wrong(const char* what, long expected, long found) {
  if (expected == found) return 0;
  printf("%s: %ld instead of %ld\n", what, found, expected);
  return 1;
}

int main(void) {
  int wrong = 0;
  for (int call = 0; call < 2; ++call) {
    wrong += is_wrong("PMPI_Alltoallw", 1234567890L, PMPI_Alltoallw(1, 2, 3, 4, 5, 6, 7, 8, 9, 0));
    wrong += is_wrong("MPI_Send", 9876543210L, MPI_Send(9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
  }
  wrong += is_wrong("calls of imbrex_choose()", 3, chosen); /* MPI_Send keeps its first target */
  return wrong != 0;
}
