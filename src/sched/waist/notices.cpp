// SPDX-License-Identifier: BSD-3-Clause
// The functions by which plug-ins tell what they do, and ask for the state of the workers and of
// the running task: callbacks, trace, policies that learn, reports.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "sched/flight/shown.hpp"
#include "sched/life/visit.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/runtime_state.hpp"
#include "trace/symbols.hpp"

namespace imbrex::detail {

namespace order = trace::happens_before;
using sched::Worker;

// ---- trace -----------------------------------------------------------------------------------

bool tracing() noexcept {
  const Worker* const worker = sched::thread_worker();
  if (worker != nullptr) return worker->recorder.tracing();
  // A thread that has not visited the runtime yet: the visit that records gives it a worker.
  const sched::RuntimeState* const runtime = sched::runtime();
  return runtime != nullptr && !runtime->options.TRACE.empty();
}

// ---- flight recorder -------------------------------------------------------------------------

void note_flight(const FlightEvent event, const char* const call, const int peer, const int tag,
                 const std::int64_t items) noexcept {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr) return;
  const sched::Task* const task = worker->task;
  worker->flight.add(event, task != nullptr ? task->id : 0, call, flight::pack_where(peer, tag),
                     static_cast<std::uint64_t>(std::max<std::int64_t>(items, 0)));
}

void note_completed(const std::uint64_t task, const char* const call, const int peer,
                    const int tag) noexcept {
  if (sched::RuntimeState* const runtime = sched::runtime()) {
    runtime->completed.add(FlightEvent::completed, task, call, flight::pack_where(peer, tag));
  }
}

void show_in_flight(std::int64_t (*const count)() noexcept) noexcept {
  sched::count_in_flight.store(count, std::memory_order_relaxed);
}

void keep_flight_facts(const std::string_view facts) noexcept { flight::keep_facts(facts); }

// ---- order -----------------------------------------------------------------------------------

namespace {
order::Code running_code() noexcept {
  const Worker* const worker = order::is_kept() ? sched::current_worker() : nullptr;
  return worker != nullptr ? sched::notes::ordered_code(*worker) : order::unknown;
}
}  // namespace

Moment this_moment() noexcept {
  const order::Code code = running_code();
  const std::uint64_t at = code != order::unknown ? order::mark(code) : 0;
  return at != 0 ? Moment{code, at} : Moment{};
}

bool is_behind(const Moment& earlier) noexcept {
  const order::Code code = running_code();
  return code == order::unknown || earlier.task == 0 ||
         order::is_after(code, earlier.task, earlier.at);
}

void follow_everything() noexcept {
  if (order::is_kept()) sched::notes::follows_everything();
}

// ---- sends -----------------------------------------------------------------------------------

bool learns_sends() noexcept {
  const sched::RuntimeState* const runtime = sched::runtime();
  return runtime != nullptr && runtime->lineage.flow().learns;
}

bool learns_paths() noexcept { return learns_sends() && sched::runtime()->lineage.flow().times(); }

namespace {

// The lineage of a running task that is not the code of a thread, if the policy learns; else null.
task::Lineage* lineage_of(const Worker* const worker) noexcept {
  if (worker == nullptr || worker->runtime == nullptr || worker->task == nullptr ||
      worker->task->is_root() || !worker->runtime->lineage.flow().learns) {
    return nullptr;
  }
  return &worker->runtime->lineage;
}

}  // namespace

void about_to_send() noexcept {
  const Worker* const worker = sched::current_worker();
  if (task::Lineage* const lineage = lineage_of(worker)) lineage->sends(*worker->task);
}

Precedence precedence_of_message(const int rank) noexcept {
  const Worker* const worker = sched::current_worker();
  if (worker == nullptr || worker->runtime == nullptr || worker->task == nullptr) return {0, 0};
  const task::Task& task = *worker->task;
  int priority = task.priority.load(std::memory_order_relaxed);
  if (rank >= 0 && worker->runtime->lineage.flow().times()) {
    const SendWorth worth = worth_of_sending_to(rank);
    priority = std::max(priority, worth.any + worth.of_rank);
  }
  const sched::Group* const group = worker->membership->group;
  return {group != nullptr ? group->policy->urgency_of(priority) : 0, task.id};
}

