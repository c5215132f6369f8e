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
#include <mutex>
#include <set>
#include <sstream>
#include <utility>

#include "base/guarded.hpp"
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

UnexpectedMessage message_of(MPI_Comm comm, const MPI_Status& status) {
  MPI_Count bytes = 0;
  PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  return {name_of(comm), status.MPI_SOURCE, status.MPI_TAG,
          bytes < 0 ? 0 : static_cast<std::uint64_t>(bytes)};
}

// A probe shows the first message that fits, so the search probes for any message, and then for
// each source and each tag that a task waits for.
class Search {
 public:
  Search(MPI_Comm comm, std::vector<UnexpectedMessage>& found) : comm_(comm), found_(found) {}

  void probe(const int source, const int tag) {
    constexpr int probes_max = 16;
    if (++probes_ > probes_max) return;
    int there = 0;
    MPI_Status status;
    if (PMPI_Iprobe(source, tag, comm_, &there, &status) != MPI_SUCCESS || there == 0) return;
    if (!seen_.emplace(status.MPI_SOURCE, status.MPI_TAG).second) return;
    if (Probed::is_wanted(status.MPI_SOURCE, status.MPI_TAG, comm_)) return;
    found_.push_back(message_of(comm_, status));
  }

 private:
  MPI_Comm comm_;
  std::vector<UnexpectedMessage>& found_;
  std::set<std::pair<int, int>> seen_;
  int probes_ = 0;
};

// Finds the messages that imbrex has taken from MPI already.
void find_held(messages::Communicator& communicator, std::vector<UnexpectedMessage>& found) {
  constexpr std::size_t held_max = 64;
  std::vector<MPI_Status> held;
  communicator.for_each_held([&held](const MPI_Status& status) {
    if (held.size() < held_max) held.push_back(status);
  });
  for (const MPI_Status& status : held) {
    if (Probed::is_wanted(status.MPI_SOURCE, status.MPI_TAG, communicator.handle())) continue;
    found.push_back(message_of(communicator.handle(), status));
  }
}

std::vector<UnexpectedMessage> find_messages(const std::vector<Call>& calls) {
  std::vector<UnexpectedMessage> found;
  std::vector<MPI_Comm> comms{MPI_COMM_WORLD};
  messages::for_each_communicator([&](messages::Communicator& communicator) {
    if (communicator.handle() != MPI_COMM_WORLD) comms.push_back(communicator.handle());
    find_held(communicator, found);
  });
  for (const Call& call : calls) {
    if (call.comm != MPI_COMM_NULL && std::ranges::find(comms, call.comm) == comms.end()) {
      comms.push_back(call.comm);
    }
  }
  for (const MPI_Comm comm : comms) {
    if (messages::asserts_no_wildcards(comm)) continue;  // that also excludes this probe
    Search search(comm, found);
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
};

std::atomic<std::uint64_t> in_finalize{0};  // id of the task in MPI_Finalize; 0: none

std::string describe_finalize(const detail::TaskView& view) {
  const bool drains = view.waits_for == text_of(detail::WaitKind::end);
  return std::string("MPI_Finalize, which waits ") +
         (drains ? "for the tasks of this rank" : "for the other ranks") + ": in " +
         detail::describe(view.task);
}

Tasks describe(const std::vector<detail::TaskView>& views, const std::set<std::uint64_t>& shown) {
  Tasks tasks{.all = views.size(), .running = 0, .lines = {}};
  const std::uint64_t finalizer = in_finalize.load(std::memory_order_relaxed);
  for (const detail::TaskView& view : views) {
    if (finalizer != 0 && view.task.id == finalizer) {
      tasks.lines.push_back(describe_finalize(view));
    } else if (view.runs) {
      ++tasks.running;
      tasks.lines.push_back("runs or is ready: " + detail::describe(view.task));
    } else if (!view.waits_for.empty() && !(view.in_mpi && shown.contains(view.task.id))) {
      tasks.lines.push_back(view.waits_for + ": in " + detail::describe(view.task));
    }
  }
  return tasks;
}

std::string heading(const Tasks& tasks) {
  int rank = 0;
  int ranks = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::string state = fmt::format("{} of {} tasks run or are ready", tasks.running, tasks.all);
  if (tasks.running == 0) {
    state = tasks.all == 0   ? "no task is left"
            : tasks.all == 1 ? "its only task waits"
                             : fmt::format("all {} tasks wait", tasks.all);
  }
  return fmt::format("rank {} of {} (process {} on {}): {}", rank, ranks, getpid(), host, state);
}

// The open operations. Read one by one, in place: they may be gone right after.
class Open {
 public:
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
  // The calls have no types, since these may be freed.
  [[nodiscard]] const std::vector<Call>& calls() const noexcept { return calls_; }

 private:
  static constexpr std::size_t requests_max = 1000;  // of one call

  void take(const detail::TaskLabel& task, const Call& call) {
    waits_.emplace_back(task.id, wait_of(call, task));
    calls_.push_back(call);
  }

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

Lines look(const Mark& last) {
  Open open;
  std::vector<UnexpectedMessage> messages;
  std::vector<detail::TaskView> views;
  const auto look_still = [&](const bool settled) {
    const bool at_rest = settled && last.all_wait && last.at_rest && mark() == last;
    views = detail::view_tasks(at_rest);
    messages = find_messages(open.calls());
  };
  const bool held = engine().try_to_hold_still(
      [&open](const Operation& operation) { open.add(operation); }, look_still);
  if (!held) views = detail::view_tasks(false);

  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::vector<Wait> waits = open.waits();
  const Tasks tasks = describe(views, open.tasks());
  Lines lines{heading(tasks)};
  Lines of_messages;
  if (!held) of_messages.push_back("a thread has been inside a call of MPI for seconds: see the "
                                   "task of that thread");
  if (traffic().open.load(std::memory_order_relaxed)) {
    of_messages.push_back(describe_messages(traffic().sent.load(std::memory_order_relaxed),
                                            traffic().handled.load(std::memory_order_relaxed)));
  }
  for (const Lines& part :
       {fold(waits, waits_max), unite(tasks.lines, tasks_max),
        explain(messages, waits, rank, messages_max),
        unite(blocks::describe_open(), collectives_max),
        unite(order::describe_waiting(), turns_max), from_above(), of_messages,
        detail::recent_failures()}) {
    for (const std::string& line : part) lines.push_back("  " + line);
  }
  return lines;
}

void note_finalize(const bool begins) noexcept {
  in_finalize.store(begins ? detail::current_task().id : 0, std::memory_order_relaxed);
}

void add_description(const Describe describe, void* const context) {
  const std::lock_guard guard(descriptions().mutex);
  descriptions().all.emplace_back(describe, context);
}

Lines open_operations() {
  Open open;
  engine().hold_still([&open](const Operation& operation) { open.add(operation); },
                      [](bool) {});
  return fold(open.waits(), waits_max);
}

}  // namespace imbrex::mpi::report
