// SPDX-License-Identifier: BSD-3-Clause
// Rebuilds the tasks of a rank and their steps. A task computes from its begin to its end, less the
// time of tasks that ran inside, of its suspensions, and of idle time.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "imbrex/error.hpp"
#include "simulate/recorded/recorded_rank.hpp"
#include "task/access/accesses.hpp"

namespace imbrex::simulate {

namespace {

using detail::AccessKind;
using detail::AccessSpec;
using trace::Awaited;
using trace::Kind;

constexpr std::uint32_t no_worker = UINT32_MAX;
constexpr std::uint32_t nothing = 0;    // as a signal
constexpr Time within_a_call_ns = 5000;  // between two requests that one call has found complete
// Promises that the library sets in a poll, whatever task runs: a message that when_arrived() waits
// for, a whole collective. The part of a collective that is no message is set by a task.
constexpr std::string_view library_promises[] = {"arrived message", "collective",
                                                 "duplicate of a communicator"};
constexpr std::uint64_t collective_bytes_max = (std::uint64_t{1} << 40) - 1;

[[nodiscard]] int low(const std::uint64_t word) noexcept {
  return static_cast<int>(static_cast<std::uint32_t>(word));
}
[[nodiscard]] std::uint32_t high(const std::uint64_t word) noexcept {
  return static_cast<std::uint32_t>(word >> 32);
}

class Player {
 public:
  Player(const TraceHead& head, const Time creator_ns)
      : head_(head), creator_ns_(creator_ns), workers_(static_cast<std::size_t>(head.workers)) {}
  [[nodiscard]] RecordedRank play();

 private:
  struct Worker {
    std::vector<std::uint32_t> stack;  // tasks, the running one last
    std::uint32_t last = 0;            // task that has ended here last; 0: main
    std::uint64_t since = 0;           // ns
    bool is_idle = false;
  };
  // What is known of a task only while it is read.
  struct Live {
    Time computed = 0;                 // not yet in a step
    std::uint32_t scopes = 0;          // open ones
    std::uint64_t ended_at = 0;
    bool is_explained = false;         // the next suspension is that of its last step
  };
  struct Future {
    std::uint32_t signal = nothing;
    bool is_set = false;
    bool is_request = false;           // no step sets it, and its record of kind future_set is
                                       // that of the request
    bool is_joint = false;
    std::uint64_t joins_at = 0;        // position after the last record that gave it a part
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}: record {}: {}", head_.path, position_, what));
  }
  [[nodiscard]] const std::string& name(const std::uint64_t number) const {
    return head_.names[number];
  }

  void find_main(const std::vector<PlacedRecord>& records);
  void take(const Record& record);
  void take_outside(const Record& record);
  void take_of_library(const Record& record);
  void take_of_task(const Record& record, std::uint32_t task);
  void pass_time(const Record& record);

  // ---- tasks ----
  [[nodiscard]] std::uint32_t task_of(std::uint64_t id) const;
  [[nodiscard]] bool is_known(const std::uint64_t id) const { return numbers_.contains(id); }
  void create(const Record& record);
  [[nodiscard]] std::uint32_t creator_of(const Record& record) const;
  void add_access(const Record& record);
  void begin(const Record& record);
  void end(const Record& record);
  void suspend(const Record& record);
  void resume(const Record& record);
  TaskStep& add(std::uint32_t task, const TaskStep& step);

  // ---- what tasks wait for ----
  [[nodiscard]] std::uint32_t new_signal() noexcept { return ++rank_.signals; }
  [[nodiscard]] std::uint32_t signal_of(Awaited what, std::uint64_t number);
  [[nodiscard]] std::uint32_t signal_of_future(std::uint64_t number);
  void await(std::uint32_t task, std::uint32_t signal);
  void set_future(const Record& record);
  void join(const Record& record);
  void resolve_any();