SendWorth worth_of_sending_to(const int rank) noexcept {
  const sched::RuntimeState* const runtime = sched::runtime();
  if (runtime == nullptr || !runtime->lineage.flow().learns) return {0, 0, 0};
  const task::Flow& flow = runtime->lineage.flow();
  return {flow.marked, runtime->lineage.worth_of_rank(static_cast<std::uint32_t>(rank)), flow.step};
}

void message_leaves(const std::uint64_t message) noexcept {
  const Worker* const worker = sched::current_worker();
  if (task::Lineage* const lineage = lineage_of(worker)) lineage->sends(*worker->task, message);
}

void message_arrives(const std::uint64_t message) noexcept {
  const Worker* const worker = sched::current_worker();
  if (task::Lineage* const lineage = lineage_of(worker)) lineage->receives(*worker->task, message);
}

void report_paths(const PathReport report) noexcept {
  if (sched::RuntimeState* const runtime = sched::runtime()) runtime->lineage.report(report);
}

void learn_path(const std::uint64_t message, const float length_us) noexcept {
  sched::RuntimeState* const runtime = sched::runtime();
  if (runtime != nullptr) runtime->lineage.learn(message, length_us);
}

namespace {

std::uint64_t peer_and_tag_of(const int peer, const int tag) noexcept {
  return static_cast<std::uint32_t>(peer) |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(tag)) << 32;
}

std::uint64_t with_request(const std::uint32_t communicator, const std::uint32_t number) noexcept {
  return communicator | static_cast<std::uint64_t>(number) << 32;
}

}  // namespace

void trace_message(const MessageRecord& message) noexcept {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr && tracing()) [[unlikely]] {
    return sched::visit(sched::Purpose::passes, [&] { trace_message(message); }, [] {});
  }
  if (worker == nullptr || !worker->recorder.tracing()) return;
  const std::uint64_t peer_and_tag = peer_and_tag_of(message.peer, message.tag);
  const std::uint64_t running = worker->task != nullptr ? worker->task->id : 0;
  const bool waited = message.waited_ns != 0;
  const trace::Kind kind = waited         ? trace::Kind::message_waited
                           : message.sent ? trace::Kind::message_sent
                                          : trace::Kind::message_received;
  const std::uint64_t task = message.task != 0 ? message.task : running;
  worker->recorder.record(kind, message.by_library ? 0 : task,
                          waited ? message.waited_ns : message.bytes, peer_and_tag,
                          with_request(message.communicator, message.request));
}

void trace_request(const RequestRecord& request) noexcept {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr && tracing()) [[unlikely]] {
    return sched::visit(sched::Purpose::passes, [&] { trace_request(request); }, [] {});
  }
  if (worker == nullptr || !worker->recorder.tracing()) return;
  const std::uint64_t running = worker->task != nullptr ? worker->task->id : 0;
  const auto record = [&](const trace::Kind kind, const std::uint64_t a, const std::uint64_t b) {
    worker->recorder.record(kind, request.task != 0 ? request.task : running, a, b,
                            with_request(request.communicator, request.request));
  };
  switch (request.step) {
    case RequestStep::receive_posted:
      return record(trace::Kind::receive_posted, request.bytes,
                    peer_and_tag_of(request.peer, request.tag));
    case RequestStep::awaited:
      return record(trace::Kind::request_awaited, trace::intern(request.call, nullptr),
                    request.bytes);
    case RequestStep::ended:
      return record(trace::Kind::request_ended, 0, 0);
    case RequestStep::given:
      return record(trace::Kind::request_given, 0, request.bytes);
  }
}

void trace_collective(const CollectiveRecord& collective) noexcept {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr && tracing()) [[unlikely]] {
    return sched::visit(sched::Purpose::passes, [&] { trace_collective(collective); }, [] {});
  }
  if (worker == nullptr || !worker->recorder.tracing()) return;
  static constexpr trace::Kind kinds[] = {trace::Kind::collective_begin,
                                          trace::Kind::collective_end,
                                          trace::Kind::collective_posted};
  constexpr std::uint64_t bytes_max = (std::uint64_t{1} << 40) - 1;
  worker->recorder.record(
      kinds[static_cast<std::size_t>(collective.step)],
      worker->task != nullptr ? worker->task->id : 0, trace::intern(collective.call, nullptr),
      std::min(collective.bytes, bytes_max) |
          static_cast<std::uint64_t>(collective.root + 1) << 40,
      with_request(collective.communicator, collective.request));
}

