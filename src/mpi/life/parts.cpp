// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/life/parts.hpp"

#include <mpi.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <ranges>
#include <span>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "mpi/abi/request_state.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/active/active.hpp"
#include "mpi/active/post/post.hpp"
#include "mpi/calls/spare.hpp"
#include "mpi/check/checks.hpp"
#include "mpi/collectives/blocks/block_channel.hpp"
#include "mpi/collectives/blocks/blocks.hpp"
#include "mpi/collectives/order/order.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/engine/progress.hpp"
#include "mpi/engine/timing.hpp"
#include "mpi/messages/calls/sending_calls.hpp"
#include "mpi/messages/matching/communicators.hpp"
#include "mpi/messages/sends/outgoing.hpp"
#include "mpi/phasers/phaser_communicators.hpp"
#include "mpi/phasers/rank_phaser.hpp"
#include "mpi/recording/message_records.hpp"
#include "mpi/recording/paths.hpp"
#include "mpi/report/look.hpp"
#include "mpi/report/waits/private_world.hpp"
#include "mpi/report/watchdog.hpp"

namespace imbrex::mpi {

namespace {

using Clock = std::chrono::steady_clock;

// While MPI_Finalize waits for the last tasks: the time of the last completion, else zero. A task
// whose message never comes would keep it for ever, so it reports once what it waits for.
std::atomic<Clock::rep> finalize_waits_since{0};
constexpr std::chrono::seconds finalize_patience{5};

void watch_finalize(int completed) noexcept {
  Clock::rep since = finalize_waits_since.load(std::memory_order_relaxed);
  if (since == 0) return;
  const Clock::rep now = Clock::now().time_since_epoch().count();
  if (completed != 0) {
    finalize_waits_since.compare_exchange_strong(since, now, std::memory_order_relaxed);
  } else if (Clock::duration(now - since) > finalize_patience &&
             finalize_waits_since.compare_exchange_strong(since, 0, std::memory_order_relaxed)) {
    const std::string open = describe_open();
    print(open.empty() ? "MPI_Finalize waits for tasks of this rank or of other ranks"
                       : "MPI_Finalize waits for tasks that wait in MPI:" + open);
  }
}

int poll_engine(void*) noexcept {
  const progress::Timed timed(progress::polls_spent);
  progress::begin_poll();
  int completed = engine().poll();
  paths::send();
  check::poll_ranks();
  if (active::post().is_open()) completed += active::post().poll();
  watch_finalize(completed);
  return completed;
}
detail::Poller poller{.poll = &poll_engine,
                      .context = nullptr,
                      .outstanding = &engine().outstanding(),
                      .watched = &engine().held()};

// Other ranks may wait for messages that a failed task would have sent.
void end_if_a_task_failed() {
  if (!detail::report_failures()) return;
  print("MPI_Finalize: a task has failed, and other ranks may wait for its messages: all ranks "
        "are ended.");
  abort_all(MPI_COMM_WORLD, 1);
}

// ---- messages between ranks ---------------------------------------------------------------------

// The letters of paths.hpp are active messages.
void open_paths() {
  constexpr auto id = active::Id::paths;
  active::set_handler(
      id,
      [](void*, const int from, const std::span<const std::byte> letter) noexcept {
        paths::take(from, letter);
      },
      nullptr);
  static_assert(paths::letter_bytes_max <= active::message_bytes_max);
  paths::open({.send = [](const int to, const std::span<const std::byte> letter) noexcept {
                 return active::post().outbox.try_send(to, static_cast<std::uint32_t>(id), letter,
                                                       {});
               },
               .poll = []() noexcept { (void)active::post().poll(); }});
}

void open_messages(const Agreement& all) {
  active::wishes.calls_agreed = all.calls_nobody == 0;
  if (all.is_quiet == 0 || all.learns_paths != 0) active::post().open();
  if (all.learns_paths != 0) open_paths();
}

void close_messages() {
  if (paths::are_open()) paths::close();
  if (!active::post().is_open()) return;
  active::post().close();
  if (detail::started()) end_if_a_task_failed();  // a late message may have made a task
}

// ---- the table ----------------------------------------------------------------------------------

// No other thread calls MPI yet.
void make_a_topology() {
  const int one = 1;
  const int periodic = 0;
  MPI_Comm made;
  if (PMPI_Cart_create(MPI_COMM_SELF, 1, &one, &periodic, 0, &made) == MPI_SUCCESS) {
    PMPI_Comm_free(&made);
  }
}

void begin_comparing(const Agreement& all) {
  if (all.checks != 0) check::start_comparing();
}

void end_comparing() {
  if (switches.compares_ranks) check::end_comparing();
}

void note_observers() {
  switches.learns_senders = detail::learns_sends();
  if (check::on() || switches.learns_senders || switches.traces_messages) {
    switches.observes_calls.store(true, std::memory_order_relaxed);
  }
}

using BeginPart = void(const Agreement& all);
using EndPart = void();

// A part begins in the order of the table, finishes in that order, and ends in the reverse order. A
// row without `begin` belongs to a part that its first user makes: the row stands where that part
// finishes or ends.
struct LifePart {
  BeginPart* begin = nullptr;
  EndPart* finish = nullptr;
  bool finishes_without_runtime = false;  // since other ranks wait for it
  EndPart* end = nullptr;
};

constexpr LifePart life_parts[] = {
    {.begin = [](const Agreement&) { learn_to_read_requests(); }, .end = &end_reading_requests},
    {.begin = [](const Agreement&) { begin_errors(); }, .end = &end_errors},
    // Only ends: after all that calls MPI, since the calls may be errands on its thread. Its begin
    // is a row below.
    {.end = [] { progress::stop(poller); }},
    {.begin = [](const Agreement&) { start_messages(); }, .end = &end_messages},
    // Only ends: after the calls of the program, the last users of its objects.
    {.end = &messages::end_communicators},
    {.begin = [](const Agreement&) { check::start(); }},
    {.begin = [](const Agreement&) { note_observers(); }},
    {.begin = [](const Agreement&) { private_world::open(); }, .end = &private_world::close},
    {.begin = [](const Agreement&) {
       if (has<Quirk::first_topologies_crash>()) make_a_topology();
     }},
    // Only ends: the calls of the program are MPI's from here on.
    {.end = [] {
       report::note_finalize(false);
       switches.is_ending.store(true, std::memory_order_relaxed);
       switches.is_active.store(false, std::memory_order_relaxed);
       phasers::end_pools();
     }},
    // The first rows that finish are those that may still send.
    {.begin = [](const Agreement&) { sends::start(); }, .finish = &sends::finish},
    // Only finishes: before messages are closed.
    {.finish = &phasers::RankPhaser::leave_all},
    {.begin = &open_messages, .finish = &close_messages, .finishes_without_runtime = true},
    {.begin = &begin_comparing, .finish = &end_comparing, .finishes_without_runtime = true},
    // Only finishes: after the last task that may start a collective.
    {.finish = &order::end_all_orders},
    {.begin = [](const Agreement& all) { blocks::start(all.partial()); }, .finish = &blocks::end},
    // Only finishes, and last: a row before may have made a task that needs a spare thread.
    {.finish = &end_spare_threads},
    // Ends in a row above.
    {.begin = [](const Agreement&) { progress::start(poller); }},
    {.begin = [](const Agreement&) {
       if (active::calls_are_open()) active::wishes.take_calls();
     }},
    {.begin = [](const Agreement&) { report::start_watchdog(); }, .end = &report::stop_watchdog},
    // Only ends, and first.
    {.end = &check::count_findings},
};

}  // namespace

void begin_parts(const Agreement& all) {
  for (const LifePart& part : life_parts) {
    if (part.begin != nullptr) part.begin(all);
  }
}

void finish_parts() {
  const bool runs = detail::started();
  if (runs) {
    finalize_waits_since.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
    if (detail::in_task()) detail::drain();
    end_if_a_task_failed();
  }
  for (const LifePart& part : life_parts) {
    if (part.finish != nullptr && (runs || part.finishes_without_runtime)) part.finish();
  }
  finalize_waits_since.store(0, std::memory_order_relaxed);
  if (!runs) return;
  // An operation that is counted and not described is about to be uncounted by the thread that
  // completed it.
  const std::atomic<int>& outstanding = engine().outstanding();
  int open = outstanding.load(std::memory_order_acquire);
  while (open != 0 && describe_open().empty()) {
    sched_yield();
    open = outstanding.load(std::memory_order_acquire);
  }
  if (open != 0) {
    print("MPI_Finalize: " + std::to_string(open) +
          (open == 1 ? " operation is" : " operations are") +
          " still in flight, and MPI_Finalize does not wait for them:" + describe_open());
  }
}

void end_parts() {
  for (const LifePart& part : life_parts | std::views::reverse) {
    if (part.end != nullptr) part.end();
  }
}

std::string describe_open() {
  std::string text;
  for (const std::string& line : report::open_operations()) text += "\n  " + line;
  for (const std::string& line : order::describe_waiting()) text += "\n  " + line;
  for (const std::string& line : blocks::describe_open()) text += "\n  " + line;
  return text;
}

}  // namespace imbrex::mpi
