// SPDX-License-Identifier: BSD-3-Clause
// A tool by OMPT, a library of its own, which checks that what it hears fits together, whatever
// program it hears of. It is compiled against LLVM's omp-tools.h and knows nothing of imbrex.
//
// - A thread begins once, before all else that happens on it.
// - What runs on a thread changes by task_schedule and implicit_task alone, and is at each event
//   the task that ompt_get_task_info() gives.
// - Each created task begins, and is complete, once; it stays on its thread.
// - Regions, implicit tasks, constructs and waits begin and end in pairs, each on one task.
// - A lock is taken by a task that has asked for it, and the same task gives it back.
// - The places of constructs are in the program.
//
// At the end it prints counts and the number of errors; errors end the process with 3.
// TOOL_DECLINES: it does not want to hear of anything. TOOL_VERBOSE: it prints each schedule.
#include <dlfcn.h>
#include <omp-tools.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace {

ompt_get_task_info_t get_task_info;
ompt_get_thread_data_t get_thread_data;
ompt_get_unique_id_t get_unique_id;
ompt_set_callback_t set_callback;

std::atomic<int> errors{0};
bool verbose = false;

void check(const bool right, const char* const what) {
  if (right) return;
  if (errors.fetch_add(1) < 20) std::fprintf(stderr, "tool: error: %s\n", what);
}

struct Thread;

// Where a task is. Only its thread changes it once it runs.
struct Task {
  enum State { created, running, waiting, complete };
  std::atomic<int> state{created};
  Thread* thread = nullptr;
  bool implicit = false;
  bool asks = false;  // for a lock
  std::vector<int> syncs, waits, works;
  int masked = 0;
};

struct Thread {
  Task* current = nullptr;
  bool ended = false;
};

struct Region {
  unsigned size = 0;  // of its team, as its members say
  std::atomic<unsigned> begun{0};
  bool ended = false;
};

struct Counts {
  std::atomic<long> threads{0}, regions{0}, implicit{0}, created{0}, complete{0}, yields{0},
      switches{0}, dependences{0}, in{0}, out{0}, syncs{0}, works{0}, locks{0}, masked{0},
      dispatches{0}, cancels{0}, flushes{0}, reductions{0}, discarded{0}, threads_ended{0},
      taskwaits{0}, nested{0}, places{0}, no_places{0};
} counts;

std::mutex guard;  // of the next three
std::vector<void*>& all = *new std::vector<void*>;  // what the runtime points to; never freed
std::set<std::pair<ompt_wait_id_t, const Task*>> holders;
std::set<ompt_wait_id_t> locks;

template <class T>
T* made(T* const object) {
  const std::lock_guard held(guard);
  all.push_back(object);
  return object;
}

Thread& here() {
  ompt_data_t* const data = get_thread_data();
  if (data == nullptr || data->ptr == nullptr) {
    check(false, "an event on a thread that has not begun");
    std::abort();
  }
  return *static_cast<Thread*>(data->ptr);
}

Task& task_of(ompt_data_t* const data) {
  if (data == nullptr || data->ptr == nullptr) {
    check(false, "an event of a task that was not created");
    std::abort();
  }
  return *static_cast<Task*>(data->ptr);
}

// The running task, which the runtime must know as such.
Task& running() {
  Thread& thread = here();
  ompt_data_t* data = nullptr;
  int flags = 0;
  check(get_task_info(0, &flags, &data, nullptr, nullptr, nullptr) == 2, "no current task");
  check(data != nullptr && data->ptr == thread.current, "another task is current");
  check(thread.current->state == Task::running || thread.current->state == Task::waiting,
        "the current task does not run");
  return *thread.current;
}

// No place: the call was the last of its function, and a compiler has made it a jump.
void check_place(const void* const code) {
  Dl_info found{};
  ++(code != nullptr ? counts.places : counts.no_places);
  if (code == nullptr || dladdr(code, &found) == 0) return;
  check(std::strstr(found.dli_fname, "libimbrex") == nullptr, "a place in imbrex");
}

// ---- threads and tasks -------------------------------------------------------------------------

void thread_begin(ompt_thread_t kind, ompt_data_t* const data) {
  check(data->ptr == nullptr, "a thread begins twice");
  check(kind == ompt_thread_initial || kind == ompt_thread_worker, "an unknown kind of thread");
  data->ptr = made(new Thread);
  ++counts.threads;
}

void thread_end(ompt_data_t* const data) {
  auto* const thread = static_cast<Thread*>(data->ptr);
  check(get_thread_data() == data, "another thread ends");
  check(thread != nullptr && !thread->ended, "a thread ends twice");
  if (thread != nullptr) thread->ended = true;
  ++counts.threads_ended;
}

