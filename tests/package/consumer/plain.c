/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program that knows nothing of imbrex: prints a sum over the ranks, and the file names of
   the libraries of imbrex that its process has. Used by packaging/test_wheel. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  char text[4096] = "", line[4096];
  FILE* const maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
    const char* const name = strstr(line, "libimbrex");
    line[strcspn(line, "\n")] = '\0';
    if (name != NULL && strlen(text) + strlen(name) + 2 < sizeof text && !strstr(text, name)) {
      strcat(strcat(text, name), " ");
    }
  }
  printf("sum %d: %s\n", sum, text);
  return 0;
}
