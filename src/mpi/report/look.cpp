// SPDX-License-Identifier: BSD-3-Clause
// How a look is safe while the program runs: operations are read under the engine's lock, where
// none completes, so each still has its task and its communicator. What tasks wait for outside of
// MPI is followed through the graph only if all are at rest, were so a moment ago with nothing
// having happened in between, and MPI can wake none of them meanwhile, because of that lock.
#include "report/look.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "engine.hpp"
#include "receive/communicator.hpp"

namespace imbrex::mpi::report {

namespace {

constexpr std::size_t waits_max = 18;
constexpr std::size_t messages_max = 8;
constexpr std::size_t tasks_max = 12;

std::string name_of(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (PMPI_Comm_get_name(comm, name, &length) == MPI_SUCCESS && length > 0) {
    return {name, static_cast<std::size_t>(length)};
  }
  int size = 0;
  PMPI_Comm_size(comm, &size);
#ifdef MPI_ABI_VERSION  // the standard's ABI leaves Fortran to others
  const int number = PMPI_Comm_toint(comm);
#else
  const int number = PMPI_Comm_c2f(comm);
#endif
  return fmt::format("communicator #{} of {} ranks", static_cast<std::uint32_t>(number), size);
}

// They name where the message goes; all else that names a rank receives.
bool is_send(const std::string_view call) {
  for (const std::string_view send :
       {"MPI_Send", "MPI_Ssend", "MPI_Rsend", "MPI_Bsend", "MPI_Isend", "MPI_Issend", "MPI_Irsend",
        "MPI_Ibsend", "MPI_Rput", "MPI_Raccumulate", "MPI_Rget_accumulate"}) {
    if (!call.starts_with(send)) continue;
    const std::string_view rest = call.substr(send.size());
    if (rest.empty() || rest == "_c" || rest == "_init" || rest == "_init_c") return true;
  }
  return false;
}

// ---- messages that nobody receives -----------------------------------------------------------

// What the program asserts of its receives on a communicator holds for our probes too.
bool may_probe_any(MPI_Comm comm) {
  MPI_Info info = MPI_INFO_NULL;
  if (PMPI_Comm_get_info(comm, &info) != MPI_SUCCESS) return false;
  bool may = true;
  for (const char* const key : {"mpi_assert_no_any_source", "mpi_assert_no_any_tag"}) {
    char value[8] = "";
    int found = 0;
    PMPI_Info_get(info, key, static_cast<int>(sizeof value) - 1, value, &found);
    if (found != 0 && std::string_view(value) == "true") may = false;
  }
  PMPI_Info_free(&info);
  return may;
}

Message message_of(MPI_Comm comm, const MPI_Status& status) {
  MPI_Count bytes = 0;
  PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  return {name_of(comm), status.MPI_SOURCE, status.MPI_TAG,
          bytes < 0 ? 0 : static_cast<std::uint64_t>(bytes)};
}

// A probe shows the first message that fits, so it is asked for any, and then for each source and
// each tag that a task waits for.
class Search {
 public:
  Search(MPI_Comm comm, std::vector<Message>& found) : comm_(comm), found_(found) {}

  void probe(const int source, const int tag) {
    constexpr int probes_max = 16;
    if (++probes_ > probes_max) return;
    int there = 0;
    MPI_Status status;
    if (PMPI_Iprobe(source, tag, comm_, &there, &status) != MPI_SUCCESS || there == 0) return;
    if (!seen_.emplace(status.MPI_SOURCE, status.MPI_TAG).second) return;
    found_.push_back(message_of(comm_, status));
  }

