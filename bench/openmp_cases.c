// SPDX-License-Identifier: BSD-3-Clause
// OpenMP's own constructs, for bench/compare: one source in C, built with GCC, whose program runs
// under its libgomp and under ours, and with Clang for libomp. The tasks first; then the overheads
// of constructs in the manner of the EPCC microbenchmarks (Bull, Reid and McDonnell): the time of
// the construct around a short delay, less that of the delay.
#include <omp.h>

#include "measure.h"

static int threads;

// ---- tasks -------------------------------------------------------------------------------------

static double independent(long tasks) {
  double ns = 0;
#pragma omp parallel
#pragma omp single
  {
    const long before = bodies_counted();
    const double start = now_ns();
#pragma omp taskgroup
    for (long i = 0; i < tasks; ++i) {
#pragma omp task
      count_body();
    }
    ns = now_ns() - start;
    require_equal("bodies that ran", bodies_counted() - before, tasks);
  }
  return ns / (double)tasks;
}

static double chain(long tasks) {
  double ns = 0;
  long value = 0;
#pragma omp parallel
#pragma omp single
  {
    const double start = now_ns();
#pragma omp taskgroup
    for (long i = 0; i < tasks; ++i) {
#pragma omp task depend(inout : value) shared(value)
      ++value;
    }
    ns = now_ns() - start;
  }
  require_equal("sum of the chain", value, tasks);
  return ns / (double)tasks;
}

enum { ring = 64 };
// A cell stands for a block of a grid, so it has a cache line of its own.
struct cell {
  _Alignas(64) unsigned long value;
};
static struct cell cells[2][ring];

static void step_cell(int row, int x) {
  const struct cell* const old = cells[row];
  cells[1 - row][x].value = old[(x + ring - 1) % ring].value + old[x].value +
                            old[(x + 1) % ring].value + 1;
}

static double stencil(long steps) {
  double ns = 0;
  unsigned long expected[ring];
  for (int repeat = 0; repeat < 2; ++repeat) {  // in sequence, then in tasks
    for (int x = 0; x < ring; ++x) cells[0][x].value = (unsigned long)x;
    const double start = now_ns();
#pragma omp parallel if (repeat == 1)
#pragma omp single
    for (long step = 0; step < steps; ++step) {
      const int row = (int)(step % 2);
      for (int x = 0; x < ring; ++x) {
        if (repeat == 0) {
          step_cell(row, x);
        } else {
#pragma omp task depend(in : cells[row][(x + ring - 1) % ring], cells[row][x], \
                            cells[row][(x + 1) % ring]) depend(out : cells[1 - row][x])
          step_cell(row, x);
        }
      }
    }
    ns = now_ns() - start;
    for (int x = 0; x < ring; ++x) {
      const unsigned long value = cells[steps % 2][x].value;
      if (repeat == 0) expected[x] = value;
      require_equal("a cell of the stencil", (long)value, (long)expected[x]);
    }
  }
  return ns / (double)(steps * ring);
}

// Each task reads two of 1,024 addresses and changes a third: many wait at once.
static char places[1024];
static double readers(long tasks) {
  double ns = 0;
  unsigned long random = 1;
#pragma omp parallel
#pragma omp single
  {
    const long before = bodies_counted();
    const double start = now_ns();
#pragma omp taskgroup
    for (long i = 0; i < tasks; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const int a = (int)(random >> 54), b = (int)(random >> 44 & 1023), c = (int)(i % 1024);
#pragma omp task depend(in : places[a], places[b]) depend(inout : places[c])
      count_body();
    }
    ns = now_ns() - start;
    require_equal("bodies that ran", bodies_counted() - before, tasks);
  }
  return ns / (double)tasks;
}

// ---- overheads ---------------------------------------------------------------------------------

static long delay_length;

__attribute__((noinline)) static void delay(void) {
  for (volatile long i = 0; i < delay_length; ++i) continue;
}

static double time_delay(long repeats) {
  const double start = now_ns();
  for (long i = 0; i < repeats; ++i) delay();
  return (now_ns() - start) / (double)repeats;
}

