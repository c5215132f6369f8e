// SPDX-License-Identifier: BSD-3-Clause
#include "sched/trigger/progress_functions.hpp"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "base/arch.hpp"
#include "base/check.hpp"
#include "imbrex/error.hpp"
#include "sched/run/dead.hpp"
#include "sched/run/idle.hpp"
#include "sched/run/loop/waiting.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/polling.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/runtime_state.hpp"
#include "trace/races.hpp"

namespace imbrex::sched {

namespace {

// The scope whose end checks the triggers and names of the calling thread.
task::Scope* finish_of(const Worker& worker) noexcept {
  if (worker.calling != nullptr) return worker.calling->finish;
  if (worker.callbacks != 0 || worker.task == nullptr) return nullptr;
  const Task& task = *worker.task;
  const task::Scope* const scope = task.family != nullptr ? task.family->current : task.scope;
  return scope != nullptr ? scope->finish : nullptr;
}

std::string caller_of(const Worker& worker) {
  if (worker.calling != nullptr) {
    return fmt::format("the progress function registered at {}",
                       detail::text_of(worker.calling->spec.where));
  }
  if (worker.task == nullptr && worker.foreign()) return "a thread that is no worker";
  if (worker.callbacks != 0 || worker.task == nullptr) return "a callback";
  return describe(*worker.task);
}

// Releases the tasks that wait for an event that was given up, with an error.
void let_go_given_up(Worker& worker, NamedEvent& event) {
  give_up(event, "the progress function of its scope has failed");
  fire(worker, event.event);
}

// Describes events that were triggered although no task has named them.
std::string describe_unnamed(const std::vector<const NamedEvent*>& events,
                             const task::Scope* const finish) {
  const NamedEvent& first = *events.front();
  std::string text = fmt::format("imbrex: {} triggered the event {}, which no task has named",
                                 first.triggered_by, first.label);
  if (finish != nullptr) {
    text += fmt::format(" by the end of the finish() at {}", detail::text_of(finish->where));
  }
  if (events.size() > 1) {
    text += fmt::format(" (nor {} others, the last of them {})", events.size() - 1,
                        events.back()->label);
  }
  return text + ": let a task of that scope depend on the event, by .in(imbrex::named(...)), or "
                "correct the name, if it is misspelt";
}

// While it lives, `worker` runs `function`, and no task.
class InFunction {
 public:
  InFunction(Worker& worker, ProgressFunction& function) noexcept
      : worker_(worker), call_(std::exchange(worker.callback_call, "a progress function")) {
    turn_to_program(worker);
    ++worker_.callbacks;
    worker_.calling = &function;
  }
  ~InFunction() {
    worker_.calling = nullptr;
    --worker_.callbacks;
    worker_.callback_call = call_;
  }
  InFunction(const InFunction&) = delete;
  InFunction& operator=(const InFunction&) = delete;