void implicit_task(ompt_scope_endpoint_t endpoint, ompt_data_t* const parallel,
                   ompt_data_t* const data, unsigned size, unsigned number, int flags) {
  Thread& thread = here();
  if (endpoint == ompt_scope_begin) {
    check(data->ptr == nullptr, "an implicit task begins twice");
    auto* const task = made(new Task);
    task->implicit = true;
    task->thread = &thread;
    task->state = Task::running;
    data->ptr = task;
    thread.current = task;
    if ((flags & ompt_task_initial) != 0) return;
    auto* const region = static_cast<Region*>(parallel->ptr);
    check(number < size, "a thread number is too large");
    check(!region->ended, "an implicit task begins after its region");
    ++region->begun;
    if (number == 0) region->size = size;
    ++counts.implicit;
    return;
  }
  Task& task = task_of(data);
  if ((flags & ompt_task_initial) != 0) return;
  check(&task == thread.current, "an implicit task ends that does not run");
  check(task.syncs.empty() && task.waits.empty(), "an implicit task ends in a wait");
  check(task.works.empty(), "an implicit task ends in a construct");
  check(task.state.exchange(Task::complete) == Task::running, "an implicit task ends twice");
  --counts.implicit;
  // What runs now, the runtime knows: the creator of the region, or nothing on a worker.
  ompt_data_t* now = nullptr;
  thread.current = get_task_info(1, nullptr, &now, nullptr, nullptr, nullptr) == 2 && now != nullptr
                       ? static_cast<Task*>(now->ptr)
                       : nullptr;
}

void parallel_begin(ompt_data_t* const creator, const ompt_frame_t* const frame,
                    ompt_data_t* const data, unsigned, int flags, const void* const code) {
  check(data->ptr == nullptr, "a region begins twice");
  check(&task_of(creator) == &running(), "a region begins in a task that does not run");
  check(frame->enter_frame.ptr != nullptr, "no frame of the call");
  check((flags & ompt_parallel_team) != 0, "a region without a team");
  check_place(code);
  data->ptr = made(new Region);
  ++counts.regions;
}

void parallel_end(ompt_data_t* const data, ompt_data_t* const creator, int, const void* code) {
  auto* const region = static_cast<Region*>(data->ptr);
  check(region != nullptr && !region->ended, "a region ends twice");
  check(region->begun == region->size, "a region ends before all members have begun");
  check(&task_of(creator) == &running(), "a region ends in a task that does not run");
  check_place(code);
  region->ended = true;
  --counts.regions;
}

void task_create(ompt_data_t* const creator, const ompt_frame_t* const frame,
                 ompt_data_t* const data, int flags, int, const void* const code) {
  check(data->ptr == nullptr, "a task is created twice");
  check(&task_of(creator) == &running(), "a task that does not run creates another");
  check(frame->enter_frame.ptr != nullptr, "no frame of the call");
  check_place(code);
  data->ptr = made(new Task);
  if ((flags & ompt_task_taskwait) != 0) {
    ++counts.taskwaits;
    return;
  }
  check((flags & ompt_task_explicit) != 0, "a created task is not explicit");
  ++counts.created;
}

void dependences(ompt_data_t* const data, const ompt_dependence_t* const first, int count) {
  check(task_of(data).state == Task::created, "dependences of a task that has begun");
  counts.dependences += count;
  for (int index = 0; index < count; ++index) {
    if (first[index].dependence_type == ompt_dependence_type_in) ++counts.in;
    if (first[index].dependence_type == ompt_dependence_type_inout) ++counts.out;
  }
}

void leave(Task& task, const ompt_task_status_t status) {
  switch (status) {
    case ompt_task_complete:
    case ompt_task_detach:
    case ompt_task_cancel:
      check(task.state.exchange(Task::complete) == Task::running, "a task ends that does not run");
      check(task.syncs.empty() && task.waits.empty(), "a task ends in a wait");
      check(task.works.empty(), "a task ends in a construct");
      check(!task.implicit, "an implicit task is complete");
      ++(status == ompt_task_cancel ? counts.discarded : counts.complete);
      break;
    case ompt_task_yield: ++counts.yields; [[fallthrough]];
    case ompt_task_switch: task.state = Task::waiting; break;
    default: check(false, "an unknown status");
  }
}

void task_schedule(ompt_data_t* const prior, ompt_task_status_t status, ompt_data_t* const next) {
  Thread& thread = here();
  if (status == ompt_task_early_fulfill || status == ompt_task_late_fulfill) return;
  if (status == ompt_taskwait_complete) {
    task_of(prior).state = Task::complete;
    return;
  }
  ++counts.switches;
  Task& from = task_of(prior);
  Task& to = task_of(next);
  if (verbose) {
    std::fprintf(stderr, "tool: %p: %p -%d-> %p\n", static_cast<void*>(&thread),
                 static_cast<void*>(&from), status, static_cast<void*>(&to));
  }
  check(thread.current == &from, "a thread leaves a task that does not run on it");
  leave(from, status);
  if (to.state == Task::created) {
    to.thread = &thread;
  } else {
    check(to.state == Task::waiting, "a task goes on that does not wait");
    check(to.thread == &thread, "a task has changed its thread");
  }
  to.state = Task::running;
  thread.current = &to;
}