  // ---- messages ----
  [[nodiscard]] RecordedOperation& add_operation(const Record& record, RecordedOperation::Kind kind,
                                                 std::uint32_t request);
  void send(const Record& record, std::uint32_t task);
  void pass_on(const Record& record);
  void give(const Record& record);
  void receive(const Record& record, std::uint32_t task);
  void begin_collective(const Record& record, std::uint32_t task);
  void end_request(const Record& record, std::uint32_t task);
  void finish();
  void check_kinds(const RecordedTask& task) const;

  const TraceHead& head_;
  const Time creator_ns_;
  RecordedRank rank_;
  std::vector<Worker> workers_;
  std::vector<Live> live_;
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;  // of tasks, by id
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> away_;  // suspended stacks, by the
                                                                        // innermost task
  std::unordered_map<std::uint32_t, std::uint32_t> requests_;  // to operations
  std::set<std::uint32_t> given_;                              // requests
  std::unordered_map<std::uint64_t, Future> futures_;
  std::unordered_map<std::uint32_t, std::uint64_t> set_at_;    // times, by signal
  std::vector<std::pair<std::size_t, std::vector<std::uint32_t>>> any_;  // part of the library, and
                                                                         // what it can follow
  std::set<std::uint32_t> unset_;                              // signals that no step sets yet
  std::vector<TaskStep> outside_;  // of no task: main's first ones
  std::unordered_map<std::uint64_t, std::uint32_t> received_;  // by worker: the signal of the last
                                                               // message of a request
  std::uint64_t position_ = 0;
  std::uint64_t main_id_ = 0;
  std::uint32_t last_created_ = 0;
};

RecordedRank Player::play() {
  const std::vector<PlacedRecord> records = read_records(head_);
  rank_.tasks.emplace_back().name = UINT32_MAX;  // main has none unless its begin is recorded
  live_.emplace_back();
  find_main(records);
  for (const PlacedRecord& placed : records) {
    position_ = placed.position;
    take(placed.record);
  }
  finish();
  return std::move(rank_);
}

// Whether the record says that a worker runs this task, or that this task creates another one.
[[nodiscard]] bool shows_a_task(const Kind kind) noexcept {
  return kind == Kind::task_begin || kind == Kind::task_suspend || kind == Kind::task_resume ||
         kind == Kind::task_create || kind == Kind::message_sent || kind == Kind::scope_begin ||
         kind == Kind::collective_begin || kind == Kind::future_awaited;
}

// Main is the one task that acts and was not created.
void Player::find_main(const std::vector<PlacedRecord>& records) {
  std::set<std::uint64_t> created;
  for (const PlacedRecord& placed : records) {
    if (placed.record.kind == Kind::task_create) created.insert(placed.record.task);
  }
  for (const PlacedRecord& placed : records) {
    const Record& record = placed.record;
    const std::uint64_t id = record.kind == Kind::task_create ? record.c : record.task;
    if (record.worker == no_worker || !shows_a_task(record.kind) || id == 0 ||
        created.contains(id)) {
      continue;
    }
    position_ = placed.position;
    if (main_id_ != 0 && id != main_id_) {
      fail(fmt::format("task {}, in a record of kind {}, was not created by a task: a program "
                       "whose threads have tasks of their own, or OpenMP's regions, cannot be "
                       "simulated",
                       id, static_cast<int>(record.kind)));
    }
    main_id_ = id;
  }
  numbers_[main_id_] = 0;
  rank_.tasks[0].has_begun = true;
  workers_[0].stack.push_back(0);
  if (!records.empty()) {
    for (Worker& worker : workers_) worker.since = records.front().record.time;
  }
}

void Player::take(const Record& record) {
  if (record.worker == no_worker) return take_outside(record);
  pass_time(record);
  switch (record.kind) {
    case Kind::task_begin: return begin(record);
    case Kind::task_end: return end(record);
    case Kind::task_suspend: return suspend(record);
    case Kind::task_resume: return resume(record);
    case Kind::idle_begin: workers_[record.worker].is_idle = true; return;
    case Kind::idle_end: workers_[record.worker].is_idle = false; return;
    case Kind::task_create: return create(record);
    case Kind::task_access: return add_access(record);
    case Kind::task_bound:
      rank_.tasks[task_of(record.task)].is_tied = record.b != 0;
      if (record.a != 0) ++rank_.left_out["the place of a task"];
      return;
    case Kind::future_set: return set_future(record);
    case Kind::future_joins: return join(record);
    case Kind::copy_sent:
    case Kind::copy_arrived:
      fail("a copy of a datum with an owner: a recorded run on data with owners cannot be "
           "simulated");
    default: break;
  }
  if (record.task == 0) return take_of_library(record);
  if (!is_known(record.task)) {
    if (shows_a_task(record.kind)) fail(fmt::format("task {} was not created", record.task));
    return;  // a poll of another thread of the library
  }
  take_of_task(record, task_of(record.task));
}

// A thread that is no worker may poll for the library, and so complete requests of tasks.
void Player::take_outside(const Record& record) {
  switch (record.kind) {
    case Kind::task_create:
      if (record.c == 0) return create(record);
      break;
    case Kind::message_received:
      if (requests_.contains(high(record.c))) return receive(record, 0);
      break;
    case Kind::request_ended:
      if (given_.contains(high(record.c))) end_request(record, 0);
      return;
    case Kind::future_set: return set_future(record);
    case Kind::request_given: return give(record);
    case Kind::message_sent:
      if (record.task == 0) return pass_on(record);
      break;
    default: return;
  }
  fail("a thread that is no worker creates a task or communicates: such a program cannot be "
       "simulated");
}

// What the library does for a call that a task has begun earlier.
void Player::take_of_library(const Record& record) {
  switch (record.kind) {
    case Kind::message_received:
      if (requests_.contains(high(record.c))) receive(record, 0);
      return;
    case Kind::message_sent: return pass_on(record);
    case Kind::request_given: return give(record);
    default: return;
  }
}

void Player::take_of_task(const Record& record, const std::uint32_t task) {
  switch (record.kind) {
    case Kind::message_sent: return send(record, task);
    case Kind::message_received: return receive(record, task);
    case Kind::access_released: {
      const RecordedTask& its = rank_.tasks[task];
      std::uint32_t bytes = 0;
      for (std::uint32_t i = 0; i + 1 < its.accesses; ++i) {
        const AccessSpec& access = rank_.accesses[its.first_access + i];
        const AccessSpec& next = rank_.accesses[its.first_access + i + 1];
        if (next.kind != AccessKind::range_end) continue;
        if (reinterpret_cast<std::uint64_t>(access.address) != record.a) continue;
        const auto end = reinterpret_cast<std::uint64_t>(next.address);
        bytes = static_cast<std::uint32_t>(end - record.a);
      }
      add(task, {Act::release, bytes, static_cast<std::int64_t>(record.a)});
      return;
    }
    case Kind::task_hold: {
      const std::uint32_t signal = signal_of(static_cast<Awaited>(record.c), record.b);
      if (record.c == 0) ++rank_.left_out["release_after() of an event"];
      if (signal != nothing && task != 0) add(task, {Act::hold, signal, 0});
      return;
    }
    case Kind::collective_begin:
    case Kind::collective_posted: return begin_collective(record, task);
    case Kind::future_awaited:
      return await(task, signal_of(static_cast<Awaited>(record.c), record.b));
    case Kind::receive_posted: {
      RecordedOperation& posted =
          add_operation(record, RecordedOperation::Kind::none, high(record.c));
      posted.peer = low(record.b);
      posted.tag = static_cast<int>(high(record.b));
      add(task, {Act::begin, static_cast<std::uint32_t>(rank_.operations.size() - 1), 0});
      return;
    }
    case Kind::request_awaited:
      if (record.b != 0) {
        ++rank_.left_out[fmt::format("{}: it waits for the requests that it found complete in the "
                                     "trace",
                                     name(record.a))];
      }
      live_[task].is_explained = true;
      return;
    case Kind::request_ended: return end_request(record, task);
    case Kind::request_given: return give(record);
    case Kind::scope_begin:
      ++live_[task].scopes;
      add(task, {Act::open_scope, 0, 0});
      return;
    case Kind::scope_end:
      if (live_[task].scopes == 0) fail("a finish() ends that has not begun");
      --live_[task].scopes;
      add(task, {Act::close_scope, 0, 0});
      live_[task].is_explained = true;
      return;
    case Kind::children_awaited:
      add(task, {Act::await_all, record.a != 0 ? 1u : 0u, 0});
      live_[task].is_explained = true;
      return;
    default: return;
  }
}

void Player::pass_time(const Record& record) {
  Worker& worker = workers_[record.worker];
  if (record.time > worker.since) {
    if (!worker.stack.empty() && !worker.is_idle) {
      live_[worker.stack.back()].computed += static_cast<Time>(record.time - worker.since);
    }
    worker.since = record.time;
  }
}

// ---- tasks -----------------------------------------------------------------------------------

std::uint32_t Player::task_of(const std::uint64_t id) const {
  const auto found = numbers_.find(id);
  if (found == numbers_.end()) fail(fmt::format("task {} was not created", id));
  return found->second;
}

// The step comes after what the task has computed.
TaskStep& Player::add(const std::uint32_t task, const TaskStep& step) {
  TaskSteps& steps = rank_.tasks[task].steps;
  Time& computed = live_[task].computed;
  live_[task].is_explained = false;
  if (step.act == Act::create) computed = std::max<Time>(computed - creator_ns_, 0);
  if (computed > 0) steps.push_back({Act::compute, 0, std::exchange(computed, 0)});
  return steps.emplace_back(step);
}

void Player::create(const Record& record) {
  const std::uint32_t parent = creator_of(record);
  const auto number = static_cast<std::uint32_t>(rank_.tasks.size());
  if (!numbers_.emplace(record.task, number).second) {
    fail(fmt::format("task {} is created twice", record.task));
  }
  rank_.tasks.push_back({.name = static_cast<std::uint32_t>(record.a),
                         .priority = low(record.b),
                         .first_access = rank_.accesses.size(),
                         .steps = {}});
  live_.emplace_back();
  last_created_ = number;
  const bool is_explained = live_[parent].is_explained;
  add(parent, {Act::create, number, 0});
  live_[parent].is_explained = is_explained && record.c == 0;
}

// A task that the library creates has no parent. The task that runs on the worker creates it here,
// or the one that has ended there last: such a task destroys what ended tasks leave behind.
std::uint32_t Player::creator_of(const Record& record) const {
  if (record.c != 0) return task_of(record.c);
  if (record.worker == no_worker) return 0;
  const Worker& worker = workers_[record.worker];
  return worker.stack.empty() ? worker.last : worker.stack.back();
}

void Player::add_access(const Record& record) {
  const std::uint32_t number = task_of(record.task);
  RecordedTask& task = rank_.tasks[number];
  if (number != last_created_ || task.has_begun) {
    fail("an access of a task that is not the last one created");
  }
  constexpr auto kind_max = static_cast<std::uint64_t>(AccessKind::everything);
  if (record.b > kind_max) fail(fmt::format("an access of the unknown kind {}", record.b));
  const auto kind = static_cast<AccessKind>(record.b);
  const auto address = reinterpret_cast<const void*>(static_cast<std::uintptr_t>(record.a));
  if (kind == AccessKind::after) {
    const bool of_task = record.a != 0;
    const std::uint32_t signal = of_task ? signal_of(Awaited::task, record.a)
                                         : signal_of(Awaited::future, record.c);
    if (signal == nothing) return;
    rank_.accesses.emplace_back(reinterpret_cast<const void*>(std::uintptr_t{signal}), kind);
  } else if (kind == AccessKind::everything) {
    rank_.accesses.emplace_back(nullptr, kind);
  } else if (address == nullptr) {
    fail("an access without an address");
  } else if (record.c == 0) {
    rank_.accesses.emplace_back(address, kind);
  } else {
    if (record.a + record.c < record.a) fail("a range that goes beyond the last address");
    rank_.accesses.emplace_back(address, kind, std::uint16_t{0});
    rank_.accesses.emplace_back(
        reinterpret_cast<const void*>(static_cast<std::uintptr_t>(record.a + record.c)),
        AccessKind::range_end);
    ++task.accesses;
  }
  ++task.accesses;
}

void Player::begin(const Record& record) {
  const std::uint32_t number = task_of(record.task);
  RecordedTask& task = rank_.tasks[number];
  if (number != 0) {
    if (task.has_begun) fail(fmt::format("task {} begins twice", record.task));
    workers_[record.worker].stack.push_back(number);
  }
  task.has_begun = true;
  task.name = static_cast<std::uint32_t>(record.a);  // what a compiler has made is known by now
}

void Player::end(const Record& record) {
  const std::uint32_t number = task_of(record.task);
  std::vector<std::uint32_t>& stack = workers_[record.worker].stack;
  if (stack.empty() || stack.back() != number) {
    fail(fmt::format("task {} ends, but was not running on worker {}", record.task,
                     record.worker));
  }
  if (number != 0) stack.pop_back();
  workers_[record.worker].last = number;
  rank_.tasks[number].has_ended = true;
  live_[number].ended_at = record.time;
}

void Player::suspend(const Record& record) {
  Worker& worker = workers_[record.worker];
  const std::uint32_t task = task_of(record.task);
  if (std::ranges::find(worker.stack, task) == worker.stack.end()) return;  // an inner task has
                                                                            // taken it along
  const bool is_message = record.c == static_cast<std::uint64_t>(Awaited::message);
  const std::string& what = name(record.a);
  const bool gives_way = what == "yield" || what == "end of the program";
  if (record.c == 0 && !live_[task].is_explained && !gives_way) ++rank_.left_out[what];
  if (is_message && what.find("robe") != std::string::npos) ++rank_.left_out[what];
  const std::uint32_t innermost = worker.stack.back();
  away_[innermost] = std::exchange(worker.stack, {});
}

void Player::resume(const Record& record) {
  Worker& worker = workers_[record.worker];
  const std::uint32_t task = task_of(record.task);
  if (std::ranges::find(worker.stack, task) != worker.stack.end()) return;
  auto stack = away_.extract(task);
  if (stack.empty()) {  // clocks differ a little: its suspension elsewhere comes later
    const auto elsewhere = std::ranges::find_if(workers_, [task](const Worker& other) {
      return !other.stack.empty() && other.stack.back() == task;
    });
    if (elsewhere == workers_.end()) {
      fail(fmt::format("task {} is resumed, but was not suspended", record.task));
    }
    away_[task] = std::exchange(elsewhere->stack, {});
    stack = away_.extract(task);
  }
  worker.stack.insert(worker.stack.end(), stack.mapped().begin(), stack.mapped().end());
}

// ---- what tasks wait for -----------------------------------------------------------------------

// `nothing` if the trace does not tell, or if nobody needs to wait.
std::uint32_t Player::signal_of(const Awaited what, const std::uint64_t number) {
  if (what == Awaited::future) return signal_of_future(number);
  if (what != Awaited::task || !is_known(number)) return nothing;
  RecordedTask& task = rank_.tasks[task_of(number)];
  if (task.signal == nothing) task.signal = new_signal();
  return task.signal;
}

// The memory of a future is used again. The lowest bit says whether it was set when it was named.
std::uint32_t Player::signal_of_future(const std::uint64_t number) {
  const bool was_set = (number & 1) != 0;
  const std::uint64_t address = number & ~std::uint64_t{1};
  const auto found = futures_.find(address);
  if (was_set) return found == futures_.end() ? nothing : found->second.signal;
  if (found != futures_.end() && !found->second.is_set) return found->second.signal;
  Future& future = futures_[address];
  future = {new_signal(), false, false, false, 0};
  unset_.insert(future.signal);
  return future.signal;
}

void Player::await(const std::uint32_t task, const std::uint32_t signal) {
  if (signal == nothing) return;
  TaskSteps& steps = rank_.tasks[task].steps;
  Time& computed = live_[task].computed;
  if (!steps.empty() && steps.back().act == Act::await && computed < within_a_call_ns) {
    computed = 0;
  }
  add(task, {Act::await, signal, 1});
  live_[task].is_explained = true;
}

void Player::set_future(const Record& record) {
  Future& future = futures_[record.c];
  const bool by_library = std::ranges::find(library_promises, name(record.a)) !=
                          std::end(library_promises);
  if (future.is_request || (future.is_joint && by_library)) {
    future.is_set = true;
    return;
  }
  if (future.signal == nothing || future.is_set || future.is_joint) {
    future = {new_signal(), false, false, false, 0};
  }
  future.is_set = true;
  set_at_.emplace(future.signal, record.time);
  unset_.erase(future.signal);
  const TaskStep step{Act::set, future.signal, 0};
  if (record.task != 0 && !by_library && is_known(record.task) &&
      !rank_.tasks[task_of(record.task)].has_ended) {
    add(task_of(record.task), step);
  } else {
    outside_.push_back(step);
  }
}

// A joint of all parts is a task of the library that follows them. A joint of any follows the part
// that was set first in the run.
void Player::join(const Record& record) {
  Future& future = futures_[record.c];
  const std::uint32_t part = signal_of(static_cast<Awaited>(record.a), record.task);
  const bool goes_on = future.signal != nothing && future.joins_at == position_ &&
                       !rank_.operations.empty() && future.joins_at != 0;
  if (!goes_on) {
    future = {new_signal(), false, false, true, 0};
    RecordedOperation& joint =
        add_operation(record, RecordedOperation::Kind::collective, 0);
    joint.signal = future.signal;
    joint.first_part = rank_.parts.size();
    joint.parts = 1;
    joint.name = UINT32_MAX;
    rank_.parts.push_back({.plan = {.role = Role::compute, .by_library = true,
                                    .signal = future.signal},
                           .after = {}});
    const std::vector<std::uint32_t>& stack = workers_[record.worker].stack;
    add(stack.empty() ? 0 : stack.back(),
        {Act::begin, static_cast<std::uint32_t>(rank_.operations.size() - 1), 0});
    if (record.b != 0) {
      any_.emplace_back(rank_.parts.size() - 1, std::vector<std::uint32_t>());
      ++rank_.left_out["when_any(): it is set by the part that was set first in the run"];
    }
  }
  std::vector<std::uint32_t>& after = record.b == 0 || any_.empty() ? rank_.parts.back().after
                                                                    : any_.back().second;
  if (part != nothing) after.push_back(part);
  future.joins_at = position_ + 1;
}

// ---- messages ----------------------------------------------------------------------------------

RecordedOperation& Player::add_operation(const Record& record, const RecordedOperation::Kind kind,
                                         const std::uint32_t request) {
  RecordedOperation& operation = rank_.operations.emplace_back();
  operation.kind = kind;
  operation.record = position_;
  operation.communicator = static_cast<std::uint32_t>(record.c);
  if (request != 0) {
    operation.signal = new_signal();
    const auto number = static_cast<std::uint32_t>(rank_.operations.size() - 1);
    if (!requests_.emplace(request, number).second) {
      fail(fmt::format("request {} begins twice", request));
    }
  }
  return operation;
}

void Player::send(const Record& record, const std::uint32_t task) {
  const std::uint32_t request = high(record.c);
  RecordedOperation& sent = add_operation(record, RecordedOperation::Kind::send, request);
  sent.peer = low(record.b);
  sent.tag = static_cast<int>(high(record.b));
  sent.bytes = static_cast<std::int64_t>(std::min<std::uint64_t>(record.a, collective_bytes_max));
  const TaskStep step{request != 0 ? Act::begin : Act::call,
                      static_cast<std::uint32_t>(rank_.operations.size() - 1), 0};
  if (record.task == 0) {
    outside_.push_back(step);
  } else {
    add(task, step);
  }
}

// The library sends what the message that it has received last here has brought.
void Player::pass_on(const Record& record) {
  const auto received = received_.find(record.worker);
  if (received == received_.end() || high(record.c) == 0) {
    fail("a message of no task, which passes no other one on");
  }
  send(record, 0);
  rank_.operations.back().after = received->second;
}

// The future that the program gets of the request may have been named before.
void Player::give(const Record& record) {
  const auto operation = requests_.find(high(record.c));
  if (operation == requests_.end()) return;
  given_.insert(operation->first);
  Future& future = futures_[record.b & ~std::uint64_t{1}];
  std::uint32_t& signal = rank_.operations[operation->second].signal;
  if (unset_.erase(future.signal) != 0) signal = future.signal;
  future = {signal, false, true, false, 0};
}

void Player::receive(const Record& record, const std::uint32_t task) {
  const auto posted = requests_.find(high(record.c));
  const bool is_new = high(record.c) == 0 || posted == requests_.end();
  RecordedOperation& received = is_new
                                    ? add_operation(record, RecordedOperation::Kind::receive, 0)
                                    : rank_.operations[posted->second];
  if (!is_new && received.kind != RecordedOperation::Kind::none) {
    fail(fmt::format("request {} receives twice, or is no receive", high(record.c)));
  }
  received.kind = RecordedOperation::Kind::receive;
  received.peer = low(record.b);
  received.tag = static_cast<int>(high(record.b));
  received.bytes =
      static_cast<std::int64_t>(std::min<std::uint64_t>(record.a, collective_bytes_max));
  if (is_new) {
    add(task, {Act::call, static_cast<std::uint32_t>(rank_.operations.size() - 1), 0});
  } else {
    received_[record.worker] = received.signal;
  }
}

void Player::begin_collective(const Record& record, const std::uint32_t task) {
  const bool is_blocking = record.kind == Kind::collective_begin;
  RecordedOperation& collective = add_operation(record, RecordedOperation::Kind::collective,
                                                is_blocking ? 0 : high(record.c));
  if (collective.signal == nothing) collective.signal = new_signal();
  collective.name = static_cast<std::uint32_t>(record.a);
  collective.bytes = static_cast<std::int64_t>(record.b & collective_bytes_max);
  collective.peer = static_cast<int>(record.b >> 40) - 1;
  const std::uint32_t signal = collective.signal;
  add(task, {Act::begin, static_cast<std::uint32_t>(rank_.operations.size() - 1), 0});
  if (is_blocking) await(task, signal);
}

// A request that was handed over ends without its task.
void Player::end_request(const Record& record, const std::uint32_t task) {
  const auto operation = requests_.find(high(record.c));
  if (operation != requests_.end()) {
    set_at_.emplace(rank_.operations[operation->second].signal, record.time);
  }
  if (operation == requests_.end() || given_.contains(operation->first)) return;
  await(task, rank_.operations[operation->second].signal);
}

// ---- the end -----------------------------------------------------------------------------------

// One step for all signals that a call waits for.
void group_waits(TaskSteps& steps) {
  for (std::size_t i = steps.size(); i-- > 0;) {
    if (steps[i].act != Act::await) continue;
    const bool goes_on = i + 1 < steps.size() && steps[i + 1].act == Act::await;
    steps[i].amount = goes_on ? steps[i + 1].amount + 1 : 1;
  }
}

// Throws Error if a task names one address with two kinds, as the runtime does.
void Player::check_kinds(const RecordedTask& task) const {
  std::vector<AccessSpec> named;
  for (std::uint32_t i = 0; i < task.accesses; ++i) {
    const AccessSpec& access = rank_.accesses[task.first_access + i];
    if (access.kind != AccessKind::after) named.push_back(access);
  }
  try {
    if (named.size() > 1) task::check_accesses(head_.names[task.name].c_str(), named);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", head_.path, error.what()));
  }
}

// Each joint of any part follows the first one.
void Player::resolve_any() {
  for (std::size_t number = 0; number < rank_.tasks.size(); ++number) {
    const std::uint32_t signal = rank_.tasks[number].signal;
    if (signal != nothing && rank_.tasks[number].has_ended) {
      set_at_.emplace(signal, live_[number].ended_at);
    }
  }
  for (const auto& [joint, parts] : any_) {
    const auto time = [&](const std::uint32_t signal) {
      const auto found = set_at_.find(signal);
      return found == set_at_.end() ? UINT64_MAX : found->second;
    };
    const auto first = std::ranges::min_element(parts, {}, time);
    if (first != parts.end() && time(*first) != UINT64_MAX) {
      rank_.parts[joint].after.push_back(*first);
    }
  }
}

void Player::finish() {
  resolve_any();
  std::vector<bool> is_received(rank_.signals + std::size_t{1}, true);
  for (const RecordedOperation& operation : rank_.operations) {
    if (operation.kind == RecordedOperation::Kind::none) is_received[operation.signal] = false;
  }
  for (RecordedPart& joint : rank_.parts) {
    std::erase_if(joint.after, [&](const std::uint32_t signal) { return !is_received[signal]; });
  }
  for (std::uint32_t number = 0; number < rank_.tasks.size(); ++number) {
    RecordedTask& task = rank_.tasks[number];
    TaskSteps& steps = task.steps;
    if (live_[number].computed > 0 && number != 0) {
      steps.push_back({Act::compute, 0, live_[number].computed});
    }
    for (; live_[number].scopes > 0; --live_[number].scopes) {
      steps.push_back({Act::close_scope, 0, 0});
    }
    std::erase_if(steps, [&](const TaskStep& step) {  // nobody sent what the receive waited for
      if (step.act == Act::await || step.act == Act::hold) return !is_received[step.number];
      return step.act == Act::begin &&
             rank_.operations[step.number].kind == RecordedOperation::Kind::none;
    });
    group_waits(steps);
    const auto first = rank_.accesses.begin() + static_cast<std::ptrdiff_t>(task.first_access);
    for (std::uint32_t i = 0; i < task.accesses; ++i) {
      AccessSpec& access = first[i];
      if (access.kind != AccessKind::after) continue;
      const auto signal = static_cast<std::uint32_t>(
          reinterpret_cast<std::uintptr_t>(access.address));
      if (!is_received[signal]) outside_.push_back({Act::set, signal, 0});
      is_received[signal] = true;
    }
    check_kinds(task);
  }
  // Main's clock starts with its first step.
  TaskSteps& main = rank_.tasks[0].steps;
  if (!main.empty() && main.front().act == Act::compute) main.erase(main.begin());
  for (const std::uint32_t signal : unset_) outside_.push_back({Act::set, signal, 0});
  main.insert(main.begin(), outside_.begin(), outside_.end());
}

}  // namespace

RecordedRank rebuild(const TraceHead& head, const Time creator_ns) {
  return Player(head, creator_ns).play();
}

void scale(RecordedRank& rank, const TraceHead& head, const double speed) {
  for (RecordedTask& task : rank.tasks) {
    Time sum = 0;
    for (const TaskStep& step : task.steps) sum += step.act == Act::compute ? step.amount : 0;
    const Time wanted = task.name < head.times.size() ? head.times[task.name] : -1;
    if (wanted >= 0 && sum == 0) {
      task.steps.insert(task.steps.begin(), {Act::compute, 0, wanted});
      continue;
    }
    const double factor = wanted >= 0 ? static_cast<double>(wanted) / static_cast<double>(sum)
                                      : 1 / speed;
    if (factor == 1) continue;
    for (TaskStep& step : task.steps) {
      if (step.act != Act::compute) continue;
      step.amount = time_of(static_cast<double>(step.amount) * factor);
    }
  }
}

}  // namespace imbrex::simulate
