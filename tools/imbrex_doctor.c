// SPDX-License-Identifier: BSD-3-Clause
// The probe of `imbrex doctor`, which compiles this file with the MPI's own compiler and starts it
// under the launcher, also with imbrex's libraries preloaded. Every rank sends a short and a long
// message around a ring. Rank 0 prints a line "imbrex-doctor NAME VALUE" for each fact. Needs no
// imbrex.
#define _GNU_SOURCE  // RTLD_DEFAULT
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { length = 1 << 20 };

// A function of imbrex, or null where no library of imbrex is loaded.
static void* of_imbrex(const char* name) { return dlsym(RTLD_DEFAULT, name); }

static int workers(void) {
  int (*count)(void) = NULL;
  *(void**)&count = of_imbrex("imbrex_place_count");
  return count == NULL ? 0 : count();
}

static const char* version(void) {
  const char* (*text)(void) = NULL;
  *(void**)&text = of_imbrex("imbrex_version");
  return text == NULL ? "none" : text();
}

static int arrived_around_the_ring(int rank, int ranks, int bytes) {
  char* const sent = malloc(length);
  char* const got = calloc(length, 1);
  if (sent == NULL || got == NULL) return 0;
  memset(sent, 'x', length);
  MPI_Sendrecv(sent, bytes, MPI_BYTE, (rank + 1) % ranks, 0, got, bytes, MPI_BYTE,
               (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const int arrived = memcmp(sent, got, (size_t)bytes) == 0;
  free(sent);
  free(got);
  return arrived;
}

static const char* name_of(int level) {
  if (level == MPI_THREAD_MULTIPLE) return "MPI_THREAD_MULTIPLE";
  if (level == MPI_THREAD_SERIALIZED) return "MPI_THREAD_SERIALIZED";
  return level == MPI_THREAD_FUNNELED ? "MPI_THREAD_FUNNELED" : "MPI_THREAD_SINGLE";
}

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE, rank = 0, ranks = 1, characters = 0;
  char library[MPI_MAX_LIBRARY_VERSION_STRING];
  setenv("IMBREX_PLACES", "worker", 1);  // each worker is a place, and so can be counted
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int arrived = arrived_around_the_ring(rank, ranks, 8) &&
                      arrived_around_the_ring(rank, ranks, length);
  int all = 0, own = workers(), least = 0, most = 0;
  MPI_Allreduce(&arrived, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&own, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(&own, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Get_library_version(library, &characters);
  library[strcspn(library, ",\n")] = '\0';
  if (rank == 0) {
    printf("imbrex-doctor level %s\n", name_of(level));
    printf("imbrex-doctor ranks %d\nimbrex-doctor arrived %d\n", ranks, all);
    printf("imbrex-doctor library %s\nimbrex-doctor imbrex %s\n", library, version());
    printf("imbrex-doctor workers_least %d\nimbrex-doctor workers_most %d\n", least, most);
  }
  MPI_Finalize();
  return 0;
}
