// SPDX-License-Identifier: BSD-3-Clause
// What is kept for a tool of each thread, each region and each task. Without a tool there are no
// records.
//
// Thread safety: the thread that runs a task uses its record; its creator does before. A task never
// changes its thread once it has begun. Only its own thread uses a ThreadRecord, except the list.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "omp/tools/ompt.hpp"

namespace imbrex::omp::tools {

struct TaskRecord;

// The children of a task by their dependences, for the tool's pairs of tasks. Records are kept for
// as long as they are here.
//
// Thread safety: only its task uses it.
class Children {
 public:
  Children() = default;
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  // Adds `task`, the next child; calls pair(before) for each one that it must wait for and that is
  // not complete.
  template <class Pair>
  void add(TaskRecord& task, const Dependence& dependence, Pair pair);

 private:
  // The last children that use an address in one way, and those before. Children of one kind, other
  // than out and inout, do not wait for each other.
  struct Uses {
    DependKind kind = DependKind::inout;
    std::vector<TaskRecord*> last, before;
  };
  static void follow(Uses& uses, TaskRecord& task, DependKind kind);
  std::unordered_map<const void*, Uses> uses_;  // null: all memory
};

struct ParallelRecord {
  Data data{};
  TaskRecord* creator = nullptr;  // the task that has begun the region, until its end
  unsigned flags = 0;
  int size = 1;
};

struct TaskRecord {
  Data data{};
  Frame frame{};
  ParallelRecord* parallel = nullptr;
  TaskRecord* below = nullptr;      // on the same stack; the creator of its region, for an implicit
                                    // task of another thread; null: it has a stack of its own
  const void* thread = nullptr;     // its ThreadRecord, once it has begun
  bool is_native = false;           // it runs on the stack that the system has given its thread
  Status left_as = Status::change;  // what the tool hears when another task follows
  unsigned flags = 0;
  unsigned next_flags = 0;          // of the task that it is about to create
  Iterations part{};                // that task's, or its own, of a taskloop; none: count 0
  int number = 0;                   // of the thread in the team
  const void* code = nullptr;       // where the call of the runtime that it is in returns to
  State state = State::work_parallel;
  std::uint64_t lock = 0;           // that it waits for
  Work loop = Work::none;           // the open loop or sections, and its count
  std::uint64_t loop_count = 0;
  bool in_single = false;           // GCC's programs do not call the runtime at the end of a single
  std::unique_ptr<Children> children;
  std::atomic<bool> complete{false};  // release: what the tool heard before
  // With detach: the task and its event end in either order, perhaps on two threads.
  std::atomic<bool> half_ended{false};
  std::atomic<int> owners{1};       // the task, its event, its parent's Children; acq_rel: the last
                                    // one deletes the record
};

struct ThreadRecord {
  Data data{};
  ThreadKind kind = ThreadKind::initial;
  ParallelRecord outside_region;    // the code outside of all regions is a region and a task
  TaskRecord outside;
  TaskRecord* current = &outside;   // the task that runs, or that ran last on this thread
  TaskRecord* native = &outside;    // the innermost task on the thread's native stack
  bool left = false;                // `current` has left its stack
  int in_tool = 0;                  // depth of calls of the tool
  ThreadRecord* speaks_for = nullptr;  // at the end of the process: the thread that ends
  ThreadRecord* next = nullptr;     // link in the list of all, below its lock
};

// Gives back one reference.
void drop(TaskRecord* task) noexcept;

// The record of the calling thread, which the tool has then heard of. REQUIRES: listens().
[[nodiscard]] ThreadRecord& this_thread();
[[nodiscard]] ThreadRecord* known_thread() noexcept;  // null: the tool has not heard of it
// The calling thread is one of the pool; call it first.
void begin_pool_thread();
// The tool hears of the end of all threads, from the calling one.
void end_all_threads();
// In a child of fork: no other thread exists, and one may have been changing the list.
void forget_threads() noexcept;

}  // namespace imbrex::omp::tools
