/* SPDX-License-Identifier: BSD-3-Clause
   A library with a parallel region, for endings.c. */
int members_of_plugin(void);

int members_of_plugin(void) {
  int members = 0;
#pragma omp parallel num_threads(3) reduction(+ : members)
  ++members;
  return members;
}