void trace_joins(const Completion& joint, const std::span<Completion* const> parts) noexcept {
  if (sched::current_worker() == nullptr && tracing()) [[unlikely]] {
    return sched::visit(sched::Purpose::passes, [&] { trace_joins(joint, parts); }, [] {});
  }
  sched::notes::joins(joint, parts, true);
}

void trace_unrecorded(const char* const what) noexcept {
  if (tracing()) trace::count_unrecorded(what);
}

void trace_datum(const std::string_view name, const std::uint64_t key) {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr && tracing()) [[unlikely]] {
    return sched::visit(sched::Purpose::passes, [&] { trace_datum(name, key); }, [] {});
  }
  if (worker == nullptr || !worker->recorder.tracing()) return;
  worker->recorder.record(trace::Kind::datum_named,
                          worker->task != nullptr ? worker->task->id : 0,
                          trace::intern(keep_text(name), nullptr), 0, key);
}

void trace_copy(const CopyRecord& copy) noexcept {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr && tracing()) [[unlikely]] {
    return sched::visit(sched::Purpose::passes, [&] { trace_copy(copy); }, [] {});
  }
  if (worker == nullptr || !worker->recorder.tracing()) return;
  worker->recorder.record(
      copy.sent ? trace::Kind::copy_sent : trace::Kind::copy_arrived,
      worker->task != nullptr ? worker->task->id : 0, copy.bytes,
      static_cast<std::uint32_t>(copy.peer) | static_cast<std::uint64_t>(copy.ticket) << 32,
      copy.datum | static_cast<std::uint64_t>(copy.root) << 40);
}

// ---- reports ---------------------------------------------------------------------------------

void print(const std::string_view text) noexcept {
  (void)base::write_all(STDERR_FILENO, text, nullptr);
}

void abort() noexcept { base::abort(); }

void keep_message(const std::string& text) noexcept {
  if (Worker* const worker = sched::thread_worker()) {
    worker->message = text;
  } else {
    constexpr std::string_view mark = "imbrex: ";  // as report() writes
    base::report(text.starts_with(mark) ? text.substr(mark.size()) : text);
  }
}

const char* kept_message() noexcept {
  if (const Worker* const worker = sched::thread_worker()) return worker->message.c_str();
  return "imbrex: outside of the runtime, errors are printed on standard error at once";
}

std::string describe_current_task() { return describe(current_task()); }

TaskLabel current_task() noexcept {
  const Worker* const worker = sched::current_worker();
  if (worker == nullptr && sched::known_worker() != nullptr) {
    return sched::visit(sched::Purpose::passes, [] { return current_task(); },
                        [] { return TaskLabel{}; });
  }
  if (worker == nullptr || worker->task == nullptr) return {};
  return sched::label_of(*worker->task);
}

Footprint footprint() noexcept {
  const Worker* const worker = sched::current_worker();
  if (worker == nullptr || worker->task == nullptr) return {};
  return {worker->task, worker->fiber};
}

std::string text_of(const std::source_location& where) {
  const std::string_view file = where.file_name();
  if (const void* const code = code_at(where)) {
    if (const std::string& place = trace::symbol_of(code).place; !place.empty()) return place;
  }
  if (file.empty()) return "an unknown place";
  return where.line() == 0 ? std::string(file) : fmt::format("{}:{}", file, where.line());
}

std::string in_parentheses(const std::source_location& where) {
  const void* const code = code_at(where);
  const bool known = code != nullptr ? !trace::symbol_of(code).place.empty()
                                     : !std::string_view(where.file_name()).empty();
  return known ? fmt::format(" ({})", text_of(where)) : "";
}

namespace {

// ", iteration 17" of a task of iterate().
std::string iteration_of(const TaskLabel& task) {
  if (task.iteration == 0) return "";
  return fmt::format(", iteration {}{}", task.iteration - 1,
                     task.iteration == TaskLabel::many ? " or later" : "");
}

}  // namespace

std::string describe(const TaskLabel& task) {
  if (task.name == nullptr) return "no task";
  if (const void* const code = sched::code_of(task)) {
    const trace::Symbol& symbol = trace::symbol_of(code);
    const std::string_view name = symbol.name.empty() ? "task" : std::string_view(symbol.name);
    return symbol.place.empty() ? fmt::format("\"{}\"", name)
                                : fmt::format("\"{}\" ({})", name, symbol.place);
  }
  return fmt::format("\"{}\"{}{}", task.name, in_parentheses(task.where),  // main has no place
                     iteration_of(task));
}

}  // namespace imbrex::detail