// ---- constructs --------------------------------------------------------------------------------

void enter(std::vector<int>& open, const int kind, const ompt_scope_endpoint_t endpoint,
           const char* const what) {
  if (endpoint == ompt_scope_begin) {
    open.push_back(kind);
    return;
  }
  check(!open.empty() && open.back() == kind, what);
  if (!open.empty()) open.pop_back();
}

void sync_region(ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t*,
                 ompt_data_t* const data, const void*) {
  Task& task = running();
  check(&task_of(data) == &task, "another task synchronises");
  enter(task.syncs, kind, endpoint, "the end of a region of synchronisation that has not begun");
  if (endpoint == ompt_scope_begin) ++counts.syncs;
}

void sync_wait(ompt_sync_region_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t*,
               ompt_data_t* const data, const void*) {
  Task& task = running();
  check(&task_of(data) == &task, "another task waits");
  check(!task.syncs.empty() && task.syncs.back() == kind, "a wait outside of its region");
  enter(task.waits, kind, endpoint, "the end of a wait that has not begun");
}

void reduction(ompt_sync_region_t, ompt_scope_endpoint_t endpoint, ompt_data_t*,
               ompt_data_t* const data, const void*) {
  check(&task_of(data) == &running(), "another task reduces");
  counts.reductions += endpoint == ompt_scope_begin ? 1 : 0;
}

void work(ompt_work_t kind, ompt_scope_endpoint_t endpoint, ompt_data_t*, ompt_data_t* const data,
          uint64_t, const void* const code) {
  Task& task = running();
  check(&task_of(data) == &task, "another task shares work");
  check_place(code);
  enter(task.works, kind, endpoint, "the end of a construct that has not begun");
  if (endpoint == ompt_scope_begin) ++counts.works;
}

void dispatch(ompt_data_t*, ompt_data_t* const data, ompt_dispatch_t, ompt_data_t) {
  check(&task_of(data) == &running(), "another task gets work");
  ++counts.dispatches;
}

void masked(ompt_scope_endpoint_t endpoint, ompt_data_t*, ompt_data_t* const data, const void*) {
  Task& task = running();
  check(&task_of(data) == &task, "another task is masked");
  task.masked += endpoint == ompt_scope_begin ? 1 : -1;
  check(task.masked == 0 || task.masked == 1, "masked ends before it begins");
  counts.masked += endpoint == ompt_scope_begin ? 1 : 0;
}

void cancel(ompt_data_t* const data, int, const void*) {
  check(&task_of(data) == &running(), "another task cancels");
  ++counts.cancels;
}

void flush(ompt_data_t* const data, const void*) {
  check(data == get_thread_data(), "another thread flushes");
  ++counts.flushes;
}

// ---- locks -------------------------------------------------------------------------------------

void lock_init(ompt_mutex_t, unsigned, unsigned, ompt_wait_id_t lock, const void* const code) {
  check_place(code);
  const std::lock_guard held(guard);
  locks.insert(lock);
}
void lock_destroy(ompt_mutex_t, ompt_wait_id_t lock, const void* const code) {
  check_place(code);
  const std::lock_guard held(guard);
  check(locks.erase(lock) == 1, "a lock is destroyed that was not made");
  counts.locks -= static_cast<long>(std::erase_if(holders, [lock](const auto& holder) {
    return holder.first == lock;  // a program may destroy a lock that it holds
  }));
}

void mutex_acquire(ompt_mutex_t, unsigned, unsigned, ompt_wait_id_t, const void* const code) {
  check_place(code);
  running().asks = true;
}

void mutex_acquired(ompt_mutex_t kind, ompt_wait_id_t lock, const void* const code) {
  Task& task = running();
  check_place(code);
  check(task.asks, "a lock is taken by a task that has not asked");
  task.asks = false;
  ++counts.locks;
  if (kind == ompt_mutex_ordered) return;
  const std::lock_guard held(guard);
  check(holders.emplace(lock, &task).second, "a lock is taken twice");
}

// It is told after the lock is free: another task may have it by then, so a lock can have two
// holders here.
void mutex_released(ompt_mutex_t kind, ompt_wait_id_t lock, const void* const code) {
  Task& task = running();
  check_place(code);
  --counts.locks;
  if (kind == ompt_mutex_ordered) return;
  const std::lock_guard held(guard);
  check(holders.erase({lock, &task}) == 1, "a lock is given back by a task that does not hold it");
}

