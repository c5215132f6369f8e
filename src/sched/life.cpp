// SPDX-License-Identifier: BSD-3-Clause
// The life of the runtime: start, stop, the end of the program, fork, foreign threads.
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>

#include "base/check.hpp"
#include "base/topology.hpp"
#include "imbrex/error.hpp"
#include "imbrex/runtime.hpp"
#include "sched/observe/observe.hpp"
#include "sched/process.hpp"
#include "sched/policy/stealing.hpp"
#include "sched/runtime.hpp"
#include "task/joint.hpp"

namespace imbrex::sched {

namespace {

// What outlives a Runtime object.
struct Life {
  std::mutex lock;               // guards start and stop
  std::atomic<Runtime*> runtime{nullptr};
  std::mutex end_lock;           // held to set `runtime` to null before it is destroyed
  bool ended = false;            // the program is about to end: nothing starts any more
  bool hooked = false;           // on_exit and atfork are registered
  pid_t process = 0;             // that started it: a child of fork has no threads
  detail::Place place;
  int rank = 0, ranks = 1;
  int joiners_max = 0;           // detail::expect_joiners(), as are the next two
  std::size_t stack_bytes = 0;   // 0: the option's default
  cpu_set_t processors{};        // if joiners are expected
  bool want_times = false;
  bool summary_printed = false;
  std::vector<Runtime*> kept;    // stopped, but futures still refer to their tasks
};
Life& life() noexcept {
  static Life* const never_destroyed = new Life;  // foreign threads may outlive static objects
  return *never_destroyed;
}

// A value given in the program is held to what the option's table allows.
void check_range(const char* const field, const std::int64_t value, const std::int64_t first,
                 const std::int64_t last) {
  if (value >= first && value <= last) return;
  throw Error(fmt::format("imbrex: Config::{} = {}: valid: {} to {}", field, value, first, last));
}

base::Options merged(const Config& config) {
  base::Options options = base::read_options();
  check_range("workers", config.workers, 0, 4096);
  check_range("window", config.window, -1, 1'000'000'000);
  check_range("bind", config.bind, -1, 1);
  if (config.stack_bytes != 0) {
    check_range("stack_bytes", static_cast<std::int64_t>(config.stack_bytes), 16 << 10, 1 << 30);
  }
  if (config.workers != 0) options.WORKERS = config.workers;
  if (!config.policy.empty()) options.POLICY = config.policy;
  if (life().stack_bytes != 0 && std::getenv("IMBREX_STACK_SIZE") == nullptr) {
    options.STACK_SIZE = static_cast<std::int64_t>(life().stack_bytes);
  }
  if (config.stack_bytes != 0) options.STACK_SIZE = static_cast<std::int64_t>(config.stack_bytes);
  if (config.window >= 0) options.WINDOW = config.window;
  if (config.bind >= 0) options.BIND = config.bind != 0;
  return options;
}

// This process's share of the processors: ranks with the same mask divide it.
Share share_of(const std::vector<int>& processors, const detail::Place& place) {
  const int all = static_cast<int>(processors.size());
  if (all < place.count) return {{processors[static_cast<std::size_t>(place.index % all)]}};
  const auto begin = processors.begin() + all * place.index / place.count;
  const auto end = processors.begin() + all * (place.index + 1) / place.count;
  Share share{{begin, end}};
  if (place.reserve && share.processors.size() > 1) {
    share.reserved = share.processors.back();
    share.processors.pop_back();
  }
  return share;
}

Task& make_root(Worker& worker, const char* const name) {
  constexpr std::size_t slot_class = base::slab_class(sizeof(Task));
  auto& root = *static_cast<Task*>(worker.tasks.take(slot_class));
  root.references.store(1, std::memory_order_relaxed);
  root.kind = detail::CompletionKind::task;
  root.event.head.store(0, std::memory_order_relaxed);
  ::new (&root.error) std::exception_ptr;
  root.pending.store(0, std::memory_order_relaxed);
  root.tied = true;
  root.root = true;
  root.ops = nullptr;
  root.scope = nullptr;
  root.parent = nullptr;
  root.id = worker.runtime->next_id.fetch_add(1, std::memory_order_relaxed);
  root.name = name;
  root.where = {};
  root.accesses = nullptr;
  root.fiber = nullptr;
  root.family = nullptr;
  root.priority.store(0, std::memory_order_relaxed);
  root.slot_class = slot_class;
  root.group = 0;
  root.held = false;
  root.blocks = false;
  root.reach = task::Reach::entry;
  root.state.store(task::State::running, std::memory_order_release);
  return root;
}

// The calling thread's code becomes a task on its native stack.
void adopt_thread(Worker& worker, const char* const name) {
  fiber::adopt_native(worker.native);
  worker.exception_globals = fiber::thread_exception_globals();
  worker.fiber = &worker.native;
  worker.native.tied_to = &worker;
  worker.root = &make_root(worker, name);
  worker.task = worker.root;
  worker.recorder.enter(trace::Activity::task);
  set_current_worker(&worker);
}

void wake_worker(void* const context, const int worker) {
  static_cast<Runtime*>(context)->parking.wake(worker);
}

base::Neighbours places(base::Topology& topology, const std::vector<int>& processors,
                        const int workers) {
  std::vector<int> where;
  for (int worker = 0; worker < workers; ++worker) {
    where.push_back(processors[static_cast<std::size_t>(worker) % processors.size()]);
  }
  return topology.neighbours(where);
}

// ---- the end ---------------------------------------------------------------------------------

void stop_threads(Runtime& runtime) {
  runtime.stopping.store(true, std::memory_order_release);
  runtime.parking.wake_all();
  for (const auto& worker : runtime.workers) {
    while (worker->thread.joinable() && worker->parked.load(std::memory_order_acquire)) {
      runtime.parking.wake(worker->id);
      std::this_thread::yield();
    }
    if (worker->thread.joinable()) worker->thread.join();
  }
}

// The threads are gone; what is left belongs to the caller.
void finish_records(Runtime& runtime) {
  Life& now = life();
  runtime.time.stop();
  if (runtime.options.SUMMARY && !now.summary_printed) {
    const detail::Totals row = detail::totals();
    detail::print_summary({&row, 1});
  }
  now.summary_printed = false;
  if (runtime.options.TRACE.empty()) return;
  std::vector<trace::Recorder*> recorders;
  for (const auto& worker : runtime.workers) recorders.push_back(&worker->recorder);
  for (Worker* const worker : runtime.foreign) recorders.push_back(&worker->recorder);
  trace::write_files(runtime.options.TRACE,
                     {.rank = now.rank,
                      .ranks = now.ranks,
                      .workers = static_cast<int>(runtime.workers.size()),
                      .policy = runtime.options.POLICY},
                     runtime.time, recorders);
}

void stop(Runtime& runtime) {
  Worker& main = *runtime.workers[0];
  main.recorder.enter(trace::Activity::overhead);
  if (main.recorder.tracing()) {
    main.recorder.record(trace::Kind::task_end, main.root->id, 0, 0, 0);
  }
  stop_threads(runtime);
  finish_records(runtime);
  {
    const std::lock_guard guard(runtime.foreign_lock);
    for (Worker* const worker : runtime.foreign) {
      worker->tasks.flush();
      worker->small.flush();
      worker->runtime = nullptr;
    }
    runtime.foreign.clear();
  }
  drop_reference(main, *main.root);
  set_current_worker(nullptr);
  {
    const std::lock_guard guard(life().end_lock);
    life().runtime.store(nullptr, std::memory_order_release);
  }
  bool referred_to = false;  // by futures that outlive the runtime
  runtime.task_slots.for_each([&referred_to](std::byte* const slot) {
    referred_to = referred_to || reinterpret_cast<Task*>(slot)->state.load() != task::State::free;
  });
  bool used = referred_to;  // or by threads of the program's own, which wait for ever in a loop
  for (const auto& worker : runtime.workers) used = used || worker->joined;
  if (used) {
    life().kept.push_back(&runtime);
  } else {
    delete &runtime;
  }
}

// Runs at exit(), before static objects are destroyed. From main, with success: what was spawned is
// run to its end. Else nothing more starts, and tasks that run are given a moment to leave.
void at_exit(const int status, void*) {
  Life& now = life();
  const std::lock_guard guard(now.lock);
  now.ended = true;
  Runtime* const runtime = now.runtime.load(std::memory_order_acquire);
  if (runtime == nullptr || now.process != getpid()) return;
  Worker* const worker = current_worker();
  const bool in_main = worker != nullptr && worker->id == 0 && worker->task == worker->root &&
                       worker->callbacks == 0;
  if (in_main) {
    if (status == EXIT_SUCCESS) detail::drain();
    // Tasks that will not run any more keep their stacks: no join could wait for them.
    if (status == EXIT_SUCCESS) {
      stop(*runtime);
      return;
    }
  }
  for (const auto& other : runtime->workers) {  // nobody can wait for threads that hold tasks
    if (other->thread.joinable()) other->thread.detach();
  }
  runtime->stopping.store(true, std::memory_order_release);
  runtime->parking.wake_all();
  if (worker != nullptr) set_current_worker(nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

void after_fork_in_child() {
  set_current_worker(nullptr);
  life().runtime.store(nullptr, std::memory_order_release);
  life().ended = true;  // the threads are the parent's
}

void hook_once() {
  Life& now = life();
  if (now.hooked) return;
  now.hooked = true;
  on_exit(&at_exit, nullptr);
  pthread_atfork(nullptr, nullptr, &after_fork_in_child);
  base::set_describe(&detail::describe_current_task);
}

void detach(Worker* worker);

Runtime& start(const Config& config) {
  Life& now = life();
  const base::Options options = merged(config);
  if (options.HELP) fmt::print(stderr, "imbrex: options:\n{}", base::options_help());
  refuse_second_copy();
  if (!options.TRACE.empty()) trace::prepare_directory(options.TRACE);
  base::Topology topology;
  const bool joined = now.joiners_max != 0;
  std::vector<int> allowed = base::processors_in(joined ? now.processors : base::affinity_mask());
  if (!joined || options.WORKERS != 0) topology.sort(allowed);  // who joins has its own place
  const Share share = share_of(allowed, now.place);
  const std::vector<int>& processors = share.processors;
  const std::int64_t wanted = options.WORKERS != 0 ? options.WORKERS
                              : joined             ? 1
                                       : static_cast<std::int64_t>(processors.size());
  const int workers = static_cast<int>(wanted);
  const bool shared = now.place.count > static_cast<int>(allowed.size());
  auto* const runtime = new Runtime(options, share, workers, now.joiners_max, shared, topology);
  now.process = getpid();
  now.runtime.store(runtime, std::memory_order_release);
  hook_once();
  catch_overflow();
  Worker& main = *runtime->workers[0];
  adopt_thread(main, "main");
  if (gettid() != getpid()) {
    main.joined = true;
    at_thread_exit(&main, &detach);
  }
  if (main.recorder.tracing()) {
    main.recorder.record(trace::Kind::task_begin, main.root->id, trace::intern("main", nullptr), 0,
                         0);
  }
  const bool bind =
      options.BIND && !runtime->oversubscribed.load(std::memory_order_relaxed);
  for (int index = 1; index < workers; ++index) {
    Worker& worker = *runtime->workers[static_cast<std::size_t>(index)];
    const int processor = bind ? processors[static_cast<std::size_t>(index)] : -1;
    worker.thread = std::thread([&worker, processor] {
      // Not the main thread: threads that the program makes later inherit its mask.
      if (processor >= 0) base::bind_thread(processor);
      alternate_stack();
      thread_main(worker);
    });
  }
  return *runtime;
}

// ---- foreign threads -------------------------------------------------------------------------

// The thread ends. Its root lives on until the tasks that it spawned are complete.
void detach(Worker* const worker) {
  Runtime* const runtime = worker->runtime;
  set_current_worker(nullptr);
  if (runtime != nullptr && life().runtime.load(std::memory_order_acquire) == runtime) {
    {
      const std::lock_guard guard(runtime->foreign_lock);
      if (worker->foreign()) std::erase(runtime->foreign, worker);
    }
    Task& root = *worker->root;
    task::Outcome outcome;
    root.state.store(task::State::ended, std::memory_order_release);
    if (root.family == nullptr) {
      task::lose(root, outcome);
    } else {
      if (root.family->table != nullptr) root.family->table->clear(outcome);
      if (root.family->children.begin_wait(task::Await::life)) task::lose(root, outcome);
    }
    settle(*worker, outcome);
    worker->tasks.flush();
    worker->small.flush();
    if (!worker->foreign()) {
      // From its fibers' view the next thread that joins is the same worker.
      worker->parked.store(true, std::memory_order_release);
      const std::lock_guard guard(runtime->foreign_lock);
      worker->next_left = runtime->left;
      runtime->left = worker;
      return;
    }
  }
  if (worker->foreign()) delete worker;
}

Worker& attach(Runtime& runtime) {
  auto* const worker = new Worker(runtime, no_worker);
  worker->home.group = &runtime.groups.nobody();
  worker->serve(worker->home);
  worker->recorder.enable(runtime.options.SUMMARY, !runtime.options.TRACE.empty(), UINT32_MAX);
  adopt_thread(*worker, "foreign thread");
  at_thread_exit(worker, &detach);
  const std::lock_guard guard(runtime.foreign_lock);
  runtime.foreign.push_back(worker);
  return *worker;
}

// A worker for the calling thread, which is none.
Worker& join(Runtime& runtime) {
  const std::lock_guard guard(runtime.foreign_lock);
  if (Worker* const left = runtime.left) {
    runtime.left = left->next_left;
    left->parked.store(false, std::memory_order_relaxed);
    return *left;
  }
  if (runtime.workers.full()) {
    throw Error(fmt::format("imbrex: {} threads use the runtime, and one more wants to: start "
                            "fewer threads",
                            runtime.workers.most()));
  }
  const int id = static_cast<int>(runtime.workers.size());
  auto worker = std::make_unique<Worker>(runtime, id);
  worker->joined = true;
  worker->home = {&runtime.groups.nobody(), 0, nullptr};
  worker->serve(worker->home);
  worker->recorder.enable(runtime.options.SUMMARY || life().want_times,
                          !runtime.options.TRACE.empty(), static_cast<std::uint32_t>(id));
  if (runtime.lineage.flow().learns) worker->recorder.watch();
  if (id >= static_cast<int>(runtime.processors.size())) {
    runtime.oversubscribed.store(true, std::memory_order_relaxed);
  }
  return runtime.workers.add(std::move(worker));
}

[[gnu::noinline]] Worker& here_slow(Worker* const stale) {
  Life& now = life();
  if (Runtime* const runtime = now.runtime.load(std::memory_order_acquire)) {
    if (stale != nullptr) {
      set_current_worker(nullptr);
      at_thread_exit(nullptr, nullptr);
      delete stale;
    }
    return attach(*runtime);
  }
  detail::start();
  return *current_worker();
}

}  // namespace

Runtime* runtime() noexcept { return life().runtime.load(std::memory_order_acquire); }
std::mutex& end_lock() noexcept { return life().end_lock; }

Worker& here() {
  Worker* const worker = current_worker();
  if (worker != nullptr && worker->runtime != nullptr) [[likely]] return *worker;
  return here_slow(worker);
}

Runtime::Runtime(const base::Options& its_options, Share its_share, const int workers_wanted,
                 const int joiners_max, const bool is_shared, base::Topology& topology)
    : options(its_options),
      processors(std::move(its_share.processors)),
      reserved(its_share.reserved),
      shared(is_shared),
      oversubscribed(is_shared || workers_wanted > static_cast<int>(processors.size())),
      stacks(static_cast<std::size_t>(its_options.STACK_SIZE)),
      parking(workers_wanted + joiners_max),
      workers(workers_wanted + joiners_max) {
  time.start();
  const double ticks_per_us = ticks_per_microsecond();
  poll_gap = static_cast<std::uint64_t>(10 * ticks_per_us);
  poll_cost_min = static_cast<std::uint64_t>(0.05 * ticks_per_us);
  spin_ticks = static_cast<std::uint64_t>(static_cast<double>(options.SPIN_US) * ticks_per_us);
  patience = static_cast<std::uint64_t>(2 * ticks_per_us);
  displaced = static_cast<std::uint64_t>(40 * ticks_per_us);
  brief = static_cast<std::uint64_t>(0.5 * ticks_per_us);
  for (int id = 0; id < workers_wanted; ++id) {
    Worker& worker = workers.add(std::make_unique<Worker>(*this, id));
    worker.recorder.enable(options.SUMMARY || life().want_times, !options.TRACE.empty(),
                           static_cast<std::uint32_t>(id));
  }
  const base::Neighbours near = places(topology, processors, workers_wanted);
  groups.begin(options.POLICY, {.workers = workers_wanted,
                                .nearest = near.nearest,
                                .domain = near.domain,
                                .wake = &wake_worker,
                                .wake_context = this});
  Group& everyone = groups.everyone();
  lineage.use(everyone.policy->flow(),
              [](void* its_groups, Task& task, const int priority) {
                static_cast<Groups*>(its_groups)->of(task.group).policy->raise(task, priority);
              },
              &groups);
  if (!options.TRACE.empty()) lineage.tell(&observe::rise);
  for (const auto& worker : workers) {
    worker->home = {&everyone, worker->id, nullptr};
    worker->serve(worker->home);
    if (lineage.flow().learns) worker->recorder.watch();
  }
  one_at_a_time = everyone.policy->takes_all();
  std::fegetenv(&floating_point);
}

Runtime::~Runtime() {
  for (const auto& worker : workers) {
    while (worker->spares != nullptr) {
      fiber::Fiber& spare = *worker->spares;
      worker->spares = spare.next;
      stacks.give(fiber::destroy_fiber(spare));
    }
  }
}

Worker::Worker(Runtime& its_runtime, const int its_id)
    : tasks(its_runtime.task_slots), small(its_runtime.small_slots), runtime(&its_runtime),
      id(its_id),
      window(its_runtime.options.WINDOW == 0
                 ? UINT32_MAX
                 : static_cast<std::uint32_t>(its_runtime.options.WINDOW)),
      enough_most(window == UINT32_MAX || !its_runtime.options.TRACE.empty() ? INT64_MAX : window),
      ties_all(!its_runtime.options.UNTIED) {}

namespace {

// A busy worker may give the 50th part of its time to polls that find nothing. Their cost is the
// least of late: a poll that took longer has moved data, which is no overhead. It rises slowly, so
// that it follows what is outstanding. Racing workers may undo each other's step: the next one
// makes it again.
void judge_poll(Runtime& runtime, const std::uint64_t spent) noexcept {
  constexpr std::uint64_t share = 50;
  const std::uint64_t cost = runtime.poll_gap.load(std::memory_order_relaxed) / share;
  const std::uint64_t now = std::max(std::min(spent, cost + cost / 16 + 1), runtime.poll_cost_min);
  if (now != cost) runtime.poll_gap.store(now * share, std::memory_order_relaxed);
}

}  // namespace

[[gnu::noinline]] int poll(Worker& worker, const bool often) noexcept {
  Runtime& runtime = *worker.runtime;
  if (runtime.pollers.load(std::memory_order_relaxed) == nullptr) return nothing_to_poll;
  const std::uint64_t before = worker.recorder.polls.get();
  const bool judged = !often || before % 16 == 0;
  const std::uint64_t begin = judged ? base::ticks() : 0;
  int completed = 0;
  {
    const InPoller guard(worker);
    for (detail::Poller* poller = runtime.pollers.load(std::memory_order_acquire);
         poller != nullptr; poller = poller->next) {
      if (polling_of(*poller) == Polling::none) continue;
      worker.recorder.polls.add(1);
      completed += poller->poll(poller->context);
    }
  }
  if (worker.recorder.polls.get() == before) return nothing_to_poll;
  if (judged && completed == 0) judge_poll(runtime, base::ticks() - begin);
  return completed;
}

bool Runtime::outstanding(Worker& reader) const noexcept {
  if (pollers.load(std::memory_order_relaxed) == nullptr) return false;
  const InPoller guard(reader);
  for (const detail::Poller* poller = pollers.load(std::memory_order_acquire); poller != nullptr;
       poller = poller->next) {
    if (poller->outstanding->load(std::memory_order_relaxed) != 0) return true;
  }
  return false;
}

Polling Runtime::polling(Worker& reader) const noexcept {
  Polling most = Polling::none;
  if (pollers.load(std::memory_order_relaxed) == nullptr) return most;
  const InPoller guard(reader);
  for (const detail::Poller* poller = pollers.load(std::memory_order_acquire); poller != nullptr;
       poller = poller->next) {
    most = std::max(most, polling_of(*poller));
  }
  return most;
}

Polling Runtime::ring(Worker& reader) const noexcept {
  Polling most = Polling::none;
  if (pollers.load(std::memory_order_relaxed) == nullptr) return most;
  const InPoller guard(reader);
  for (const detail::Poller* poller = pollers.load(std::memory_order_acquire); poller != nullptr;
       poller = poller->next) {
    if (poller->ring != nullptr && poller->outstanding->load(std::memory_order_relaxed) != 0) {
      poller->ring(poller->context);
    }
    most = std::max(most, polling_of(*poller));
  }
  return most;
}

std::uint64_t Runtime::begun() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& worker : workers) {
    sum += worker->recorder.tasks.get() + worker->recorder.suspensions.get();
  }
  return sum;
}

}  // namespace imbrex::sched

namespace imbrex::detail {

using sched::Worker;

std::string text_option(const char* const name) {
  return std::get<std::string>(base::option_value(base::read_options(), name));
}

std::int64_t number_option(const char* const name) {
  const base::OptionValue value = base::option_value(base::read_options(), name);
  if (const bool* const on = std::get_if<bool>(&value)) return *on ? 1 : 0;
  return std::get<std::int64_t>(value);
}

void set_place(const Place& place) { sched::life().place = place; }

void set_rank(const int rank, const int ranks) {
  sched::life().rank = rank;
  sched::life().ranks = ranks;
}

void start() {
  sched::Life& now = sched::life();
  const std::lock_guard guard(now.lock);
  if (now.ended) {
    throw Error("imbrex: used after the end of the program has begun, or in a child of fork: "
                "spawn and wait before main returns");
  }
  if (now.runtime.load(std::memory_order_acquire) == nullptr) sched::start({});
}

void want_times() { sched::life().want_times = true; }

void expect_joiners(const int most, const std::size_t stack_bytes) {
  sched::life().joiners_max = most;
  sched::life().stack_bytes = stack_bytes;
  sched::life().processors = base::affinity_mask();
}

void join_runtime() {
  Worker* const present = sched::current_worker();
  if (present != nullptr && present->runtime != nullptr && !present->foreign()) return;
  if (sched::runtime() == nullptr) start();  // perhaps another thread does
  sched::Runtime* const runtime = sched::runtime();
  const Worker* const started = sched::current_worker();
  if (started != present && started != nullptr) return;  // as worker 0
  if (present != nullptr) {
    sched::at_thread_exit(nullptr, nullptr);
    sched::detach(present);
  }
  Worker& worker = sched::join(*runtime);
  sched::adopt_thread(worker, "thread");
  sched::at_thread_exit(&worker, &sched::detach);
  sched::alternate_stack();
}

bool started() noexcept { return sched::runtime() != nullptr; }

namespace {

// REQUIRES: pollers_lock.
void set_pollers(sched::Runtime& runtime, Poller* const first) {
  bool in_place = true;
  for (const Poller* poller = first; poller != nullptr; poller = poller->next) {
    in_place = in_place && poller->by_workers;
  }
  runtime.in_place.store(in_place, std::memory_order_relaxed);
  runtime.pollers.store(first, std::memory_order_release);
}

}  // namespace

void add_poller(Poller& poller) {
  sched::Runtime& runtime = *sched::here().runtime;
  const std::lock_guard guard(runtime.pollers_lock);
  poller.next = runtime.pollers.load(std::memory_order_relaxed);
  set_pollers(runtime, &poller);
}

void wake_poller() noexcept {
  sched::Runtime* const runtime = sched::runtime();
  if (runtime == nullptr) return;
  runtime->ring(sched::here());
  wake_worker();
}

void wake_worker() noexcept {
  sched::Runtime* const runtime = sched::runtime();
  if (runtime != nullptr && !runtime->watched.load(std::memory_order_relaxed)) {
    runtime->parking.wake_one();
  }
}

void remove_poller(Poller& poller) {
  sched::Runtime* const runtime = sched::runtime();
  if (runtime == nullptr) return;
  {
    const std::lock_guard guard(runtime->pollers_lock);
    Poller* first = runtime->pollers.load(std::memory_order_relaxed);
    for (Poller** link = &first; *link != nullptr; link = &(*link)->next) {
      if (*link == &poller) {
        *link = poller.next;
        break;
      }
    }
    set_pollers(*runtime, first);
  }
  base::heavy_fence();  // pairs with poll(): who came before is seen, who comes later does not see
  const auto wait_for = [](const Worker& worker) {
    while (worker.in_poller.load(std::memory_order_acquire)) std::this_thread::yield();
  };
  for (const auto& worker : runtime->workers) wait_for(*worker);
  const std::lock_guard guard(runtime->foreign_lock);  // they only ring: it takes no time
  for (const Worker* const worker : runtime->foreign) wait_for(*worker);
}

WorkerPolls worker_polls() noexcept {
  const sched::Runtime* const runtime = sched::runtime();
  if (runtime == nullptr) return {};
  const auto us_of = [](const std::uint64_t ticks) {
    return static_cast<std::uint64_t>(static_cast<double>(ticks) / sched::ticks_per_microsecond());
  };
  const std::uint64_t last = runtime->last_poll.load(std::memory_order_relaxed);
  const std::uint64_t now = base::ticks();
  return {.age_us = now <= last ? 0 : us_of(now - last),
          .apart_us = us_of(runtime->polls_apart.load(std::memory_order_relaxed))};
}

bool worker_idles() noexcept {
  const sched::Runtime* const runtime = sched::runtime();
  return runtime != nullptr && runtime->parking.asleep() != 0;
}

int reserved_processor() noexcept {
  const sched::Runtime* const runtime = sched::runtime();
  return runtime == nullptr ? -1 : runtime->reserved;
}

Totals totals() noexcept {
  sched::Runtime* const runtime = sched::runtime();
  Totals sum{};
  if (runtime == nullptr) return sum;
  runtime->time.stop();
  sum.elapsed_s = static_cast<double>(runtime->time.end_ns() - runtime->time.start_ns()) * 1e-9;
  sum.workers = static_cast<double>(runtime->workers.size());
  for (const auto& worker : runtime->workers) {
    const trace::Recorder& recorder = worker->recorder;
    using trace::Activity;
    sum.in_task_s += runtime->time.seconds(recorder.ticks_in(Activity::task));
    sum.idle_s += runtime->time.seconds(recorder.ticks_in(Activity::idle));
    sum.overhead_s += runtime->time.seconds(recorder.ticks_in(Activity::overhead));
    sum.tasks += static_cast<double>(recorder.tasks.get());
    sum.steals += static_cast<double>(recorder.steals.get());
    sum.suspensions += static_cast<double>(recorder.suspensions.get());
    sum.polls += static_cast<double>(recorder.polls.get());
  }
  return sum;
}

bool summary_wanted() noexcept {
  const sched::Runtime* const runtime = sched::runtime();
  return runtime != nullptr && runtime->options.SUMMARY;
}

void print_summary(const std::span<const Totals> ranks) {
  sched::life().summary_printed = true;
  if (ranks.empty()) return;  // another rank prints
  std::string text = fmt::format(
      "imbrex: {:>5} {:>7} {:>9} {:>10} {:>9} {:>11} {:>9} {:>9} {:>11} {:>10}\n", "rank",
      "workers", "elapsed s", "in task s", "idle s", "overhead s", "tasks", "steals",
      "suspensions", "polls");
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const Totals& row = ranks[rank];
    text += fmt::format(
        "imbrex: {:>5} {:>7.0f} {:>9.3f} {:>10.3f} {:>9.3f} {:>11.3f} {:>9.0f} {:>9.0f} {:>11.0f} "
        "{:>10.0f}\n",
        rank, row.workers, row.elapsed_s, row.in_task_s, row.idle_s, row.overhead_s, row.tasks,
        row.steals, row.suspensions, row.polls);
  }
  fmt::print(stderr, "{}", text);
}

}  // namespace imbrex::detail

