/* SPDX-License-Identifier: BSD-3-Clause
   Where threads are bound to, as they say it, and as the kernel does. */
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { members = 5, line_bytes = 240 };

static void describe(char* line) {
  int partition[64] = {0};
  char affinity[128];
  cpu_set_t mask;
  const int place = omp_get_place_num();
  omp_get_partition_place_nums(partition);
  omp_capture_affinity(affinity, sizeof affinity, "");
  sched_getaffinity(0, sizeof mask, &mask);
  snprintf(line, line_bytes, "%d: place %d, partition of %d from %d, binding %d, %s, on %d",
           omp_get_thread_num(), place, omp_get_partition_num_places(), partition[0],
           omp_get_proc_bind(), affinity, CPU_COUNT(&mask));
  if (place >= 0 && CPU_COUNT(&mask) != omp_get_place_num_procs(place)) {
    strcat(line, ": bound to another place");
  }
}

static void print(const char lines[][line_bytes], int count) {
  for (int index = 0; index < count; ++index) puts(lines[index]);
}

int main(void) {
  static char lines[members][line_bytes];
  omp_set_affinity_format("level %L thread %0.3n of %2N, %A|");
  printf("%d places, %d processors\n", omp_get_num_places(), omp_get_num_procs());
  for (int place = 0; place < omp_get_num_places(); ++place) {
    int processors[64];
    omp_get_place_proc_ids(place, processors);
    printf("place %d: %d processors from %d\n", place, omp_get_place_num_procs(place),
           processors[0]);
  }
#pragma omp parallel num_threads(members)
  describe(lines[omp_get_thread_num()]);
  print((const char(*)[line_bytes])lines, members);
  memset(lines, 0, sizeof lines);
#pragma omp parallel num_threads(2) proc_bind(spread)
  {
    const int outer = omp_get_thread_num();
#pragma omp parallel num_threads(2)
    describe(lines[2 * outer + omp_get_thread_num()]);
  }
  print((const char(*)[line_bytes])lines, 4);
  return 0;
}
