// SPDX-License-Identifier: BSD-3-Clause
// Several tasks at a time make communicators, windows and files, each on a communicator of its own.
// usage: makers [NAME...]; all kinds, if none is named.
//
// The program is built twice: with imbrex, by tasks, and as one that knows nothing of imbrex
// (MAKERS_PLAIN), by threads. The second one runs with imbrex preloaded.
//
// Methodology: each kind is made ROUNDS times in each task, without any order among the tasks. A
// sum over the processes of what was made shows that no other task's processes are in it. A kind
// whose calls meet each other's messages hangs, or is wrong; the watch then names it.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#ifndef MAKERS_PLAIN
#include "imbrex/imbrex.hpp"
#endif

namespace {

constexpr int tasks = 4;
constexpr int rounds = 12;

int rank = 0;
int size = 1;
std::atomic<int> wrong{0};

void expect(bool holds, const char* text, int line) {
  if (holds) return;
  if (wrong.fetch_add(1) < 8) std::fprintf(stderr, "makers.cpp:%d: %s\n", line, text);
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

void at_once(const std::function<void(int)>& body) {
#ifdef MAKERS_PLAIN
  std::vector<std::thread> threads;
  for (int i = 0; i < tasks; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
#else
  imbrex::finish([&] {
    for (int i = 0; i < tasks; ++i) imbrex::task("make").launch([&body, i] { body(i); });
  });
#endif
}

// What one task makes things of. No other task uses it.
struct Parts {
  int task;
  MPI_Comm all;    // duplicate of MPI_COMM_WORLD
  MPI_Comm half;   // the processes whose rank is even, or odd
  MPI_Comm inter;  // between the halves; MPI_COMM_NULL if there is one process
};

int sum_over(MPI_Comm comm) {
  int sum = -1;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum;
}
int sum_of_all() { return size * (size - 1) / 2; }
int sum_of_half() {
  int sum = 0;
  for (int i = rank % 2; i < size; i += 2) sum += i;
  return sum;
}
void use(MPI_Comm comm, int sum) {
  EXPECT(sum_over(comm) == sum);
  MPI_Comm_free(&comm);
}
void use_both_sides(MPI_Comm comm) {
  int sum = -1;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);  // of the other side
  EXPECT(sum == sum_of_all() - sum_of_half());
  MPI_Comm_free(&comm);
}
void use(MPI_Win window) {
  MPI_Win_fence(0, window);
  MPI_Group group;
  MPI_Win_get_group(window, &group);
  int members = 0;
  MPI_Group_size(group, &members);
  EXPECT(members == size);
  MPI_Group_free(&group);
  MPI_Win_free(&window);
}

// ---- the kinds ---------------------------------------------------------------------------------

void dup(const Parts& it) {
  MPI_Comm made;
  MPI_Comm_dup(it.all, &made);
  use(made, sum_of_all());
}
void idup(const Parts& it) {
  MPI_Comm made;
  MPI_Request request;
  MPI_Comm_idup(it.all, &made, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  use(made, sum_of_all());
}
void dup_with_info(const Parts& it) {
  MPI_Comm made;
  MPI_Comm_dup_with_info(it.all, MPI_INFO_NULL, &made);
  use(made, sum_of_all());
}
void split(const Parts& it) {
  MPI_Comm made;
  MPI_Comm_split(it.all, rank % 2, rank, &made);
  use(made, sum_of_half());
}
void split_type(const Parts& it) {
  MPI_Comm made;
  MPI_Comm_split_type(it.all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
  use(made, sum_of_all());
}
void create(const Parts& it) {
  MPI_Group group;
  MPI_Comm_group(it.half, &group);
  MPI_Comm made;
  MPI_Comm_create(it.all, group, &made);
  use(made, sum_of_half());
  MPI_Group_free(&group);
}
void create_group(const Parts& it) {
  MPI_Group group;
  MPI_Comm_group(it.half, &group);
  MPI_Comm made;
  MPI_Comm_create_group(it.all, group, 5, &made);
  use(made, sum_of_half());
  MPI_Group_free(&group);
}
// On one communicator, with a tag for each task.
void create_group_by_tag(const Parts& it) {
  MPI_Group group;
  MPI_Comm_group(it.half, &group);
  MPI_Comm made;
  MPI_Comm_create_group(MPI_COMM_WORLD, group, 5 + it.task, &made);
  use(made, sum_of_half());
  MPI_Group_free(&group);
}
MPI_Comm grid_of(const Parts& it) {
  const int periodic = 0;
  MPI_Comm made;
  MPI_Cart_create(it.all, 1, &size, &periodic, 0, &made);
  return made;
}
void cart(const Parts& it) { use(grid_of(it), sum_of_all()); }
void cart_sub(const Parts& it) {
  MPI_Comm grid = grid_of(it);
  const int keep = 1;
  MPI_Comm made;
  MPI_Cart_sub(grid, &keep, &made);
  use(made, sum_of_all());
  MPI_Comm_free(&grid);
}
void graph(const Parts& it) {
  std::vector<int> ends;
  std::vector<int> edges;
  for (int i = 0; i < size; ++i) {
    edges.push_back((i + 1) % size);
    ends.push_back(i + 1);
  }
  MPI_Comm made;
  MPI_Graph_create(it.all, size, ends.data(), edges.data(), 0, &made);
  use(made, sum_of_all());
}
// Open MPI allows few of these calls on one communicator (docs/design/mpi-facts.md).
void dist_graph(const Parts& it) {
  const int degree = 1;
  const int next = (rank + 1) % size;
  MPI_Comm base;
  MPI_Comm_dup(it.all, &base);
  MPI_Comm made;
  MPI_Dist_graph_create(base, 1, &rank, &degree, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
  use(made, sum_of_all());
  MPI_Comm_free(&base);
}
void dist_graph_adjacent(const Parts& it) {
  const int next = (rank + 1) % size;
  const int previous = (rank + size - 1) % size;
  MPI_Comm made;
  MPI_Dist_graph_create_adjacent(it.all, 1, &previous, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &made);
  use(made, sum_of_all());
}
void inter(const Parts& it) {
  MPI_Comm made;
  MPI_Intercomm_create(it.half, 0, it.all, 1 - rank % 2, 5, &made);
  use_both_sides(made);
}
// All tasks use one peer communicator, each with a tag of its own.
void inter_by_tag(const Parts& it) {
  MPI_Comm made;
  MPI_Intercomm_create(it.half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5 + it.task, &made);
  use_both_sides(made);
}
void inter_dup(const Parts& it) {
  MPI_Comm made;
  MPI_Comm_dup(it.inter, &made);
  use_both_sides(made);
}
void merge(const Parts& it) {
  MPI_Comm made;
  MPI_Intercomm_merge(it.inter, rank % 2, &made);
  use(made, sum_of_all());
}
void window(const Parts& it) {
  int value = 0;
  MPI_Win made;
  MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, it.all, &made);
  use(made);
}
void window_allocate(const Parts& it) {
  int* value = nullptr;
  MPI_Win made;
  MPI_Win_allocate(sizeof *value, sizeof *value, MPI_INFO_NULL, it.all, &value, &made);
  use(made);
}
void window_shared(const Parts& it) {
  int* value = nullptr;
  MPI_Win made;
  MPI_Win_allocate_shared(sizeof *value, sizeof *value, MPI_INFO_NULL, it.all, &value, &made);
  use(made);
}
void window_dynamic(const Parts& it) {
  MPI_Win made;
  MPI_Win_create_dynamic(MPI_INFO_NULL, it.all, &made);
  use(made);
}
void file(const Parts& it) {
  int mine = static_cast<int>(getpid());
  MPI_Bcast(&mine, 1, MPI_INT, 0, it.all);
  const std::string name =
      "/tmp/imbrex_makers_" + std::to_string(mine) + "_" + std::to_string(it.task);
  MPI_File made;
  const int mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
  const int code = MPI_File_open(it.all, name.c_str(), mode, MPI_INFO_NULL, &made);
  EXPECT(code == MPI_SUCCESS);
  if (code != MPI_SUCCESS) return;
  MPI_File_write_at_all(made, rank * MPI_Offset{sizeof rank}, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
  int back = -1;
  MPI_File_read_at_all(made, rank * MPI_Offset{sizeof rank}, &back, 1, MPI_INT, MPI_STATUS_IGNORE);
  EXPECT(back == rank);
  MPI_File_close(&made);
}
#if MPI_VERSION >= 4
void from_group(const Parts& it) {
  MPI_Group group;
  MPI_Comm_group(it.all, &group);
  MPI_Comm made;
  const std::string tag = "makers " + std::to_string(it.task);
  MPI_Comm_create_from_group(group, tag.c_str(), MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &made);
  use(made, sum_of_all());
  MPI_Group_free(&group);
}
#endif

struct Kind {
  const char* name;
  void (*make)(const Parts&);
  bool of_two_groups;
};
constexpr Kind kinds[] = {
    {"dup", dup, false},
    {"idup", idup, false},
    {"dup_with_info", dup_with_info, false},
    {"split", split, false},
    {"split_type", split_type, false},
    {"create", create, false},
    {"create_group", create_group, false},
    {"create_group_by_tag", create_group_by_tag, false},
    {"cart", cart, false},
    {"cart_sub", cart_sub, false},
    {"graph", graph, false},
    {"dist_graph", dist_graph, false},
    {"dist_graph_adjacent", dist_graph_adjacent, false},
    {"inter", inter, true},
    {"inter_by_tag", inter_by_tag, true},
    {"inter_dup", inter_dup, true},
    {"merge", merge, true},
    {"window", window, false},
    {"window_allocate", window_allocate, false},
    {"window_shared", window_shared, false},
    {"window_dynamic", window_dynamic, false},
    {"file", file, false},
#if MPI_VERSION >= 4
    {"from_group", from_group, false},
#endif
};

// Made by one thread, one after the other.
std::vector<Parts> parts_of_tasks() {
  std::vector<Parts> parts(tasks);
  for (int i = 0; i < tasks; ++i) {
    Parts& it = parts[static_cast<std::size_t>(i)];
    it.task = i;
    MPI_Comm_dup(MPI_COMM_WORLD, &it.all);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &it.half);
    it.inter = MPI_COMM_NULL;
    if (size > 1) MPI_Intercomm_create(it.half, 0, it.all, 1 - rank % 2, 5, &it.inter);
  }
  return parts;
}
void free_parts(std::vector<Parts>& parts) {
  for (Parts& it : parts) {
    if (it.inter != MPI_COMM_NULL) MPI_Comm_free(&it.inter);
    MPI_Comm_free(&it.half);
    MPI_Comm_free(&it.all);
  }
}

// Ends a process that hangs, and says in which kind.
class Watch {
 public:
  explicit Watch(const char* kind) : kind_(kind), thread_([this] { watch(); }) {}
  ~Watch() {
    done_.store(true);
    thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void watch() const {
    constexpr int tenths = 100;
    for (int i = 0; i < tenths && !done_.load(); ++i) usleep(100'000);
    if (done_.load()) return;
    std::fprintf(stderr, "makers: %s hangs\n", kind_);
    _exit(3);
  }

  const char* const kind_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

void run(const Kind& kind, const std::vector<Parts>& parts) {
  if (kind.of_two_groups && size == 1) return;
  const int wrong_before = wrong.load();
  at_once([&](int i) {
    for (int k = 0; k < rounds; ++k) kind.make(parts[static_cast<std::size_t>(i)]);
  });
  if (wrong.load() != wrong_before) std::fprintf(stderr, "makers: %s is wrong\n", kind.name);
}

// Each task makes all kinds, and begins with another one than the other tasks.
void run_mixed(const std::vector<Parts>& parts) {
  constexpr std::size_t all = std::size(kinds);
  at_once([&](int i) {
    for (std::size_t k = 0; k < all; ++k) {
      const Kind& kind = kinds[(k + static_cast<std::size_t>(i) * all / tasks) % all];
      if (kind.of_two_groups && size == 1) continue;
      kind.make(parts[static_cast<std::size_t>(i)]);
    }
  });
}

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided != MPI_THREAD_MULTIPLE) {
    std::printf("makers: this MPI does not give MPI_THREAD_MULTIPLE\n");
    MPI_Finalize();
    return 0;
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<Parts> parts = parts_of_tasks();
  const std::vector<std::string_view> chosen(argv + 1, argv + argc);
  const auto is_chosen = [&](std::string_view name) {
    return chosen.empty() || std::ranges::find(chosen, name) != chosen.end();
  };
  if (is_chosen("mixed")) {
    const Watch watch("mixed");
    run_mixed(parts);
  }
  for (const Kind& kind : kinds) {
    if (!is_chosen(kind.name)) continue;
    const Watch watch(kind.name);
    run(kind, parts);
  }
  free_parts(parts);
  const bool right = wrong.load() == 0;
  if (rank == 0) std::printf("makers: %s\n", right ? "right" : "wrong");
  MPI_Finalize();
  return right ? 0 : 1;
}
