// SPDX-License-Identifier: BSD-3-Clause
// How a look is safe while the program runs. Operations are read under the engine's lock, where
// none completes, so each still has its task and its communicator. Waits of tasks outside of MPI
// are followed through the graph only if all tasks are at rest, were so a moment ago with no event
// in between, and MPI can wake none of them meanwhile, because of that lock.
#include "mpi/report/look.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/guarded.hpp"
#include "diagnosis/facts.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/runtime.hpp"
#include "mpi/abi/inquiries.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/calls/spare.hpp"
#include "mpi/collectives/blocks/block_channel.hpp"
#include "mpi/collectives/order/order.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/traffic.hpp"
#include "mpi/messages/calls/probed.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/matching/communicators.hpp"
#include "mpi/messages/matching/receive.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/messages/requests/request_table.hpp"
#include "mpi/messages/sends/window.hpp"
#include "mpi/recording/window_locks.hpp"
#include "mpi/report/waits/mpi_waits.hpp"

namespace imbrex::mpi::report {

namespace {

constexpr std::size_t waits_max = 18;
constexpr std::size_t messages_max = 8;
constexpr std::size_t tasks_max = 12;
constexpr std::size_t collectives_max = 8;
constexpr std::size_t turns_max = 8;
constexpr std::size_t above_max = 12;
constexpr std::size_t failures_max = 17;  // detail::recent_failures()
// The page docs/user/hangs.md names the sum. The single lines are the heading, two of active
// messages, and a thread that is inside of a call.
static_assert(4 + waits_max + messages_max + tasks_max + collectives_max + turns_max + above_max +
                  failures_max ==
              87);

// ---- unexpected messages ---------------------------------------------------------------------

// The communicators of one look: each is asked for once.
class Communicators {
 public:
  const diagnosis::Communicator& operator[](MPI_Comm comm) {
    const auto found = known_.find(comm);
    if (found != known_.end()) return found->second;
    return known_.emplace(comm, facts_of(comm)).first->second;
  }
  // The rank in MPI_COMM_WORLD of the member that messages to `peer` go to.
  [[nodiscard]] int in_world(MPI_Comm comm, const int peer) {
    const std::vector<int>& members = (*this)[comm].members;
    const bool is_member = peer >= 0 && static_cast<std::size_t>(peer) < members.size();
    return is_member ? members[static_cast<std::size_t>(peer)] : diagnosis::none;
  }

 private:
  std::map<MPI_Comm, diagnosis::Communicator> known_;
};

using Messages = std::vector<diagnosis::Message>;

diagnosis::Message message_of(MPI_Comm comm, const MPI_Status& status, Communicators& comms) {
  MPI_Count bytes = 0;
  PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  return {comms[comm], comms.in_world(comm, status.MPI_SOURCE), status.MPI_SOURCE, status.MPI_TAG,
          bytes < 0 ? 0 : static_cast<std::int64_t>(bytes)};
}

// A probe shows the first message that fits, so the search probes for any message, and then for
// each source and each tag that a task waits for.
class Search {
 public:
  Search(MPI_Comm comm, Communicators& comms, Messages& found)
      : comm_(comm), comms_(comms), found_(found) {}

  void probe(const int source, const int tag) {
    constexpr int probes_max = 16;
    if (++probes_ > probes_max) return;
    int there = 0;
    MPI_Status status;
    if (PMPI_Iprobe(source, tag, comm_, &there, &status) != MPI_SUCCESS || there == 0) return;
    if (!seen_.emplace(status.MPI_SOURCE, status.MPI_TAG).second) return;
    if (Probed::is_wanted(status.MPI_SOURCE, status.MPI_TAG, comm_)) return;
    found_.push_back(message_of(comm_, status, comms_));
  }

