// SPDX-License-Identifier: BSD-3-Clause
// Waiting, by the running task, for an event or a completion.
#include <fmt/format.h>

#include "base/sleep/bell.hpp"
#include "base/check.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "sched/life/life.hpp"
#include "sched/run/loop/waiting.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/polling.hpp"
#include "sched/waist/caller.hpp"
#include "task/event_word.hpp"
#include "trace/races.hpp"

namespace imbrex::detail {

std::atomic<bool> records_waits{false};

bool in_task() noexcept {
  const Worker* worker = sched::current_worker();
  if (worker == nullptr) [[unlikely]] {
    worker = sched::known_worker();
    return worker != nullptr && worker->callbacks == 0;
  }
  return worker->task != nullptr && worker->callbacks == 0;
}

bool in_spawned_task() noexcept {
  const Worker* const worker = sched::current_worker();
  return worker != nullptr && worker->task != nullptr && worker->callbacks == 0 &&
         !worker->task->is_root();
}

void set_blocking(const bool blocks) {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr) return visit_to_wait("set_blocking", [&] { set_blocking(blocks); });
  check_may_wait(*worker, "set_blocking");
  std::uint8_t& wishes = worker->task->wishes;
  wishes = static_cast<std::uint8_t>(blocks ? wishes | Task::blocking : wishes & ~Task::blocking);
}

bool is_blocking() noexcept {
  const Worker* const worker = sched::current_worker();
  if (worker == nullptr && sched::known_worker() != nullptr) [[unlikely]] {
    return sched::visit(Purpose::passes, [] { return is_blocking(); }, [] { return false; });
  }
  return worker != nullptr && worker->task != nullptr &&
         (worker->task->wishes & Task::blocking) != 0;
}

void release_by_blocks() {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr) return visit_to_wait("release_by_blocks", &release_by_blocks);
  check_may_wait(*worker, "release_by_blocks");
  worker->task->wishes |= Task::by_blocks;
}

bool releases_by_blocks() noexcept {
  const Worker* const worker = sched::current_worker();
  if (worker == nullptr && sched::known_worker() != nullptr) [[unlikely]] {
    return sched::visit(Purpose::passes, [] { return releases_by_blocks(); }, [] { return false; });
  }
  return worker != nullptr && worker->task != nullptr &&
         (worker->task->wishes & Task::by_blocks) != 0;
}

namespace {

// The first use of the runtime starts it. The event may have fired when the runtime ended, or may
// still fire after that.
template <class Call>
[[gnu::cold, gnu::noinline]] void await_outside(const EventWord& event, const char* const what,
                                                Call call) {
  const bool first = sched::life().process.load(std::memory_order_relaxed) == 0;
  sched::visit(first && !event.has_fired() ? Purpose::spawns : Purpose::waits, call, [&] {
    if (!event.has_fired() && !sched::await_after_end(event)) refuse_without_runtime(what);
  });
}

}  // namespace

[[gnu::flatten]] void await(EventWord& event, const WaitReason& reason) {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr) [[unlikely]] {
    return await_outside(event, reason.what, [&] { await(event, reason); });
  }
  if (!must_wait(*worker, event, reason.what)) [[unlikely]] return;
  sched::wait_for(*worker, event, reason);
  trace::races::after(&event);
  if (trace::happens_before::is_kept()) [[unlikely]] sched::notes::follows(reason);
}

void await(Completion& completion) {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr) [[unlikely]] {
    return await_outside(completion.event, "wait for a future", [&] { await(completion); });
  }
  const WaitReason reason{.kind = WaitKind::completion, .completion = &completion};
  if (records_waits.load(std::memory_order_relaxed)) [[unlikely]] {
    sched::notes::asks(*worker, completion);
    if (completion.event.has_fired()) {
      if (trace::happens_before::is_kept()) sched::notes::follows(reason);
      return;
    }
  }
  if (!must_wait(*worker, completion.event, "wait for a future")) [[unlikely]] return;
  if (task::is_task(completion)) {
    auto& other = static_cast<Task&>(completion);
    if (sched::run_in_place(*worker, other) && completion.event.has_fired()) {
      trace::races::after(&completion.event);
      if (trace::happens_before::is_kept()) [[unlikely]] sched::notes::follows(reason);
      return;
    }
    share(completion);
  }
  sched::notes::wait(*sched::current_worker(), completion);
  await(completion.event, reason);
  sched::notes::waited(*sched::current_worker());
}

namespace {

// Rings for the waiting thread, which owns this.
struct BlockedThread : task::Waiter {
  base::Bell bell;
  BlockedThread() noexcept {
    notify = [](Waiter& waiter, task::Outcome&) noexcept -> Waiter* {
      static_cast<BlockedThread&>(waiter).bell.notify();
      return nullptr;
    };
  }
};

[[gnu::cold]] void tell_of_block(const char* const what, const std::int64_t seconds) noexcept {
  base::report(fmt::format(
      "{} {} has waited {} s. Its thread runs no task meanwhile, so another thread must end this "
      "wait. If the callback takes a lock, no task may wait, in MPI or for another lock, while it "
      "holds that lock",
      what, place_of_callback(), seconds));
}

}  // namespace

void block(EventWord& event, const char* const what) noexcept {
  BlockedThread thread;
  if (!task::event::add(event, thread)) return;
  const std::int64_t seconds = number_option("STALL_S");
  if (thread.bell.wait(static_cast<std::uint64_t>(seconds) * 1'000'000'000)) return;
  tell_of_block(what, seconds);
  (void)thread.bell.wait(0);
}

void yield() {
  Worker* const here = sched::current_worker();
  if (here == nullptr) [[unlikely]] return visit_to_wait("yield", [] { yield(); });
  Worker& worker = *here;
  check_may_wait(worker, "yield");
  // If the poll found something, the tasks that waited for it go first: they are nearer to being
  // late than the next poll.
  if (!worker.foreign() && sched::poll(worker, true) == 0) {
    worker.runtime->last_poll.store(base::ticks(), std::memory_order_relaxed);
  }
  sched::give_way(worker, 0);
  // The program may wait for something of its own that other tasks change.
  if (trace::happens_before::is_kept()) [[unlikely]] sched::notes::follows_everything();
}

}  // namespace imbrex::detail
