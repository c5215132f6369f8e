/* SPDX-License-Identifier: BSD-3-Clause
   endings <case> [library]: programs that fork, end threads, and close libraries around parallel
   regions. Each prints one line, the same under any libgomp. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef _OPENMP
#include <omp.h>
#else /* the host, which has no region of its own */
static void omp_set_num_threads(int threads) { (void)threads; }
static int omp_get_max_threads(void) { return 1; }
static int omp_get_level(void) { return 0; }
#endif

static int members(int threads) {
  int count = 0;
#pragma omp parallel num_threads(threads) reduction(+ : count)
  ++count;
  return count;
}

static int end_of(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

/* Before the first region the child may have its own. */
static int fork_first(void) {
  const pid_t child = fork();
  if (child == 0) exit(members(3) == 3 ? 5 : 1);
  const int own = members(2);
  return printf("child %d, parent %d\n", end_of(child), own) < 0;
}

/* After a region the child leaves, with its exit handlers or into another program. */
static int fork_between(void) {
  int ends[3];
  const int before = members(3);
  for (int way = 0; way < 3; ++way) {
    const pid_t child = fork();
    if (child == 0 && way == 0) exit(6);
    if (child == 0 && way == 1) _exit(7);
    if (child == 0) execl("/bin/sh", "sh", "-c", "exit 8", (char*)NULL);
    ends[way] = end_of(child);
  }
  return printf("%d, %d %d %d, %d\n", before, ends[0], ends[1], ends[2], members(3)) < 0;
}

static int tasks_of_child(void) {
  int sum = 0;
#pragma omp parallel num_threads(4)
#pragma omp single
  for (int i = 0; i < 20; ++i) {
#pragma omp task shared(sum)
#pragma omp atomic
    ++sum;
  }
  return sum;
}

/* After a region each child has regions and tasks, and the settings of its parent; stock libgomp
   waits for ever. */
static int fork_after(void) {
  int ends[3];
  omp_set_num_threads(3);
  const int before = members(3);
  for (int child = 0; child < 3; ++child) {
    const pid_t id = fork();
    if (id == 0) {
      int ok = members(3) == 3 && tasks_of_child() == 20 && members(omp_get_max_threads()) == 3;
      const pid_t inner = fork();
      if (inner == 0) exit(members(2) == 2 && members(5) == 5 ? 6 : 1);
      ok = ok && end_of(inner) == 6 && members(4) == 4;
      exit(ok ? 5 : 1);
    }
    ends[child] = end_of(id);
  }
  return printf("%d, %d %d %d, %d\n", before, ends[0], ends[1], ends[2], members(3)) < 0;
}

/* Both members fork; a region of each child works, and exit() ends it. */
static int region_inside(void) {
  int ends = 0;
#pragma omp parallel num_threads(2) reduction(+ : ends)
  {
    const pid_t child = fork();
    if (child == 0) exit(members(3) == 3 && omp_get_level() == 0 ? 4 : 1);
    ends += end_of(child);
  }
  return printf("%d, %d\n", ends, members(3)) < 0;
}

/* A child comes to the end of the region that its parent has begun. */
static int region_ends(void) {
  volatile pid_t child = -1;
#pragma omp parallel num_threads(2)
#pragma omp master
  {
    child = fork();
    if (child == 0 && members(3) != 3) _exit(9);
  }
  if (child == 0) _exit(8);
  return printf("child %d\n", end_of(child)) < 0;
}

/* Forks inside a region, and runs another program. */
static int fork_inside(void) {
  int ends = 0;
#pragma omp parallel num_threads(2) reduction(+ : ends)
  {
    const pid_t child = fork();
    if (child == 0) execl("/bin/sh", "sh", "-c", "exit 4", (char*)NULL);
    ends += end_of(child);
  }
  return printf("%d\n", ends) < 0;
}

static void* with_regions(void* unused) {
  (void)unused;
  long sum = members(3);
  sum += 10 * members(2);
  pthread_exit((void*)sum);
}

/* Threads of the program's own come, have regions, and end, again and again. */
static int threads_end(void) {
  long sum = 0;
  for (int round = 0; round < 200; ++round) {
    pthread_t thread;
    void* result = NULL;
    if (pthread_create(&thread, NULL, &with_regions, NULL) != 0) return 1;
    if (pthread_join(thread, &result) != 0) return 1;
    sum += (long)result;
  }
  return printf("%ld, %d\n", sum, members(3)) < 0;
}

static void* outlive(void* unused) {
  (void)unused;
  usleep(100000);
  printf("%d\n", members(3));
  fflush(stdout);
  exit(0);
}

/* main ends, and another thread goes on. */
static int main_ends(void) {
  pthread_t thread;
  if (members(3) != 3 || pthread_create(&thread, NULL, &outlive, NULL) != 0) return 1;
  pthread_exit(NULL);
}

/* A library with regions comes, and goes unless RTLD_NODELETE keeps it. */
static int closes(const char* path, int flags) {
  int sum = 0;
  for (int round = 0; round < 3; ++round) {
    void* const library = dlopen(path, flags);
    if (library == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
    int (*const call)(void) = (int (*)(void))dlsym(library, "members_of_plugin");
    sum += call();
    if (dlclose(library) != 0) return 1;
  }
  return printf("%d\n", sum) < 0;
}

/* This handler runs after the runtime's, which the first region has registered: as does the
   destructor of a static object that was made before that region. */
static void end_late(void) {
  const int threads = members(3);
  long sum = 0, ran = 0;
#pragma omp parallel num_threads(2)
  {
#pragma omp for reduction(+ : sum) schedule(dynamic, 7)
    for (int i = 1; i <= 100; ++i) sum += i;
#pragma omp single
    {
      for (int i = 0; i < 10; ++i) {
#pragma omp task shared(ran)
#pragma omp critical
        ++ran;
      }
#pragma omp taskwait
    }
#pragma omp parallel num_threads(2)
#pragma omp master
    ran += omp_get_level() == 2 ? 1 : 100;
  }
  (void)printf("%s\n", threads >= 1 && sum == 5050 && ran > 10 && ran < 20 ? "late" : "wrong");
}

static int late(void) {
  return atexit(&end_late) != 0 || members(3) != 3;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (strcmp(argv[1], "fork_first") == 0) return fork_first();
  if (strcmp(argv[1], "fork_between") == 0) return fork_between();
  if (strcmp(argv[1], "fork_after") == 0) return fork_after();
  if (strcmp(argv[1], "region_inside") == 0) return region_inside();
  if (strcmp(argv[1], "region_ends") == 0) return region_ends();
  if (strcmp(argv[1], "fork_inside") == 0) return fork_inside();
  if (strcmp(argv[1], "threads_end") == 0) return threads_end();
  if (strcmp(argv[1], "main_ends") == 0) return main_ends();
  if (strcmp(argv[1], "late") == 0) return late();
  if (argc < 3) return 2;
  if (strcmp(argv[1], "closes") == 0) return closes(argv[2], RTLD_NOW);
  if (strcmp(argv[1], "closes_after") == 0) return members(2) != 2 || closes(argv[2], RTLD_NOW);
  if (strcmp(argv[1], "own_runtime") == 0) {
    return members(2) != 2 || closes(argv[2], RTLD_NOW | RTLD_DEEPBIND | RTLD_NODELETE);
  }
  return 2;
}
