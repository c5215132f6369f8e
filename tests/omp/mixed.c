// SPDX-License-Identifier: BSD-3-Clause
// A region for a program that another compiler has made: returns its number of threads.
int mixed(const int threads) {
  int members = 0;
#pragma omp parallel num_threads(threads)
#pragma omp atomic
  ++members;
  return members;
}
