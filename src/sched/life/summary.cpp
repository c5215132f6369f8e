// SPDX-License-Identifier: BSD-3-Clause
// The counts of the runtime: summary, trace, statistics.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.hpp"
#include "imbrex/detail/observation.hpp"
#include "sched/life/life.hpp"
#include "sched/life/visit.hpp"

namespace imbrex::sched {

// The threads are gone; the caller owns all data.
void finish_records(RuntimeState& runtime) {
  Life& now = life();
  runtime.time.stop();
  if (runtime.options.SUMMARY && !now.summary_printed) {
    const detail::Totals row = detail::totals();
    detail::print_summary({&row, 1});
  }
  now.summary_printed = false;
  if (!runtime.options.TRACE.empty()) write_trace(runtime, runtime.time, "");
}

void write_trace(RuntimeState& runtime, const trace::TimeBase& time,
                 const std::string& cut) noexcept {
  std::vector<trace::Recorder*> recorders;
  std::vector<int> spare_workers;
  for (const auto& worker : runtime.workers) {
    recorders.push_back(&worker->recorder);
    if (worker->seat.spare) spare_workers.push_back(worker->id);
  }
  {
    const std::lock_guard guard(runtime.foreign_lock);
    for (Worker* const worker : runtime.foreign) recorders.push_back(&worker->recorder);
    for (const auto& worker : runtime.ended) recorders.push_back(&worker->recorder);
  }
  const std::string missing =
      trace::write_files(runtime.options.TRACE,
                         {.rank = life().rank,
                          .ranks = life().ranks,
                          .workers = static_cast<int>(runtime.workers.size()),
                          .policy = runtime.options.POLICY,
                          .processors = runtime.processors,
                          .spare_workers = spare_workers,
                          .cut = cut,
                          .until = cut.empty() ? UINT64_MAX : time.end_ticks()},
                         time, recorders);
  if (!missing.empty()) base::report(missing);
}

}  // namespace imbrex::sched

namespace imbrex::detail {

Totals totals() noexcept {
  sched::RuntimeState* const runtime = sched::runtime();
  Totals sum{};
  if (runtime == nullptr) return sum;
  if (sched::Worker* const here = sched::current_worker()) here->recorder.count_activity();
  runtime->time.stop();
  sum.elapsed_s = static_cast<double>(runtime->time.end_ns() - runtime->time.start_ns()) * 1e-9;
  sum.workers = static_cast<double>(runtime->workers.size()) - runtime->spare_workers;
  if (const sched::Lending* const lending = runtime->lending.get()) {
    sum.lends = 1;
    sum.lent_s = lending->lent_s();
    sum.borrowed_s = lending->borrowed_s();
  }
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
  const sched::RuntimeState* const runtime = sched::runtime();
  return runtime != nullptr && runtime->options.SUMMARY;
}

void print_summary(const std::span<const Totals> ranks) {
  sched::life().summary_printed = true;
  if (ranks.empty()) return;  // another rank prints
  std::string text = sched::life().forked.is_child
                         ? fmt::format("imbrex: process {}, a child of fork():\n", getpid())
                         : std::string();
  const bool lends = std::ranges::any_of(ranks, [](const Totals& row) { return row.lends != 0; });
  text += fmt::format(
      "imbrex: {:>5} {:>7} {:>9} {:>10} {:>9} {:>11} {:>9} {:>9} {:>11} {:>10}{}\n", "rank",
      "workers", "elapsed s", "in task s", "idle s", "overhead s", "tasks", "steals",
      "suspensions", "polls", lends ? fmt::format(" {:>9} {:>10}", "lent s", "borrowed s") : "");
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const Totals& row = ranks[rank];
    text += fmt::format(
        "imbrex: {:>5} {:>7.0f} {:>9.3f} {:>10.3f} {:>9.3f} {:>11.3f} {:>9.0f} {:>9.0f} {:>11.0f} "
        "{:>10.0f}{}\n",
        rank, row.workers, row.elapsed_s, row.in_task_s, row.idle_s, row.overhead_s, row.tasks,
        row.steals, row.suspensions, row.polls,
        lends ? fmt::format(" {:>9.3f} {:>10.3f}", row.lent_s, row.borrowed_s) : "");
  }
  if (const std::string& limit = sched::life().quota_text; !limit.empty()) {
    text += fmt::format("imbrex: {}\n", limit);
  }
  print(text);
}

}  // namespace imbrex::detail

namespace imbrex {

Statistics statistics() noexcept {
  Statistics result;
  sched::RuntimeState* const runtime = sched::runtime();
  if (runtime == nullptr) return result;
  for (const auto& worker : runtime->workers) {
    result.tasks += worker->recorder.tasks.get();
    result.steals += worker->recorder.steals.get();
    result.suspensions += worker->recorder.suspensions.get();
    result.polls += worker->recorder.polls.get();
  }
  result.far_steals = runtime->groups.far_steals();
  runtime->task_slots.for_each([&result](std::byte* const slot) {
    const auto& task = *reinterpret_cast<const task::Task*>(slot);
    const task::State state = task.state.load(std::memory_order_acquire);
    if (state == task::State::free || task.is_root()) return;
    ++result.live_tasks;
    if (state == task::State::suspended) ++result.suspended_tasks;
  });
  result.descriptor_bytes =
      runtime->task_slots.mapped_bytes() + runtime->small_slots.mapped_bytes();
  result.stack_count = runtime->stacks.mapped();
  return result;
}

}  // namespace imbrex
