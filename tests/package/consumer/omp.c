// SPDX-License-Identifier: BSD-3-Clause
// Succeeds if the OpenMP that is linked stands on imbrex, and adds up numbers.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int main(void) {
  int sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int number = 0; number < 100; ++number) sum += number;
  return sum == 4950 && dlsym(RTLD_DEFAULT, "imbrex_core_copy") != NULL ? 0 : 1;
}