namespace imbrex {

Runtime::Runtime(const Config& config) {
  sched::Life& now = sched::life();
  const std::lock_guard guard(now.lock);
  if (now.ended) throw Error("imbrex: Runtime made after the end of the program has begun");
  if (now.runtime.load(std::memory_order_acquire) != nullptr) {
    throw Error("imbrex: a runtime runs already: make the Runtime object before the first task");
  }
  sched::start(config);
}

Runtime::~Runtime() {
  detail::drain();
  sched::Life& now = sched::life();
  const std::lock_guard guard(now.lock);
  if (sched::Runtime* const runtime = sched::runtime()) sched::stop(*runtime);
}

int worker_count() noexcept {
  const sched::Runtime* const runtime = sched::runtime();
  return runtime == nullptr ? 0 : static_cast<int>(runtime->workers.size());
}

Statistics statistics() noexcept {
  Statistics result;
  sched::Runtime* const runtime = sched::runtime();
  if (runtime == nullptr) return result;
  for (const auto& worker : runtime->workers) {
    result.tasks += worker->recorder.tasks.get();
    result.steals += worker->recorder.steals.get();
    result.suspensions += worker->recorder.suspensions.get();
    result.polls += worker->recorder.polls.get();
  }
  runtime->task_slots.for_each([&result](std::byte* const slot) {
    const auto& task = *reinterpret_cast<const task::Task*>(slot);
    const task::State state = task.state.load(std::memory_order_acquire);
    if (state == task::State::free || task.root) return;
    ++result.live_tasks;
    if (state == task::State::suspended) ++result.suspended_tasks;
  });
  result.descriptor_bytes =
      runtime->task_slots.mapped_bytes() + runtime->small_slots.mapped_bytes();
  result.stack_count = runtime->stacks.mapped();
  return result;
}

}  // namespace imbrex