 private:
  MPI_Comm comm_;
  std::vector<Message>& found_;
  std::set<std::pair<int, int>> seen_;
  int probes_ = 0;
};

// Those that imbrex has taken from MPI already.
void find_held(receive::Communicator& communicator, std::vector<Message>& found) {
  constexpr std::size_t held_max = 64;
  std::vector<MPI_Status> held;
  communicator.for_each_held([&held](const MPI_Status& status) {
    if (held.size() < held_max) held.push_back(status);
  });
  for (const MPI_Status& status : held) {
    found.push_back(message_of(communicator.handle(), status));
  }
}

std::vector<Message> find_messages(const std::vector<Call>& calls) {
  std::vector<Message> found;
  std::vector<MPI_Comm> comms{MPI_COMM_WORLD};
  receive::for_each_communicator([&](receive::Communicator& communicator) {
    if (communicator.handle() != MPI_COMM_WORLD) comms.push_back(communicator.handle());
    find_held(communicator, found);
  });
  for (const Call& call : calls) {
    if (call.comm != MPI_COMM_NULL && std::ranges::find(comms, call.comm) == comms.end()) {
      comms.push_back(call.comm);
    }
  }
  for (const MPI_Comm comm : comms) {
    if (!may_probe_any(comm)) continue;
    Search search(comm, found);
    search.probe(MPI_ANY_SOURCE, MPI_ANY_TAG);
    for (const Call& call : calls) {
      if (call.comm != comm || call.peer == Call::none || is_send(call.name)) continue;
      if (call.peer != MPI_ANY_SOURCE) search.probe(call.peer, MPI_ANY_TAG);
      if (call.tag != MPI_ANY_TAG) search.probe(MPI_ANY_SOURCE, call.tag);
    }
  }
  return found;
}

// ---- tasks -----------------------------------------------------------------------------------

struct Tasks {
  std::size_t all = 0;
  std::size_t running = 0;
  Lines lines;  // those whose wait is not among the operations
};

Tasks describe(const std::vector<detail::TaskView>& views, const std::set<std::uint64_t>& shown) {
  Tasks tasks{.all = views.size(), .running = 0, .lines = {}};
  for (const detail::TaskView& view : views) {
    if (view.runs) {
      ++tasks.running;
      tasks.lines.push_back("runs, or is ready to: " + detail::describe(view.task));
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

// The operations that are open. Read one by one, in place: they may be gone right after.
class Open {
 public:
  void add(const Operation& operation) {
    waits_.emplace_back(operation.task.id, wait_of(operation.call, operation.task));
    calls_.push_back(operation.call);
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
  // Without types: those may be freed.
  [[nodiscard]] const std::vector<Call>& calls() const noexcept { return calls_; }

 private:
  std::vector<std::pair<std::uint64_t, Wait>> waits_;  // by the id of the task
  std::vector<Call> calls_;
};

}  // namespace

Wait wait_of(const Call& call, const detail::TaskLabel& task) {
  Wait wait{.call = call.name, .task = detail::describe(task)};
  if (call.comm != MPI_COMM_NULL) wait.comm = name_of(call.comm);
  if (call.peer != Call::none) wait.peer = call.peer == MPI_ANY_SOURCE ? any : call.peer;
  if (call.tag != Call::none) wait.tag = call.tag == MPI_ANY_TAG ? any : call.tag;
  wait.receives = call.peer != Call::none && !is_send(call.name);
  if (call.type != MPI_DATATYPE_NULL) {
    int type_bytes = 0;
    PMPI_Type_size(call.type, &type_bytes);
    wait.sized = true;
    wait.bytes = static_cast<std::uint64_t>(type_bytes) * static_cast<std::uint64_t>(call.count);
  }
  return wait;
}

Mark mark() noexcept {
  const int outstanding = engine().outstanding().load(std::memory_order_relaxed);
  const detail::Situation now = detail::situation();
  return {now.begun, outstanding, now.at_rest && outstanding != 0};
}

Lines look(const Mark& last) {
  Open open;
  std::vector<Message> messages;
  std::vector<detail::TaskView> views;
  engine().hold_still([&open](const Operation& operation) { open.add(operation); },
                      [&](const bool settled) {
                        const bool at_rest = settled && last.all_wait && mark() == last;
                        views = detail::view_tasks(at_rest);
                        messages = find_messages(open.calls());
                      });

  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::vector<Wait> waits = open.waits();
  const Tasks tasks = describe(views, open.tasks());
  Lines lines{heading(tasks)};
  for (const Lines& part :
       {fold(waits, waits_max), unite(tasks.lines, tasks_max),
        explain(messages, waits, rank, messages_max)}) {
    for (const std::string& line : part) lines.push_back("  " + line);
  }
  return lines;
}

Lines open_operations() {
  Open open;
  engine().hold_still([&open](const Operation& operation) { open.add(operation); },
                      [](bool) {});
  return fold(open.waits(), waits_max);
}

}  // namespace imbrex::mpi::report
