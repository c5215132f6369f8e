// SPDX-License-Identifier: BSD-3-Clause
// The start of the runtime: the caller, the options, the processors.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "base/arch.hpp"
#include "base/check.hpp"
#include "base/job.hpp"
#include "base/options.hpp"
#include "base/threads/quota.hpp"
#include "base/topology.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/spare_workers.hpp"
#include "imbrex/error.hpp"
#include "sched/flight/shown.hpp"
#include "sched/life/life.hpp"
#include "sched/life/process.hpp"
#include "sched/life/stall.hpp"
#include "sched/life/visit.hpp"
#include "sched/policy/place_tree.hpp"
#include "sched/policy/shares.hpp"
#include "sched/policy/stealing.hpp"
#include "sched/run/dead.hpp"
#include "sched/run/loop/destructors.hpp"
#include "sched/run/loop/loop.hpp"
#include "sched/run/loop/waiting.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/polling.hpp"
#include "sched/trigger/progress_functions.hpp"

namespace imbrex::sched {

namespace {

// Checks a value given in the program against the range of the option's table.
void check_range(const char* const field, const std::int64_t value, const std::int64_t first,
                 const std::int64_t last) {
  if (value >= first && value <= last) return;
  throw Error(fmt::format("imbrex: RuntimeOptions::{} = {}: valid: {} to {}", field, value, first,
                          last));
}

base::Options merged(const RuntimeOptions& config) {
  base::Options options = base::read_options();
  check_range("workers", config.workers, 0, 4096);
  check_range("tasks_ahead", config.tasks_ahead, -1, 1'000'000'000);
  check_range("bind", config.bind, -1, 1);
  if (config.stack_bytes != 0) {
    check_range("stack_bytes", static_cast<std::int64_t>(config.stack_bytes), 16 << 10, 1 << 30);
  }
  if (config.workers != 0) options.WORKERS = config.workers;
  if (!config.policy.empty()) options.POLICY = config.policy;
  if (!config.places.empty()) options.PLACES = config.places;
  if (life().stack_bytes != 0 && std::getenv("IMBREX_STACK_SIZE") == nullptr) {
    options.STACK_SIZE = static_cast<std::int64_t>(life().stack_bytes);
  }
  if (config.stack_bytes != 0) options.STACK_SIZE = static_cast<std::int64_t>(config.stack_bytes);
  if (config.tasks_ahead >= 0) options.TASKS_AHEAD = config.tasks_ahead;
  if (config.bind >= 0) options.BIND = config.bind != 0;
  return options;
}

// This process's share of the processors of its node, sorted.
Share share_of(const detail::Place& place, const SortProcessors& sort) {
  const std::vector<std::vector<int>> all = divide_processors(
      place.allowed.empty() ? std::vector{detail::allowed_processors()} : place.allowed, sort);
  Share share{all[place.index]};
  for (std::size_t other = 0; other < all.size(); ++other) {
    share.with_others |=
        other != place.index &&
        std::ranges::find_first_of(all[other], share.processors) != all[other].end();
  }
  if (place.reserve && share.processors.size() > 1) {
    share.reserved = share.processors.back();
    share.processors.pop_back();
  }
  return share;
}

void wake_worker(void* const context, const int worker) {
  static_cast<RuntimeState*>(context)->parking.wake(worker);
}

// The processor of each worker if they are bound; else a processor that it may use. Spare workers
// come last.
std::vector<int> processors_of(const std::vector<int>& processors, const int workers,
                               const Lending* const lending) {
  std::vector<int> where;
  for (int worker = 0; worker < workers; ++worker) {
    where.push_back(processors[static_cast<std::size_t>(worker) % processors.size()]);
  }
  if (lending != nullptr) {
    where.insert(where.end(), lending->others().begin(), lending->others().end());
  }
  return where;
}

}  // namespace

Life& life() noexcept {
  static Life* const never_destroyed = new Life;  // foreign threads may outlive static objects
  return *never_destroyed;
}

namespace {

// The settings that start() needs before it makes a RuntimeState.
struct Plan {
  base::Options options;
  Share share;
  int workers = 0;
};

double quota() {
  static const double processors = base::processor_quota("");
  return processors;
}

// The workers that a CPU quota leaves to this process: the ranks of a node divide the quota.
int granted_workers(const detail::Place& place) {
  const auto ranks = static_cast<int>(std::max<std::size_t>(place.allowed.size(), 1));
  const int mine =
      base::part_of(detail::threads_by_quota(), static_cast<int>(place.index), ranks);
  return place.reserve && mine > 1 ? mine - 1 : mine;
}

Plan plan(const RuntimeOptions& config, base::Topology& topology) {
  const Life& now = life();
  Plan it{.options = merged(config), .share = {}, .workers = 0};
  base::Options& options = it.options;
  if (options.HELP && base::job_rank() == 0 && !now.forked.is_child) {
    detail::print("imbrex: options:\n" + base::options_help());
  }
  refuse_second_copy();
  // The files of the parent are the parent's.
  if (!options.TRACE.empty() && now.forked.is_child) {
    options.TRACE += fmt::format("/process-{}", getpid());
  }
  if (!options.TRACE.empty() && !trace::prepare_directory(options.TRACE)) options.TRACE.clear();
  const bool joined = now.joiners_max != 0;
  it.share = share_of(now.place, [&](std::vector<int>& processors) {
    if (!joined || options.WORKERS != 0) topology.sort(processors);  // a joiner has its own place
  });
  it.workers = static_cast<int>(options.WORKERS != 0 ? options.WORKERS
                                : joined             ? 1
                                                     : std::ssize(it.share.processors));
  const int granted = granted_workers(now.place);
  if (options.WORKERS == 0 && granted < it.workers) {
    life().quota_text = fmt::format(
        "a CPU quota of {:g} processors limits this process to {} of {} workers; IMBREX_WORKERS "
        "sets their number", quota(), granted, it.workers);
    it.workers = granted;
    // Other groups of the machine have the same mask, and would bind to the same processors.
    options.BIND = false;
  }
  if (it.workers < std::ssize(it.share.processors)) {
    topology.spread(it.share.processors, static_cast<std::size_t>(it.workers));
  }
  return it;
}

// ---- processors that ranks lend to each other --------------------------------------------------

// Why this process lends no processors; empty if it can.
std::string why_not_lend(const Plan& it) {
  if (life().forked.is_child) return "the processors belong to the parent of this process";
  if (it.options.POLICY.starts_with("seeded")) {
    return "IMBREX_POLICY=seeded runs one worker at a time";
  }
  if (it.share.with_others || it.workers > std::ssize(it.share.processors)) {
    return "the node has fewer processors than workers; IMBREX_WORKERS sets their number";
  }
  return {};
}

// All processors that the system lets this process use, whatever its threads are bound to.
std::vector<int> processors_of_machine() {
  cpu_set_t mask;
  std::thread([&mask] {
    std::memset(&mask, 0xff, sizeof mask);
    (void)sched_setaffinity(0, sizeof mask, &mask);
    mask = base::affinity_mask();
  }).join();
  return base::processors_in(mask);
}

// The processors of the workers of other ranks, if all ranks have as many workers.
std::vector<int> processors_of_others(const Plan& it, base::Topology& topology) {
  const detail::Place& place = life().place;
  std::vector<int> found;
  if (place.allowed.empty()) {
    for (const int processor : processors_of_machine()) {
      if (std::ranges::find(it.share.processors, processor) == it.share.processors.end()) {
        found.push_back(processor);
      }
    }
    return found;
  }
  detail::Place other = place;
  for (other.index = 0; other.index < place.allowed.size(); ++other.index) {
    if (other.index == place.index) continue;
    Share share = share_of(other, [&](std::vector<int>& processors) { topology.sort(processors); });
    const auto workers = static_cast<std::size_t>(it.workers);
    if (workers < share.processors.size()) {
      topology.spread(share.processors, workers);
      share.processors.resize(workers);
    }
    found.insert(found.end(), share.processors.begin(), share.processors.end());
  }
  return found;
}

// Null, after a line that says why, if this process lends and borrows nothing.
std::unique_ptr<Lending> try_to_lend(const Plan& it, base::Topology& topology) {
  const Life& now = life();
  if (now.place.allowed.size() == 1) return nullptr;  // no other rank on the node
  std::string why = why_not_lend(it);
  try {
    // Threads of an OpenMP team do not borrow, and each of them has a processor.
    const bool joined = now.joiners_max != 0;
    Lending::Setup setup{.job = base::job_name(),
                         .own = it.share.processors,
                         .others = joined ? std::vector<int>{}
                                          : processors_of_others(it, topology),
                         .spin_ns = 1000 * static_cast<std::uint64_t>(it.options.SPIN_US)};
    if (!joined) setup.own.resize(static_cast<std::size_t>(it.workers));
    if (why.empty()) return std::make_unique<Lending>(std::move(setup));
  } catch (const Error& problem) {
    why = problem.what();
  }
  if (now.place.index == 0) {
    base::report(fmt::format("IMBREX_LEND: no processors are lent: {}", why));
  }
  return nullptr;
}

void start_thread(Worker& worker, const int processor) {
  worker.thread = std::thread([&worker, processor] {
    // The main thread is not bound: threads that the program makes later inherit its mask.
    if (processor >= 0) base::bind_thread(processor);
    alternate_stack();
    thread_main(worker);
  });
}

// Starts the threads of all workers but worker 0, if main is that one.
void start_threads(RuntimeState& runtime) {
  const bool bind =
      runtime.options.BIND && !runtime.oversubscribed.load(std::memory_order_relaxed);
  const auto own = static_cast<int>(runtime.workers.size()) - runtime.spare_workers;
  const std::vector<int> where = processors_of(runtime.processors, own, runtime.lending.get());
  for (const auto& worker : runtime.workers) {
    keep_first_stack(*worker);
    if (worker->root != nullptr) continue;
    start_thread(*worker, bind ? where[static_cast<std::size_t>(worker->id)] : -1);
  }
}

// Makes workers call RuntimeState::polling_between_tasks() to its end, with MPI and without.
void look_between_tasks(RuntimeState& runtime) {
  static constexpr std::atomic<int> nothing{0};
  static detail::Poller poller;
  poller = {.poll = [](void*) noexcept { return 0; }, .context = nullptr, .outstanding = &nothing};
  add_poller(runtime, poller);
}

void adopt_main(Worker& worker) {
  adopt_thread(worker, "main");
  at_main_exit(&main_ends);
  notice_pthread_exit();
  if (!worker.recorder.tracing()) return;
  worker.recorder.record(trace::Kind::task_begin, worker.root->id,
                         trace::intern("main", nullptr), 0, 0);
}

// Undoes the start completely.
void take_back(RuntimeState& runtime) {
  for (std::thread& thread : stop_threads(runtime)) thread.join();  // no worker has run a task
  if (Task* const root = runtime.workers[0]->root) reuse(*runtime.workers[0], *root);
  set_current_worker(nullptr);
}

// The start needs more of the calling thread's stack than all later calls, because libraries
// examine the machine. The remaining stack may be too small for a long message, too.
void require_stack() {
  constexpr std::size_t bytes_min = 24 * 1024;
  fiber::Fiber here;
  adopt_stack(here);
  if (fiber::bytes_left(here) >= bytes_min) return;
  throw Error("imbrex: the stack of the thread that starts the runtime is too small: raise its "
              "limit (ulimit -s) to 64 KiB at least, and the stack size of that thread, if the "
              "program sets it");
}

// Ends the process if an option of the environment is malformed, unless MPI_Init starts the
// runtime, which reports the errors of all ranks together. Throws Error for an error of the
// program.
std::unique_ptr<RuntimeState> make_state(const RuntimeOptions& config, Plan& its_plan) {
  const bool of_program = !config.places.empty() || !config.policy.empty();
  bool may_be_refused = false;
  try {
    base::Topology topology;
    its_plan = plan(config, topology);
    may_be_refused = !of_program;  // places and policy are parsed now
    auto lending = its_plan.options.LEND ? try_to_lend(its_plan, topology) : nullptr;
    return std::make_unique<RuntimeState>(its_plan.options, its_plan.share, its_plan.workers,
                                          life().joiners_max, topology, std::move(lending));
  } catch (const base::OptionError& refused) {
    if (life().start_throws) throw;
    base::end_by_option(refused);
  } catch (const Error& refused) {
    if (life().start_throws || !may_be_refused) throw;
    base::end_by_option(refused);
  }
}

// In the file of the flight recorder: MPI_Init may come before or after the runtime.
void show_rank() noexcept {
  flight::Head* const head = flight::head();
  const int ranks = life().ranks.load(std::memory_order_relaxed);
  if (head == nullptr || life().world == 0) return;
  head->rank.store(static_cast<std::uint64_t>(life().rank), std::memory_order_relaxed);
  head->ranks.store(static_cast<std::uint64_t>(ranks), std::memory_order_relaxed);
  head->world.store(life().world, std::memory_order_relaxed);
}

void start(const RuntimeOptions& config) IMBREX_REQUIRES(life().lock) {
  require_stack();
  Life& now = life();
  Plan it;
  auto runtime = make_state(config, it);
  begin_flight(*runtime);
  show_rank();
  const std::size_t stack_bytes = static_cast<std::size_t>(it.options.STACK_SIZE);
  now.process.store(getpid(), std::memory_order_relaxed);
  if (!prepare_thread_exits()) {
    throw Error(fmt::format("imbrex: the process has used all {} keys of pthread_key_create(), and "
                            "imbrex needs one: let the program or its libraries create fewer",
                            PTHREAD_KEYS_MAX));
  }
  hook_once();
  catch_overflow();
  if (!it.options.TRACE.empty()) keep_trace();
  if (is_main_thread()) adopt_main(*runtime->workers[0]);
  try {
    start_threads(*runtime);
  } catch (const std::system_error& error) {
    take_back(*runtime);
    throw Error(fmt::format(
        "imbrex: the system gives no thread for {} workers ({}): raise its limit (ulimit -u, or "
        "pids.max of the control group), or set IMBREX_WORKERS lower",
        it.workers, error.code().message()));
  } catch (const std::bad_alloc&) {
    take_back(*runtime);
    throw Error(fmt::format(
        "imbrex: no memory for the stacks of {} workers: raise the limit of address space (ulimit "
        "-v), or set IMBREX_WORKERS lower, or IMBREX_STACK_SIZE, which is {} KiB",
        it.workers, stack_bytes / 1024));
  }
  if (runtime->lending != nullptr) look_between_tasks(*runtime);
  warn_of_plain_mpi(*runtime);
  life().blocked_watch.begin(*runtime);
  now.config = config;
  now.runtime.store(runtime.release(), std::memory_order_release);
}

}  // namespace

bool is_main_thread() noexcept { return base::kernel_thread_id() == getpid(); }

bool has_ended() noexcept {
  const Ended ended = life().ended;
  return ended == Ended::for_all || (ended != Ended::no && !has_left_loop());
}

void start_if_none() {
  if (has_ended()) {
    throw Error("imbrex: a call of imbrex after the end of the program has begun: spawn and wait "
                "before main returns");
  }
  if (runtime() != nullptr) return;
  // The program has given its parent's runtime these settings, so its own gets them, too.
  start(life().forked.is_child ? std::exchange(life().config, {}) : RuntimeOptions{});
}

RuntimeState* runtime() noexcept { return life().runtime.load(std::memory_order_acquire); }
std::mutex& end_lock() noexcept { return life().end_lock; }

static int spares_of(const Lending* const lending) noexcept {
  return lending == nullptr ? 0 : static_cast<int>(lending->others().size());
}

// Converts microseconds to ticks; at least one tick for a value above 0, because some code divides
// by it.
static std::uint64_t ticks_of(const double us) noexcept {
  const double ticks = us * base::ticks_per_microsecond();
  return ticks > 0 && ticks < 1 ? 1 : static_cast<std::uint64_t>(ticks);
}

RuntimeState::RuntimeState(const base::Options& its_options, Share its_share,
                           const int workers_wanted, const int joiners_max,
                           base::Topology& topology, std::unique_ptr<Lending> its_lending)
    : options(its_options),
      number(++life().runtimes),
      processors(std::move(its_share.processors)),
      reserved(its_share.reserved),
      shared(its_share.with_others),
      oversubscribed(shared || workers_wanted > static_cast<int>(processors.size())),
      stacks(static_cast<std::size_t>(its_options.STACK_SIZE)),
      parking(workers_wanted + spares_of(its_lending.get()) + joiners_max),
      lending(std::move(its_lending)),
      workers(workers_wanted + spares_of(lending.get()) + joiners_max),
      spare_workers(spares_of(lending.get())),
      triggers(std::make_unique<Triggers>(*this)),
      above{.run_where_spawned = &run_where_spawned,
            .before_sleep = &look_for_plain_mpi,
            .nothing_to_do = &watch_for_stall},
      dead(&run_destructors) {
  time.start();
  poll_gap = ticks_of(10);
  poll_cost_min = ticks_of(0.05);
  spin_ticks = ticks_of(static_cast<double>(options.SPIN_US));
  naps = {.us = ticks_of(1), .most_us = static_cast<std::uint64_t>(options.NAP_US)};
  patience = ticks_of(2);
  displaced = ticks_of(40);
  brief = ticks_of(0.5);
  // The recorders read it.
  trace::happens_before::kept.store(options.CHECK, std::memory_order_relaxed);
  if (options.CHECK) trace::happens_before::forget();
  const std::vector<int> its_processors = processors_of(processors, workers_wanted, lending.get());
  const auto all_workers = static_cast<int>(its_processors.size());
  for (int id = 0; id < all_workers; ++id) {
    parking.open(id);
    Worker& worker = workers.add(std::make_unique<Worker>(*this, id));
    if (lending != nullptr) {
      worker.seat = {.processor = its_processors[static_cast<std::size_t>(id)],
                     .spare = id >= workers_wanted};
    }
    worker.recorder.enable(options.SUMMARY || life().want_times, !options.TRACE.empty(),
                           static_cast<std::uint32_t>(id));
  }
  detail::records_waits.store(!options.TRACE.empty() || options.CHECK, std::memory_order_relaxed);
  const std::vector<int> where = topology.described(its_processors);
  base::Neighbours near = topology.neighbours(where);
  PolicySetup setup{.workers = all_workers,
                    .nearest = std::move(near.nearest),
                    .domain = std::move(near.domain),
                    .wake = &wake_worker,
                    .wake_context = this};
  const auto own = static_cast<std::size_t>(workers_wanted);
  Division division =
      divide(options.PLACES, {where.begin(), where.begin() + workers_wanted}, topology);
  if (all_workers > workers_wanted) {
    add_spare_workers(division, options.PLACES, where, own, topology);
  }
  if (division.tree) keep_near(setup, division.places);
  groups.begin(options.POLICY, setup, std::move(division));
  Group& everyone = groups.everyone();
  lineage.use(everyone.policy->flow(),
              [](void* its_groups, Task& task, const int priority) {
                static_cast<Groups*>(its_groups)->of(task.group).policy->raise(task, priority);
              },
              &groups);
  if (!options.TRACE.empty()) lineage.tell(&notes::rise);
  for (const auto& worker : workers) {
    worker->home = {&everyone, worker->id, nullptr};
    worker->serve(worker->home);
    if (lineage.flow().learns) worker->recorder.watch();
  }
  one_at_a_time = everyone.policy->takes_all();
  if (!one_at_a_time) prepare_places();
  std::fegetenv(&floating_point);
}

// Each worker looks in the order of the places.
void RuntimeState::prepare_places() noexcept {
  for (int place = groups.place_count() - 1; place >= 0; --place) {
    Group& group = groups.place(place);
    for (int index = 0; index < group.size; ++index) {
      const auto member = static_cast<std::size_t>(index);
      Worker& worker = *workers[static_cast<std::size_t>(group.workers[member])];
      group.memberships[member].outer = worker.places;
      worker.places = &group.memberships[member];
    }
  }
}

// A worker writes to its chain only at a group that has another one behind it, so not at the end. A
// thread that queues a task does so after this; a worker that must see the task before it sleeps
// (parking.hpp) therefore sees the link, too.
void RuntimeState::use_places() noexcept {
  if (places_used_.load(std::memory_order_acquire)) return;
  const std::lock_guard guard(places_lock_);
  if (places_used_.load(std::memory_order_relaxed)) return;
  for (const auto& worker : workers) {
    if (worker->places != nullptr) worker->home.outer = worker->places;
  }
  places_used_.store(true, std::memory_order_release);
}

RuntimeState::~RuntimeState() {
  for (const auto& worker : workers) {
    while (worker->spares != nullptr) {
      fiber::Fiber& spare = *worker->spares;
      worker->spares = spare.next;
      stacks.give(fiber::destroy_fiber(spare));
    }
  }
}

Worker::Worker(RuntimeState& its_runtime, const int its_id)
    : tasks(its_runtime.task_slots), small(its_runtime.small_slots), runtime(&its_runtime),
      id(its_id),
      window(its_runtime.options.TASKS_AHEAD == 0
                 ? UINT32_MAX
                 : static_cast<std::uint32_t>(its_runtime.options.TASKS_AHEAD)),
      enough_most(window == UINT32_MAX || !its_runtime.options.TRACE.empty() ? INT64_MAX : window),
      ties_all(!its_runtime.options.UNTIED) {}

}  // namespace imbrex::sched

namespace imbrex::detail {

std::string text_option(const char* const name) {
  return std::get<std::string>(base::option_value(base::read_options(), name));
}

int threads_by_quota() {
  const double processors = sched::quota();
  return processors > 0 ? base::threads_for(processors) : INT_MAX;
}

std::int64_t number_option(const char* const name) {
  const base::OptionValue value = base::option_value(base::read_options(), name);
  if (const bool* const on = std::get_if<bool>(&value)) return *on ? 1 : 0;
  return std::get<std::int64_t>(value);
}

cpu_set_t allowed_processors() noexcept {
  const sched::Life& now = sched::life();
  return now.joiners_max != 0 ? now.processors : base::affinity_mask();
}

void set_place(Place place) { sched::life().place = std::move(place); }

void set_rank(const int rank, const int ranks, const std::uint64_t world) {
  sched::life().rank = rank;
  sched::life().ranks = ranks;
  sched::life().world = world;
  sched::show_rank();
}

void start_or_throw() {
  sched::life().start_throws = true;
  start();
}

void start() {
  if (sched::is_outside()) const sched::Visit visit(sched::Purpose::spawns);
}

void want_times() { sched::life().want_times = true; }

void expect_joiners(const int most, const std::size_t stack_bytes) {
  sched::life().joiners_max = most;
  sched::life().stack_bytes = stack_bytes;
  sched::life().processors = base::affinity_mask();
}

bool started() noexcept { return sched::runtime() != nullptr; }

int workers_with_spares() noexcept {
  const std::lock_guard guard(sched::end_lock());
  const sched::RuntimeState* const runtime = sched::runtime();
  return runtime == nullptr ? 0 : static_cast<int>(runtime->workers.size());
}

}  // namespace imbrex::detail

namespace imbrex {

Runtime::Runtime(const RuntimeOptions& config) {
  const std::lock_guard guard(sched::life().lock);
  if (sched::life().ended != sched::Ended::no) {
    throw Error("imbrex: a Runtime object is made after the end of the program has begun: make it "
                "before main returns");
  }
  if (sched::runtime() != nullptr) {
    throw Error("imbrex: a runtime runs already: make the Runtime object before the first task");
  }
  sched::start(config);
}

int worker_count() noexcept {
  const std::lock_guard guard(sched::end_lock());
  const sched::RuntimeState* const runtime = sched::runtime();
  if (runtime == nullptr) return 0;
  return static_cast<int>(runtime->workers.size()) - runtime->spare_workers;
}

}  // namespace imbrex