// About 100 ns, as EPCC's default.
static void choose_delay(void) {
  for (delay_length = 4; time_delay(10000) < 100; delay_length += 4) continue;
}

static double region(long repeats) {
  const double start = now_ns();
  for (long i = 0; i < repeats; ++i) {
#pragma omp parallel
    delay();
  }
  return (now_ns() - start) / (double)repeats;
}

static double reduction(long repeats) {
  const double start = now_ns();
  for (long i = 0; i < repeats; ++i) {
    long sum = 0;
#pragma omp parallel reduction(+ : sum)
    {
      delay();
      sum += 1;
    }
    require_equal("the reduction", sum, threads);
  }
  return (now_ns() - start) / (double)repeats;
}

static double barrier(long repeats) {
  const double start = now_ns();
#pragma omp parallel
  for (long i = 0; i < repeats; ++i) {
    delay();
#pragma omp barrier
  }
  return (now_ns() - start) / (double)repeats;
}

static double worksharing(long repeats) {
  const double start = now_ns();
#pragma omp parallel
  for (long i = 0; i < repeats; ++i) {
#pragma omp for
    for (int j = 0; j < threads; ++j) delay();
  }
  return (now_ns() - start) / (double)repeats;
}

// The delays follow each other, however many threads there are.
static double critical(long repeats) {
  long count = 0;
  const double start = now_ns();
#pragma omp parallel
  for (long i = 0; i < repeats / threads; ++i) {
#pragma omp critical
    {
      delay();
      ++count;
    }
  }
  const double ns = now_ns() - start;
  require_equal("critical sections", count, repeats / threads * threads);
  return ns / (double)count;
}

// Each thread creates its own.
static double tasks_of_all(long repeats) {
  const double start = now_ns();
#pragma omp parallel
  for (long i = 0; i < repeats; ++i) {
#pragma omp task
    delay();
  }
  return (now_ns() - start) / (double)repeats;
}

// ---- the program -------------------------------------------------------------------------------

// The runtime has the version of the compiler that it belongs to.
#define TEXT_OF(number) #number
#define VERSION_OF(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)
#ifdef __clang__
static const char system_name[] =
    "libomp " VERSION_OF(__clang_major__, __clang_minor__, __clang_patchlevel__);
#else
static const char system_name[] =
    "libgomp " VERSION_OF(__GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif

static const struct {
  const char* name;
  double (*run)(long size);  // returns nanoseconds per operation
  long size;
  int operations;            // for each of `size`
  int delayed;               // the delay is taken off
} cases[] = {
    {"omp_independent", independent, 1000000, 1, 0},
    {"omp_chain", chain, 500000, 1, 0},
    {"omp_stencil", stencil, 5000, ring, 0},
    {"omp_readers", readers, 500000, 1, 0},
    {"omp_region", region, 50000, 1, 1},
    {"omp_barrier", barrier, 100000, 1, 1},
    {"omp_for", worksharing, 100000, 1, 1},
    {"omp_reduction", reduction, 50000, 1, 1},
    {"omp_critical", critical, 500000, 1, 1},
    {"omp_task", tasks_of_all, 500000, 1, 1},
};

int main(int argc, char** argv) {
  for (size_t i = 0; i < sizeof cases / sizeof cases[0] && (argc == 3 || argc == 4); ++i) {
    if (strcmp(cases[i].name, argv[1]) != 0) continue;
    const struct request request = {argv[1], atoi(argv[2]),
                                    argc == 4 ? atol(argv[3]) : cases[i].size};
    if (request.workers < 1 || request.size < 10) break;
    threads = request.workers;
    omp_set_num_threads(threads);
    if (cases[i].delayed) choose_delay();
    (void)cases[i].run(request.size / 10);  // memory is touched, threads are awake
    const double without = cases[i].delayed ? time_delay(1000000) : 0;
    const struct result result = {cases[i].run(request.size) - without,
                                  request.size * cases[i].operations, -1, -1};
    print_record(system_name, request, result);
    return 0;
  }
  fprintf(stderr, "usage: %s <case> <workers> [size, at least 10]\ncases:", argv[0]);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    fprintf(stderr, " %s", cases[i].name);
  }
  fprintf(stderr, "\n");
  return 2;
}
