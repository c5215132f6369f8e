// SPDX-License-Identifier: BSD-3-Clause
// The watch checks only when every worker sleeps and finds nothing, twice in a row without a begun
// task in between. Only a foreign thread can then change the graph; the values that the watch reads
// may be a moment old. Without such a thread, every wait lasts for ever, also a wait for a promise
// or an event of the program. While a plug-in has something open the watch reports nothing: the
// plug-in watches itself, by situation() and view_tasks().
#include "sched/life/stall.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/arch.hpp"
#include "base/check.hpp"
#include "base/threads/threads.hpp"
#include "diagnosis/causes.hpp"
#include "flight/writer.hpp"
#include "sched/life/life.hpp"
#include "sched/life/waits.hpp"
#include "sched/run/notes.hpp"
#include "task/access/accesses.hpp"
#include "task/failure.hpp"

namespace imbrex::sched {

using task::State;

namespace {

// Orders the tasks of a headline: first suspended tasks, then tasks that have not begun, and the
// code of threads last; older ones first.
bool tells_more(const Task& first, const Task& second) {
  const auto rank = [](const Task& task) {
    const State state = task.state.load(std::memory_order_relaxed);
    return task.is_root() ? 2 : state == State::suspended ? 0 : 1;
  };
  return std::pair(rank(first), first.id) < std::pair(rank(second), second.id);
}

// Describes the waits of two tasks at most.
std::string summary_of(const Waits& waits) {
  std::vector<Task*> tasks;
  for (const auto& [task, mine] : waits) {
    if (!mine.empty()) tasks.push_back(task);
  }
  std::ranges::sort(tasks, [](const Task* a, const Task* b) { return tells_more(*a, *b); });
  constexpr std::size_t named_max = 2;
  std::string text;
  for (std::size_t index = 0; index < std::min(tasks.size(), named_max); ++index) {
    text += fmt::format("{}{} waits for {}", index == 0 ? ": " : ", ", describe(*tasks[index]),
                        join(waits.at(tasks[index])));
  }
  if (tasks.size() > named_max) {
    const std::size_t more = tasks.size() - named_max;
    text += fmt::format(", and {} more wait{}", more, more == 1 ? "s" : "");
  }
  return text;
}

diagnosis::RankFacts facts_of(const Waits& waits) {
  diagnosis::RankFacts facts{.rank = life().rank, .ranks = life().ranks.load(), .host = {}};
  for (const auto& [task, mine] : waits) {
    for (const Wait& wait : mine) {
      facts.waits.push_back({.task = task->id, .task_text = describe(*task), .kind = wait.kind,
                             .call = wait.text, .tasks = wait.tasks});
    }
  }
  // The text then names the older task first.
  std::ranges::stable_sort(facts.waits, {}, &diagnosis::Wait::task);
  return facts;
}

// The circle of tasks, if there is one; else the waits of some tasks. The program may end now: the
// file of the flight recorder keeps the facts.
std::string cause_of(const Waits& waits) {
  const diagnosis::RankFacts facts = facts_of(waits);
  flight::keep_facts(diagnosis::write(facts));
  const std::vector<diagnosis::Finding> findings = diagnosis::find_causes({facts});
  if (findings.empty()) return summary_of(waits);
  return ": " + findings.front().text() + ". " + findings.front().advice;
}

void print(const Waits& waits, const std::string& headline) {
  constexpr std::size_t lines_max = 100;
  std::string text = headline + cause_of(waits);
  std::size_t lines = 0;
  for (const auto& [task, mine] : waits) {
    if (mine.empty()) continue;
    if (++lines > lines_max) continue;
    text += fmt::format("\n  {}: {}, waits for {}", describe(*task), state_text(*task),
                        join(mine));
  }
  if (lines > lines_max) text += fmt::format("\n  ... and {} more tasks", lines - lines_max);
  text += sched::lines(task::describe_failed());
  base::report(text);
}

// All workers sleep, no task is ready, and no plug-in watches.
bool at_rest(RuntimeState& runtime) noexcept {
  if (runtime.watched_elsewhere(*current_worker()) || runtime.groups.ready() != 0 ||
      runtime.behind_count.load(std::memory_order_acquire) != 0) {
    return false;
  }
  base::heavy_fence();  // a worker that has emptied a queue is not seen as parked: it rose before
  for (const auto& worker : runtime.workers) {
    const bool self = worker->id == 0;  // the worker that checks
    if ((!self && !worker->parked.load(std::memory_order_acquire)) ||
        worker->behind_count.load(std::memory_order_relaxed) != 0 ||
        worker->inbox.load(std::memory_order_acquire) != nullptr) {
      return false;
    }
  }
  return true;
}

enum class Outlook : std::uint8_t {
  open,     // no task waits, or a thread has begun to work
  foreign,  // a thread that is no worker could end a wait
  stuck     // no thread can end a wait
};

// Judges as collect() does, without texts; stops at the first task that a foreign thread could
// help.
Outlook look_ahead(RuntimeState& runtime) {
  constexpr std::size_t between_looks = 256;
  std::size_t count = 0;
  Outlook outlook = Outlook::stuck;
  bool anyone = false;
  const bool over = runtime.task_slots.any_of([&](std::byte* const slot) {
    auto& task = *reinterpret_cast<Task*>(slot);
    const State state = task.state.load(std::memory_order_acquire);
    if (state == State::ready || state == State::resumable) {  // on its way to a queue
      outlook = Outlook::open;
      return true;
    }
    const bool held = task::holds_access(task);
    if (!held && state == State::complete && foreign_could_end_scope(task)) {
      outlook = Outlook::foreign;
      return true;
    }
    if (state != State::suspended && state != State::created && state != State::ended && !held) {
      return false;
    }
    anyone = true;
    outlook = Outlook::foreign;
    if (held) return true;
    if (state == State::ended && foreign_could_complete(task)) return true;
    if (state == State::suspended && foreign_could_resume(task)) return true;
    if (state == State::created && foreign_could_begin(task)) return true;
    outlook = Outlook::open;  // a task that waits for this one will not wait long
    return ++count % between_looks == 0 && !at_rest(runtime);
  });
  if (over) return outlook;
  return anyone ? Outlook::stuck : Outlook::open;
}

// The threads that sleep in imbrex, by the system's ids: at rest none of them changes the graph.
std::vector<pid_t> known_threads(RuntimeState& runtime) {
  std::vector<pid_t> known{life().ending_thread.load()};
  for (const auto& worker : runtime.workers) known.push_back(worker->thread_id.load());
  const std::lock_guard guard(runtime.foreign_lock);
  for (const Worker* const worker : runtime.foreign) {
    const bool waits = worker->parked.load(std::memory_order_acquire) &&
                       worker->root->state.load(std::memory_order_acquire) == State::suspended;
    if (waits) known.push_back(worker->thread_id.load());
  }
  return known;
}

// Whether no thread is left that could end a wait: the process has no other thread, and there are
// no other ranks. Threads of an MPI library count as others, since they may call functions of the
// program.
bool is_alone(RuntimeState& runtime) {
  if (life().ranks > 1) return false;
  const std::vector<pid_t> known = known_threads(runtime);
  const std::vector<pid_t> all = base::thread_ids();
  return !all.empty() && std::ranges::all_of(all, [&known](const pid_t thread) {
    return base::is_own_thread(thread) || std::ranges::find(known, thread) != known.end();
  });
}

// A task that was released by a thread that has ended since is on its way to a queue.
bool is_anything_ready(RuntimeState& runtime) {
  return runtime.task_slots.any_of([](std::byte* const slot) {
    const State state = reinterpret_cast<Task*>(slot)->state.load(std::memory_order_acquire);
    return state == State::ready || state == State::resumable;
  });
}

Outlook outlook_of(RuntimeState& runtime) {
  const Outlook outlook = look_ahead(runtime);
  if (outlook != Outlook::foreign || !is_alone(runtime)) return outlook;
  return is_anything_ready(runtime) ? Outlook::open : Outlook::stuck;
}

}  // namespace

void watch_for_stall(RuntimeState& runtime) noexcept {
  if (!at_rest(runtime)) return;
  const std::uint64_t now = base::monotonic_ns();
  const std::uint64_t begun = runtime.begun();
  if (begun != runtime.progress_mark || runtime.last_progress.load() == 0) {
    runtime.progress_mark = begun;
    runtime.last_progress.store(now, std::memory_order_relaxed);
    runtime.stall_reported = false;
    runtime.stall_look_at = 0;
    return;
  }
  const std::uint64_t limit = static_cast<std::uint64_t>(runtime.options.STALL_S);
  const bool due =
      limit != 0 && !runtime.stall_reported &&
      now - runtime.last_progress.load(std::memory_order_relaxed) >= limit * 1'000'000'000u;
  if (now < runtime.stall_look_at && !due) return;
  const Outlook outlook = outlook_of(runtime);
  const std::uint64_t end = base::monotonic_ns();
  runtime.stall_look_at = end + 50 * (end - now);  // for a fiftieth of the time, as for polls
  if (outlook == Outlook::open || !at_rest(runtime) || runtime.begun() != begun) return;
  if (outlook == Outlook::stuck) {
    print(collect(runtime), "stall: no task can ever run again");
    report_all_failures();
    flight::note_end(flight::End::stuck);
    base::abort();
  }
  if (!due) return;
  runtime.stall_reported = true;
  const bool abort = runtime.options.STALL == "abort";
  print(collect(runtime),
        fmt::format("no task has run for {} s, and only a thread outside of imbrex could end a "
                    "wait{}",
                    limit, abort ? "" : " (IMBREX_STALL=abort would end the program)"));
  note_halt(runtime);
}

}  // namespace imbrex::sched