 private:
  MPI_Comm comm_;
  Communicators& comms_;
  Messages& found_;
  std::set<std::pair<int, int>> seen_;
  int probes_ = 0;
};

// Finds the messages that imbrex has taken from MPI already.
void find_held(messages::Communicator& communicator, Communicators& comms, Messages& found) {
  constexpr std::size_t held_max = 64;
  std::vector<MPI_Status> held;
  communicator.for_each_held([&held](const MPI_Status& status) {
    if (held.size() < held_max) held.push_back(status);
  });
  for (const MPI_Status& status : held) {
    if (Probed::is_wanted(status.MPI_SOURCE, status.MPI_TAG, communicator.handle())) continue;
    found.push_back(message_of(communicator.handle(), status, comms));
  }
}

Messages find_messages(const std::vector<Call>& calls, Communicators& known) {
  Messages found;
  std::vector<MPI_Comm> comms{MPI_COMM_WORLD};
  messages::for_each_communicator([&](messages::Communicator& communicator) {
    if (communicator.handle() != MPI_COMM_WORLD) comms.push_back(communicator.handle());
    find_held(communicator, known, found);
  });
  for (const Call& call : calls) {
    if (call.comm != MPI_COMM_NULL && std::ranges::find(comms, call.comm) == comms.end()) {
      comms.push_back(call.comm);
    }
  }
  for (const MPI_Comm comm : comms) {
    if (messages::asserts_no_wildcards(comm)) continue;  // that also excludes this probe
    Search search(comm, known, found);
    search.probe(MPI_ANY_SOURCE, MPI_ANY_TAG);
    for (const Call& call : calls) {
      if (call.comm != comm || call.kind != Kind::receive) continue;
      if (call.peer != MPI_ANY_SOURCE) search.probe(call.peer, MPI_ANY_TAG);
      if (call.tag != MPI_ANY_TAG) search.probe(MPI_ANY_SOURCE, call.tag);
    }
  }
  return found;
}

// ---- code above MPI ----------------------------------------------------------------------------

struct Descriptions {
  std::mutex mutex;
  std::vector<std::pair<Describe, void*>> all IMBREX_GUARDED_BY(mutex);
};
Descriptions& descriptions() {
  static auto& all = *new Descriptions;  // never destroyed: a thread may look until the end
  return all;
}

Lines from_above() {
  std::vector<std::pair<Describe, void*>> all;
  if (const std::lock_guard guard(descriptions().mutex); true) all = descriptions().all;
  std::string text;
  for (const auto& [describe, context] : all) describe(context, above_max, text);
  Lines lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// ---- tasks -----------------------------------------------------------------------------------

struct Tasks {
  std::size_t all = 0;
  std::size_t running = 0;
  Lines lines;  // tasks whose wait is not among the operations
  std::vector<std::string> texts;       // of those that run
  std::vector<diagnosis::Wait> waits;   // not among the operations
};

std::atomic<std::uint64_t> in_finalize{0};  // id of the task in MPI_Finalize; 0: none

std::string describe_finalize(const detail::TaskView& view) {
  const bool drains = view.waits_for == text_of(detail::WaitKind::end);
  return std::string("MPI_Finalize, which waits ") +
         (drains ? "for the tasks of this rank" : "for the other ranks") + ": in " +
         detail::describe(view.task);
}

// The waits of a task that MPI knows nothing of.
void add_facts(const detail::TaskView& view, std::vector<diagnosis::Wait>& waits) {
  for (const detail::TaskWait& wait : view.waits) {
    diagnosis::Wait facts{.task = view.task.id, .task_text = detail::describe(view.task),
                          .kind = diagnosis::kind_of(wait.kind), .call = wait.text,
                          .tasks = wait.tasks};
    if (facts.kind == diagnosis::WaitKind::future) {
      facts.object = future_in(wait.text);
      facts.peer = home_in(facts.object);
    }
    waits.push_back(std::move(facts));
  }
}

Tasks describe(const std::vector<detail::TaskView>& views, const std::set<std::uint64_t>& shown) {
  Tasks tasks{.all = views.size(), .running = 0, .lines = {}, .texts = {}, .waits = {}};
  const std::uint64_t finalizer = in_finalize.load(std::memory_order_relaxed);
  for (const detail::TaskView& view : views) {
    if (finalizer != 0 && view.task.id == finalizer) {
      tasks.lines.push_back(describe_finalize(view));
      tasks.waits.push_back({.task = view.task.id, .task_text = detail::describe(view.task),
                             .kind = diagnosis::WaitKind::finalize, .call = "MPI_Finalize"});
    } else if (view.runs) {
      ++tasks.running;
      tasks.texts.push_back(detail::describe(view.task));
      tasks.lines.push_back("runs or is ready: " + tasks.texts.back());
    } else if (!view.waits_for.empty() && !(view.in_mpi && shown.contains(view.task.id))) {
      tasks.lines.push_back(view.waits_for + ": in " + detail::describe(view.task));
      add_facts(view, tasks.waits);
    }
  }
  return tasks;
}

std::string heading(const diagnosis::RankFacts& facts, const Tasks& tasks) {
  std::string state = fmt::format("{} of {} tasks run or are ready", tasks.running, tasks.all);
  if (tasks.running == 0) {
    state = tasks.all == 0   ? "no task is left"
            : tasks.all == 1 ? "its only task waits"
                             : fmt::format("all {} tasks wait", tasks.all);
  }
  return fmt::format("rank {} of {} (process {} on {}): {}", facts.rank, facts.ranks,
                     facts.process, facts.host, state);
}

std::vector<diagnosis::WindowLock> locks_of_windows() {
  std::vector<diagnosis::WindowLock> locks;
  window_locks::for_each([&locks](const window_locks::Lock& one) {
    diagnosis::WindowLock lock{.task = one.task.id, .window = facts_of_window(one.window),
                               .target = diagnosis::any, .is_exclusive = one.is_exclusive};
    const auto target = static_cast<std::size_t>(one.target);
    if (one.target != window_locks::Lock::all) {
      lock.target = target < lock.window.members.size() ? lock.window.members[target]
                                                        : diagnosis::none;
    }
    lock.task_text = detail::describe(one.task);
    locks.push_back(std::move(lock));
  });
  return locks;
}

// The open operations. Read one by one, in place: they may be gone right after.
class Open {
 public:
  explicit Open(Communicators& comms) : comms_(comms) {}

  void add(const Operation& operation) {
    // A wait for requests tells what they receive, as far as that is known.
    bool known = false;
    if (operation.call.peer == Call::none) {
      for (const MPI_Request request : requests_of(operation).first(
               std::min(requests_of(operation).size(), requests_max))) {
        Call call = operation.call;
        messages::Envelope wanted{};
        if (request == MPI_REQUEST_NULL ||
            !messages::requests().find(request, wanted, call.comm)) {
          continue;
        }
        known = true;
        call.kind = Kind::receive;
        call.peer = wanted.source;
        call.tag = wanted.tag;
        take(operation.task, call);
      }
    }
    if (!known) take(operation.task, operation.call);
  }
  // In the order in which their tasks were made.
  [[nodiscard]] std::vector<Wait> waits() const {
    std::vector<const std::pair<std::uint64_t, Wait>*> order;
    for (const auto& entry : waits_) order.push_back(&entry);
    std::ranges::stable_sort(order, {}, [](const auto* const entry) { return entry->first; });
    std::vector<Wait> result;
    for (const auto* const entry : order) result.push_back(entry->second);
    return result;
  }
  [[nodiscard]] std::set<std::uint64_t> tasks() const {
    std::set<std::uint64_t> ids;
    for (const auto& entry : waits_) ids.insert(entry.first);
    return ids;
  }
  [[nodiscard]] const std::vector<diagnosis::Wait>& facts() const noexcept { return facts_; }
  // The calls have no types, since these may be freed.
  [[nodiscard]] const std::vector<Call>& calls() const noexcept { return calls_; }

 private:
  static constexpr std::size_t requests_max = 1000;  // of one call

  void take(const detail::TaskLabel& task, const Call& call) {
    waits_.emplace_back(task.id, wait_of(call, task));
    facts_.push_back(facts_of(call, waits_.back().second));
    facts_.back().task = task.id;
    calls_.push_back(call);
  }
  [[nodiscard]] diagnosis::Wait facts_of(const Call& call, const Wait& text) {
    diagnosis::Wait wait{.task_text = text.task, .kind = kind_of(call), .call = text.call,
                         .tag = text.tag == any ? diagnosis::any : text.tag};
    if (text.sized) wait.bytes = static_cast<std::int64_t>(text.bytes);
    if (call.comm == MPI_COMM_NULL) return wait;
    wait.comm = comms_[call.comm];
    if (call.kind == Kind::collective && has_two_groups(call.comm)) {
      wait.kind = diagnosis::WaitKind::other;  // the members are only half of those that must come
    }
    if (text.peer == none) return wait;
    wait.peer_in_comm = text.peer == any ? diagnosis::any : text.peer;
    wait.peer = text.peer == any ? diagnosis::any : comms_.in_world(call.comm, call.peer);
    return wait;
  }
  [[nodiscard]] static diagnosis::WaitKind kind_of(const Call& call) noexcept {
    using diagnosis::WaitKind;
    const std::string_view name = call.name;
    switch (call.kind) {
      case Kind::send: return call.waits_here ? WaitKind::other : WaitKind::send;
      case Kind::receive: return name.find("robe") == name.npos ? WaitKind::receive
                                                                : WaitKind::probe;
      case Kind::collective: return WaitKind::collective;
      case Kind::other: break;
    }
    return name.starts_with("MPI_Wait")  ? WaitKind::request
           : name.starts_with("MPI_Win") ? WaitKind::window
                                         : WaitKind::other;
  }

  Communicators& comms_;
  std::vector<diagnosis::Wait> facts_;
  std::vector<std::pair<std::uint64_t, Wait>> waits_;  // by the id of the task
  std::vector<Call> calls_;
};

}  // namespace

Mark mark() noexcept {
  const int open = engine().outstanding().load(std::memory_order_relaxed) +
                   engine().held().load(std::memory_order_relaxed);
  const detail::Situation now = detail::situation();
  const std::uint64_t messages = traffic().sent.load(std::memory_order_relaxed) +
                                 traffic().handled.load(std::memory_order_relaxed);
  const bool holds_sends = sends::waiting.load(std::memory_order_relaxed) != 0;  // they will go
  const bool all_wait = (now.at_rest && open != 0) || now.only_asks;
  return {.begun = now.begun,
          .messages = messages,
          .open = open,
          .all_wait = all_wait && !holds_sends,
          .at_rest = now.at_rest,
          .halted = now.halted,
          .keeps_others = all_wait && now.keeps_others};
}

std::string standstill(const Mark& mark) {
  if (switches.other_processes.load(std::memory_order_relaxed)) return {};
  const std::string threads = detail::standstill(in_finalize.load(std::memory_order_relaxed));
  if (threads.empty()) return {};
  return fmt::format("{} {} {}\n", mark.begun, mark.messages, mark.open) + threads;
}

bool only_ends(const Mark& mark) noexcept {
  return in_finalize.load(std::memory_order_relaxed) != 0 && mark.open == 0 &&
         statistics().live_tasks == 0;
}

std::int64_t largest_open() noexcept {
  std::int64_t largest = 0;
  engine().hold_still(
      [&largest](const Operation& operation) {
        const Call& call = operation.call;
        if (!call.waits_here) largest = std::max(largest, bytes_of(call.count, call.type));
      },
      [](bool) {});
  return largest;
}

namespace {

// The letters stay short where a program has many waits. Collectives come first, since a wait that
// is left out must not look like a rank that has not come.
void limit(diagnosis::RankFacts& facts) {
  constexpr std::size_t items_max = 256;
  std::ranges::stable_sort(facts.waits, {}, [](const diagnosis::Wait& wait) {
    return wait.kind == diagnosis::WaitKind::collective ? 0 : 1;
  });
  facts.has_left_out = facts.waits.size() > items_max;
  if (facts.has_left_out) facts.waits.resize(items_max);
  if (facts.running.size() > items_max) facts.running.resize(items_max);
  if (facts.messages.size() > items_max) facts.messages.resize(items_max);
  if (facts.locks.size() > items_max) facts.locks.resize(items_max);
}

diagnosis::RankFacts facts_of(const Open& open, const Tasks& tasks) {
  diagnosis::RankFacts facts;
  PMPI_Comm_rank(MPI_COMM_WORLD, &facts.rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &facts.ranks);
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  facts.host = host;
  facts.process = getpid();
  facts.running = tasks.texts;
  facts.waits = open.facts();
  facts.waits.insert(facts.waits.end(), tasks.waits.begin(), tasks.waits.end());
  facts.locks = locks_of_windows();
  facts.failures = detail::recent_failures();
  return facts;
}

}  // namespace

Look look(const Mark& last) {
  Communicators comms;
  Open open(comms);
  Messages messages;
  std::vector<detail::TaskView> views;
  const auto look_still = [&](const bool settled) {
    const bool at_rest = settled && last.all_wait && last.at_rest && mark() == last;
    views = detail::view_tasks(at_rest);
    messages = find_messages(open.calls(), comms);
  };
  const bool held = engine().try_to_hold_still(
      [&open](const Operation& operation) { open.add(operation); }, look_still);
  if (!held) views = detail::view_tasks(false);

  const Tasks tasks = describe(views, open.tasks());
  diagnosis::RankFacts facts = facts_of(open, tasks);
  facts.messages = std::move(messages);
  if (only_ends(last)) facts.state = diagnosis::RankState::finalizes;
  const Lines parts = unite(blocks::describe_open(), collectives_max);
  const Lines turns = unite(order::describe_waiting(), turns_max);
  for (const Lines& part : {parts, turns}) {
    for (const std::string& line : part) {
      facts.waits.push_back({.kind = diagnosis::WaitKind::part, .call = line});
    }
  }
  // A part that this rank holds back explains those that have not come.
  std::ranges::stable_partition(facts.waits, [](const diagnosis::Wait& wait) {
    return wait.kind == diagnosis::WaitKind::part &&
           wait.call.find(" is held") != std::string::npos;
  });
  Lines lines{heading(facts, tasks)};
  Lines of_messages;
  if (!held) of_messages.push_back("a thread has been inside a call of MPI for seconds: see the "
                                   "task of that thread");
  if (traffic().open.load(std::memory_order_relaxed)) {
    of_messages.push_back(describe_messages(traffic().sent.load(std::memory_order_relaxed),
                                            traffic().handled.load(std::memory_order_relaxed)));
  }
  for (const Lines& part : {fold(open.waits(), waits_max), unite(tasks.lines, tasks_max),
                            explain(facts, messages_max), parts, turns, from_above(), of_messages,
                            facts.failures}) {
    for (const std::string& line : part) lines.push_back("  " + line);
  }
  limit(facts);
  return {std::move(lines), std::move(facts)};
}

void note_finalize(const bool begins) noexcept {
  in_finalize.store(begins ? detail::current_task().id : 0, std::memory_order_relaxed);
}

void add_description(const Describe describe, void* const context) {
  const std::lock_guard guard(descriptions().mutex);
  descriptions().all.emplace_back(describe, context);
}

Lines open_operations() {
  Communicators comms;
  Open open(comms);
  engine().hold_still([&open](const Operation& operation) { open.add(operation); },
                      [](bool) {});
  return fold(open.waits(), waits_max);
}

}  // namespace imbrex::mpi::report