void nest_lock(ompt_scope_endpoint_t endpoint, ompt_wait_id_t lock, const void* const code) {
  Task& task = running();
  check_place(code);
  task.asks = false;
  counts.nested += endpoint == ompt_scope_begin ? 1 : -1;
  const std::lock_guard held(guard);
  check(holders.count({lock, &task}) == 1, "a nested lock of another task");
}

// ---- life --------------------------------------------------------------------------------------

template <class Call>
void listen(const ompt_callbacks_t event, Call* const call) {
  const ompt_set_result_t result =
      set_callback(event, reinterpret_cast<ompt_callback_t>(call));
  check(result == ompt_set_always || result == ompt_set_sometimes, "an event is never told");
}

int initialize(const ompt_function_lookup_t lookup, int, ompt_data_t*) {
  if (std::getenv("TOOL_DECLINES") != nullptr) {
    std::printf("tool: declines\n");
    return 0;
  }
  verbose = std::getenv("TOOL_VERBOSE") != nullptr;
  set_callback = reinterpret_cast<ompt_set_callback_t>(lookup("ompt_set_callback"));
  get_task_info = reinterpret_cast<ompt_get_task_info_t>(lookup("ompt_get_task_info"));
  get_thread_data = reinterpret_cast<ompt_get_thread_data_t>(lookup("ompt_get_thread_data"));
  get_unique_id = reinterpret_cast<ompt_get_unique_id_t>(lookup("ompt_get_unique_id"));
  check(get_unique_id() != get_unique_id(), "an id is given twice");
  check(lookup("ompt_no_such_function") == nullptr, "a function that does not exist");
  check(set_callback(ompt_callback_target_emi, nullptr) == ompt_set_never, "a target is heard");
  listen(ompt_callback_thread_begin, &thread_begin);
  listen(ompt_callback_thread_end, &thread_end);
  listen(ompt_callback_implicit_task, &implicit_task);
  listen(ompt_callback_parallel_begin, &parallel_begin);
  listen(ompt_callback_parallel_end, &parallel_end);
  listen(ompt_callback_task_create, &task_create);
  listen(ompt_callback_task_schedule, &task_schedule);
  listen(ompt_callback_dependences, &dependences);
  listen(ompt_callback_sync_region, &sync_region);
  listen(ompt_callback_sync_region_wait, &sync_wait);
  listen(ompt_callback_reduction, &reduction);
  listen(ompt_callback_work, &work);
  listen(ompt_callback_dispatch, &dispatch);
  listen(ompt_callback_masked, &masked);
  listen(ompt_callback_cancel, &cancel);
  listen(ompt_callback_flush, &flush);
  listen(ompt_callback_lock_init, &lock_init);
  listen(ompt_callback_lock_destroy, &lock_destroy);
  listen(ompt_callback_mutex_acquire, &mutex_acquire);
  listen(ompt_callback_mutex_acquired, &mutex_acquired);
  listen(ompt_callback_mutex_released, &mutex_released);
  listen(ompt_callback_nest_lock, &nest_lock);
  std::printf("tool: listens\n");
  return 1;
}

void finalize(ompt_data_t*) {
  check(counts.regions == 0, "a region has not ended");
  check(counts.implicit == 0, "an implicit task has not ended");
  check(counts.created == counts.complete + counts.discarded, "a task is not complete");
  check(counts.threads == counts.threads_ended, "a thread has not ended");
  check(counts.places > counts.no_places, "few places in the program");
  check(counts.locks == 0 && counts.nested == 0, "a lock was not given back");
  std::printf("tool: tasks %ld, discarded %ld, yields %s, dependences %ld (%ld in, %ld out)\n",
              counts.created.load(), counts.discarded.load(), counts.yields != 0 ? "some" : "none",
              counts.dependences.load(), counts.in.load(), counts.out.load());
  std::printf("tool: %s dispatches, works %ld, masked %ld, taskwaits %ld, cancels %s\n",
              counts.dispatches != 0 ? "some" : "no", counts.works.load(), counts.masked.load(),
              counts.taskwaits.load(), counts.cancels != 0 ? "some" : "none");
  std::printf("tool: %d errors\n", errors.load());
  std::fflush(stdout);
  if (errors != 0) _exit(3);
}

}  // namespace

extern "C" ompt_start_tool_result_t* ompt_start_tool(unsigned, const char* const runtime) {
  static ompt_start_tool_result_t result{&initialize, &finalize, {0}};
  std::printf("tool: of %s\n", std::strncmp(runtime, "imbrex", 6) == 0 ? "imbrex" : runtime);
  return &result;
}
