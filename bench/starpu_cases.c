// SPDX-License-Identifier: BSD-3-Clause
// The cases spawn, chain and stencil of bench/compare on StarPU: dependencies by data handle, which
// StarPU infers from the order of submission. The submitting thread is not one of the workers.
#include <starpu.h>

#include "measure.h"

enum { width = 64 };

struct cell {
  unsigned long value;
  char padding[56];  // a cell stands for a block of a grid: a cache line of its own
};

static void count_on_cpu(void* buffers[], void* argument) {
  (void)buffers;
  (void)argument;
  count_body();
}

static void increment_on_cpu(void* buffers[], void* argument) {
  (void)argument;
  ++*(long*)STARPU_VARIABLE_GET_PTR(buffers[0]);
}

static void point_on_cpu(void* buffers[], void* argument) {
  (void)argument;
  const struct cell* left = (const struct cell*)STARPU_VARIABLE_GET_PTR(buffers[0]);
  const struct cell* self = (const struct cell*)STARPU_VARIABLE_GET_PTR(buffers[1]);
  const struct cell* right = (const struct cell*)STARPU_VARIABLE_GET_PTR(buffers[2]);
  struct cell* next = (struct cell*)STARPU_VARIABLE_GET_PTR(buffers[3]);
  next->value = left->value + self->value + right->value + 1;
}

static struct starpu_codelet count_codelet = {
    .cpu_funcs = {count_on_cpu}, .nbuffers = 0, .name = "spawn"};
static struct starpu_codelet increment_codelet = {
    .cpu_funcs = {increment_on_cpu}, .nbuffers = 1, .modes = {STARPU_RW}, .name = "chain"};
static struct starpu_codelet point_codelet = {
    .cpu_funcs = {point_on_cpu},
    .nbuffers = 4,
    .modes = {STARPU_R, STARPU_R, STARPU_R, STARPU_W},
    .name = "stencil"};

static void require_success(int code, const char* call) {
  if (code != 0) {
    fprintf(stderr, "starpu_cases: %s returned %d (%s)\n", call, code, strerror(-code));
    exit(1);
  }
}

static double spawn(long tasks) {
  const long before = bodies_counted();
  const double start = now_ns();
  for (long i = 0; i < tasks; ++i) {
    require_success(starpu_task_insert(&count_codelet, 0), "starpu_task_insert");
  }
  require_success(starpu_task_wait_for_all(), "starpu_task_wait_for_all");
  const double ns = now_ns() - start;
  require_equal("bodies that ran", bodies_counted() - before, tasks);
  return ns;
}

static double chain(long tasks) {
  long value = 0;
  starpu_data_handle_t handle;
  starpu_variable_data_register(&handle, STARPU_MAIN_RAM, (uintptr_t)&value, sizeof value);
  const double start = now_ns();
  for (long i = 0; i < tasks; ++i) {
    require_success(starpu_task_insert(&increment_codelet, STARPU_RW, handle, 0),
                    "starpu_task_insert");
  }
  require_success(starpu_task_wait_for_all(), "starpu_task_wait_for_all");
  const double ns = now_ns() - start;
  starpu_data_unregister(handle);
  require_equal("sum of the chain", value, tasks);
  return ns;
}

static void check_row(const struct cell* row, long steps) {
  static unsigned long rows[2][width];
  for (int x = 0; x < width; ++x) rows[0][x] = (unsigned long)x;
  for (long step = 0; step < steps; ++step) {
    const unsigned long* old_row = rows[step % 2];
    unsigned long* new_row = rows[(step + 1) % 2];
    for (int x = 0; x < width; ++x) {
      new_row[x] = old_row[(x + width - 1) % width] + old_row[x] + old_row[(x + 1) % width] + 1;
    }
  }
  for (int x = 0; x < width; ++x) {
    require_equal("a cell of the stencil", (long)row[x].value, (long)rows[steps % 2][x]);
  }
}

static double stencil(long steps) {
  static struct cell rows[2][width] __attribute__((aligned(64)));
  starpu_data_handle_t handles[2][width];
  for (int row = 0; row < 2; ++row) {
    for (int x = 0; x < width; ++x) {
      rows[row][x].value = row == 0 ? (unsigned long)x : 0;
      starpu_variable_data_register(&handles[row][x], STARPU_MAIN_RAM, (uintptr_t)&rows[row][x],
                                    sizeof(struct cell));
    }
  }
  const double start = now_ns();
  for (long step = 0; step < steps; ++step) {
    starpu_data_handle_t* old_row = handles[step % 2];
    starpu_data_handle_t* new_row = handles[(step + 1) % 2];
    for (int x = 0; x < width; ++x) {
      require_success(starpu_task_insert(&point_codelet, STARPU_R, old_row[(x + width - 1) % width],
                                         STARPU_R, old_row[x], STARPU_R, old_row[(x + 1) % width],
                                         STARPU_W, new_row[x], 0),
                      "starpu_task_insert");
    }
  }
  require_success(starpu_task_wait_for_all(), "starpu_task_wait_for_all");
  const double ns = now_ns() - start;
  for (int row = 0; row < 2; ++row) {
    for (int x = 0; x < width; ++x) starpu_data_unregister(handles[row][x]);
  }
  check_row(rows[steps % 2], steps);
  return ns;
}

int main(int argc, char** argv) {
  const struct request request = parse_request(argc, argv, "spawn chain stencil");
  double (*run)(long) = NULL;
  long operations = request.size;
  if (strcmp(request.benchmark, "spawn") == 0) run = spawn;
  if (strcmp(request.benchmark, "chain") == 0) run = chain;
  if (strcmp(request.benchmark, "stencil") == 0) {
    run = stencil;
    operations *= width;
  }
  if (run == NULL) {
    fprintf(stderr, "starpu_cases: no case '%s'\n", request.benchmark);
    return 2;
  }

  struct starpu_conf conf;
  starpu_conf_init(&conf);
  conf.ncpus = request.workers;
  conf.ncuda = 0;
  conf.nopencl = 0;
  conf.sched_policy_name = "eager";
  require_success(starpu_init(&conf), "starpu_init");
  require_equal("workers", (long)starpu_cpu_worker_get_count(), request.workers);
  run(request.size / 10 + 1);  // a first pass, untimed
  const struct result result = {run(request.size) / (double)operations, operations, -1, -1};
  starpu_shutdown();

  int major, minor, release;
  starpu_get_version(&major, &minor, &release);
  char system[64];
  snprintf(system, sizeof system, "StarPU %d.%d.%d", major, minor, release);
  print_record(system, request, result);
}