 private:
  Worker& worker_;
  const char* const call_;
};

}  // namespace

Triggers::Triggers(RuntimeState& runtime) noexcept
    : runtime_(runtime),
      poller_{.poll = [](void* self) noexcept { return static_cast<Triggers*>(self)->poll(); },
              .context = this,
              .outstanding = &outstanding_} {}

// Functions are left over where the program ends in the middle of a finish().
Triggers::~Triggers() = default;

// ---- names -----------------------------------------------------------------------------------

detail::Completion* Triggers::name(Worker& worker, const detail::EventName& name,
                                   const std::source_location& where) {
  task::Scope* const finish = finish_of(worker);
  NamedEvent& event = names_.name(name, finish, where);
  // Checked afterwards: an earlier failure is seen here, and a later failure gives up this event,
  // too.
  if (failure_around(finish) && names_.give_up(event)) let_go_given_up(worker, event);
  return &event;
}

void Triggers::trigger(Worker& worker, const detail::EventName& name) {
  NamedEvent* const event = names_.trigger(name, finish_of(worker), caller_of(worker));
  if (event == nullptr) return;
  triggered_.fetch_add(1, std::memory_order_relaxed);
  if (detail::records_waits.load(std::memory_order_relaxed)) [[unlikely]] notes::sets(*event);
  fire(worker, event->event);
  drop_reference(worker, *event);
}

// Returns the error that a progress function of `finish`, or of a scope around it, has thrown; else
// null.
std::exception_ptr Triggers::failure_around(task::Scope* finish) {
  for (; finish != nullptr; finish = finish->outer->finish) {
    if (!finish->has_region.load(std::memory_order_relaxed)) continue;
    const std::lock_guard guard(lock_);
    const auto region = regions_.find(finish);
    if (region != regions_.end() && region->second.failure) return region->second.failure;
  }
  return nullptr;
}

// ---- progress functions ----------------------------------------------------------------------

void Triggers::add(task::Scope& finish, const detail::ProgressSpec& spec) {
  auto added = std::make_unique<ProgressFunction>();
  added->spec = spec;
  added->finish = &finish;
  bool first = false;
  {
    const std::lock_guard guard(lock_);
    functions_.reserve(functions_.size() + 1);
    ProgressFunction& function = *added;
    trace::races::before(&function);
    regions_[&finish].functions.push_back(std::move(added));
    functions_.push_back(&function);
    first = !std::exchange(polled_, true);
  }
  finish.has_region.store(true, std::memory_order_relaxed);
  outstanding_.fetch_add(1, std::memory_order_release);
  if (first) add_poller(runtime_, poller_);
  wake_poller(*current_worker());  // the caller goes on, so an idle worker must call it
}

int Triggers::poll() noexcept {
  Worker& worker = *current_worker();
  const std::uint64_t before = triggered_.load(std::memory_order_relaxed);
  int ended = 0;
  for (std::size_t index = 0;; ++index) {
    ProgressFunction* function = nullptr;
    {
      const std::lock_guard guard(lock_);
      while (index < functions_.size() && functions_[index]->busy) ++index;
      if (index >= functions_.size()) break;
      function = functions_[index];
      function->busy = true;
    }
    if (call(worker, *function)) continue;
    ++ended;
    --index;  // the next function moved to this place
  }
  const auto triggered =
      static_cast<int>(triggered_.load(std::memory_order_relaxed) - before);
  if (ended + triggered == 0) watch();
  return ended + triggered;
}

namespace {

// Calls `function`; returns whether it must be called again.
bool ask(const ProgressFunction& function) {
  struct Call {
    const detail::ProgressSpec* spec;
    bool more;
  } call{&function.spec, false};
  trace::races::visit(&function, [](void* const argument) {
    Call& now = *static_cast<Call*>(argument);
    now.more = now.spec->call(now.spec->argument) != 0;
  }, &call);
  return call.more;
}

}  // namespace

// One call; returns whether the function must be called again. REQUIRES: (1)
bool Triggers::call(Worker& worker, ProgressFunction& function) noexcept {
  bool more = false;
  std::exception_ptr error;
  try {
    const InFunction in_function(worker, function);
    more = ask(function);
  } catch (...) {
    error = std::current_exception();
  }
  if (more && overdue(function)) {
    error = std::make_exception_ptr(Error(fmt::format(
        "imbrex: the progress function registered at {} still does not return 0, {} s (IMBREX_"
        "STALL_S) after the last task of the finish() at {}: it must return 0 once it has nothing "
        "left to look for",
        detail::text_of(function.spec.where), runtime_.options.STALL_S,
        detail::text_of(function.finish->where))));
    more = false;
  }
  if (!more) {
    end(worker, function, std::move(error));
    return false;
  }
  const std::lock_guard guard(lock_);
  function.busy = false;
  return true;
}

bool Triggers::overdue(const ProgressFunction& function) const noexcept {
  const std::uint64_t since = function.closing_since.load(std::memory_order_relaxed);
  const auto limit = static_cast<std::uint64_t>(runtime_.options.STALL_S);
  return since != 0 && limit != 0 && base::monotonic_ns() - since > limit * 1'000'000'000u;
}

// `function` is not called any more; (2). The error belongs to the finish() alone once that may
// end: the code that catches the error also frees it.
void Triggers::end(Worker& worker, ProgressFunction& function,
                   std::exception_ptr error) noexcept {
  if (error) {
    task::Scope& finish = *function.finish;
    task::Failure& failure = task::failure_of_nobody(error);
    finish.fail(failure);  // before the failures of the tasks that it leaves behind
    task::drop(failure);
    {
      const std::lock_guard guard(lock_);
      regions_[&finish].failure = std::move(error);
    }
    for (NamedEvent* const event : names_.give_up(finish)) {
      let_go_given_up(worker, *event);
      drop_reference(worker, *event);
    }
  }
  {
    const std::lock_guard guard(lock_);
    std::erase(functions_, &function);
  }
  fire(worker, function.ended);
  outstanding_.fetch_sub(1, std::memory_order_release);
}

// ---- the end of a scope ----------------------------------------------------------------------

void Triggers::await_functions(task::Scope& finish) {
  static constexpr detail::WaitReason reason{.kind = detail::WaitKind::event,
                                             .what = "a progress function to return 0"};
  std::vector<std::unique_ptr<ProgressFunction>> functions;
  {
    const std::lock_guard guard(lock_);
    const auto region = regions_.find(&finish);
    if (region == regions_.end()) return;
    for (const auto& function : region->second.functions) {
      function->closing_since.store(base::monotonic_ns(), std::memory_order_relaxed);
    }
    std::swap(functions, region->second.functions);
  }
  for (const auto& function : functions) {
    if (!function->ended.has_fired()) wait_for(*current_worker(), function->ended, reason);
    trace::races::after(function.get());
    if (function->spec.destroy != nullptr) function->spec.destroy(function->spec.argument);
  }
  const std::lock_guard guard(lock_);
  regions_.erase(&finish);
}

std::exception_ptr Triggers::close(task::Scope* const finish) {
  if (finish != nullptr) await_functions(*finish);
  const std::vector<NamedEvent*> events = names_.close(finish);
  Worker& worker = *current_worker();
  std::vector<const NamedEvent*> unnamed;
  for (NamedEvent* const event : events) {
    if (!event->named) unnamed.push_back(event);
    if (!detail::take(*event)) continue;
    give_up(*event, "the finish() that it was named in has ended");
    fire(worker, event->event);
  }
  std::exception_ptr error;
  if (!unnamed.empty()) {
    error = std::make_exception_ptr(Error(describe_unnamed(unnamed, finish)));
  }
  for (NamedEvent* const event : events) drop_reference(worker, *event);
  return error;
}

void close_region(task::Scope* const scope) {
  Triggers& triggers = *current_worker()->runtime->triggers;
  const std::exception_ptr error = triggers.close(scope);
  if (!error) return;
  if (scope != nullptr) {
    task::Failure& failure = task::failure_of_nobody(error);
    scope->fail(failure);
    task::drop(failure);
    return;
  }
  try {
    std::rethrow_exception(error);
  } catch (const Error& left) {
    constexpr std::string_view mark = "imbrex: ";  // prefix of report()
    base::report(std::string(std::string_view(left.what()).substr(mark.size())));
  }
}

// ---- stalls ----------------------------------------------------------------------------------

// Reports a stall in which all tasks wait while progress functions are still called. The watch of
// stall.cpp does not see it, since the workers do not come to rest.
void Triggers::watch() noexcept {
  const auto limit = static_cast<std::uint64_t>(runtime_.options.STALL_S);
  std::uint64_t next = next_look_.load(std::memory_order_relaxed);
  const std::uint64_t now = base::ticks();
  const auto gap = static_cast<std::uint64_t>(100'000 * base::ticks_per_microsecond());
  if (limit == 0 || now < next ||
      // acquire and release: one thread after the other checks
      !next_look_.compare_exchange_strong(next, now + gap, std::memory_order_acq_rel)) {
    return;
  }
  const std::uint64_t begun = runtime_.begun();
  const std::uint64_t now_ns = base::monotonic_ns();
  if (begun != looked_at_ || looked_since_ns_ == 0) {
    looked_at_ = begun;
    looked_since_ns_ = now_ns;
    reported_ = false;
    return;
  }
  if (reported_ || now_ns - looked_since_ns_ < limit * 1'000'000'000u) return;
  if (!rests(runtime_, current_worker())) return;
  const std::vector<std::string> awaited = names_.awaited();
  if (awaited.empty()) return;
  reported_ = true;
  const bool abort = runtime_.options.STALL == "abort";
  std::string text = fmt::format(
      "no task has run for {} s, progress functions still return 1, and no code has triggered "
      "these events{}",
      limit, abort ? "" : " (IMBREX_STALL=abort would end the program)");
  for (const std::string& event : awaited) text += "\n  " + event;
  base::report(text);
  note_halt(runtime_);
}

}  // namespace imbrex::sched
