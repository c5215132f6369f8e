// SPDX-License-Identifier: BSD-3-Clause
#include "omp/region/team.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/error.hpp"
#include "omp/environment/fatal.hpp"
#include "omp/environment/others.hpp"
#include "omp/region/gate.hpp"
#include "omp/region/affinity.hpp"
#include "omp/region/team_of_one.hpp"
#include "omp/environment/machine.hpp"
#include "omp/region/thread_pool.hpp"
#include "omp/region/share.hpp"
#include "omp/tools/events.hpp"

namespace imbrex::omp {

void Meeting::let_go(const Ticket ticket) noexcept {
  // No member comes meanwhile: a member that comes again has seen the new number.
  word_.store((phase(ticket.word_) + 1) << 32, std::memory_order_release);
  wake_all(&word_);
}

Team::Team() = default;
Team::~Team() = default;

Initial::Initial() : thread(take_thread_number()) {
  team = &own_team;
  variables = settings().initial;
  own_team.members = {{this}};
  own_team.busy = &busy;
  share = new Share;
}

Initial::~Initial() {
  for (const PrivateCopy& copy : copies) {
    if (copy.destroy != nullptr) copy.destroy(copy.memory);
    std::free(copy.memory);
  }
  give_back(threads);
  for (Team* const past : teams) let_go(*past);
  delete share;
  give_thread_number(thread);
}

namespace {

// The number of threads of a region (OpenMP 5.1, section 2.6.1).
int resolve_threads(const Context& context, const unsigned clause) {
  const Variables& variables = context.variables;
  if (context.team->active_level >= variables.active_levels_max) return 1;
  int threads = clause != 0 ? static_cast<int>(std::min<unsigned>(clause, INT32_MAX))
                            : variables.threads;
  if (variables.dynamic) threads = std::min(threads, settings().processors);
  return std::clamp(threads, 1, variables.thread_limit);
}

// Reserves up to `wanted` threads beside the calling one: as many as the thread limit leaves.
int reserve(const Context& context, const int wanted) noexcept {
  const int limit = context.variables.thread_limit;
  std::atomic<int>& busy = *context.team->busy;
  int now = busy.load(std::memory_order_relaxed);
  int granted = 0;
  do {
    granted = std::clamp(limit - now, 0, wanted);
  } while (!busy.compare_exchange_weak(now, now + granted, std::memory_order_relaxed));
  return granted;
}

// The binding of a region: a clause counts only if threads are bound at all.
std::uint8_t binding_of(const Context& context, const unsigned flags) noexcept {
  const std::uint8_t bind = context.variables.bind;
  return (flags & 7) != 0 && bind != 0 ? static_cast<std::uint8_t>(flags & 7) : bind;
}

}  // namespace

Variables inner_variables(const Context& context, const unsigned flags) {
  Variables variables = context.variables;
  const auto level = static_cast<std::size_t>(context.team->level) + 1;
  const Settings& now = settings();
  if (level < now.threads_by_level.size()) variables.threads = now.threads_by_level[level];
  variables.bind = binding_of(context, flags);
  if (level < now.bind_by_level.size()) {
    variables.bind = static_cast<std::uint8_t>(now.bind_by_level[level]);
  }
  return variables;
}

void list_threads(Team& team, std::vector<int> inside) {
  team.lists_threads = true;
  team.threads_inside = std::move(inside);
  team.variables.threads = team.threads_inside.front();
}

namespace {

// Whether the members of a region print their affinity. In an outermost region they do if its size
// or binding differs from the thread's last region; in a nested one if there are several members.
bool changes(const Team& team, const std::uint8_t binding) {
  if (team.level > 1) return team.size > 1;
  int& displayed = initial().displayed;
  const int now = team.size * 8 + binding;
  return std::exchange(displayed, now) != now;
}

// Chooses where the members of a region run.
void seat_members(Team& team, const Context& context, const std::uint8_t binding) {
  if (!settings().places.empty()) {
    if (context.team->seats.empty()) take_first_seat(initial());
    const Seat creator = seat_of(context);
    if (team.seats.empty() || team.creator != creator || team.binding != binding) {
      team.seats = seats_for(team.size, static_cast<Binding>(binding), creator);
      team.creator = creator;
      team.binding = binding;
      if (crowds(team.seats)) settings().crowded.store(true, std::memory_order_relaxed);
    }
  } else if (team.size > settings().processors) {
    settings().crowded.store(true, std::memory_order_relaxed);
  }
  if (settings().display_affinity) [[unlikely]] team.displayed = changes(team, binding);
}

// The outermost region of a thread uses the team and the threads that the thread keeps. A task that
// imbrex runs on a thread whose own code is suspended in a region does not.
Initial* keeper_for(const Context& context) noexcept {
  Initial& outside = initial();
  return context.team == &outside.own_team && !outside.in_region ? &outside : nullptr;
}

// Takes a team of that size that all members have left, if there is one, else a new one.
Team& take_team(Initial* const keeper, const int size) {
  constexpr std::size_t teams_max = 4;
  if (keeper != nullptr) {
    for (Team* const team : keeper->teams) {
      // acquire: pairs with let_go()
      if (team->size != size || team->present.load(std::memory_order_acquire) != 1) continue;
      team->taskgroup = nullptr;
      team->barrier.reset();
      team->singles.store(0, std::memory_order_relaxed);
      team->cancelled.store(false, std::memory_order_relaxed);
      team->work_cancelled.store(false, std::memory_order_relaxed);
      team->displayed = false;
      team->lists_threads = false;
      return *team;
    }
  }
  auto team = std::make_unique<Team>();
  team->size = size;
  team->members.resize(static_cast<std::size_t>(size));
  team->keeper = keeper;
  if (keeper != nullptr) {
    if (keeper->teams.size() == teams_max) {
      let_go(*keeper->teams.front());
      keeper->teams.erase(keeper->teams.begin());
    }
    keeper->teams.reserve(teams_max);
  }
  team->group = &detail::take_group(size);
  if (keeper != nullptr) keeper->teams.push_back(team.get());
  return *team.release();
}

Team& make_team(Context& context, const Region& region) {
  const int reserved = reserve(context, resolve_threads(context, region.threads) - 1);
  Initial* const keeper = keeper_for(context);
  Team& team = take_team(keeper, reserved + 1);
  team.busy = context.team->busy;
  team.reserved = reserved;
  team.level = context.team->level + 1;
  team.active_level = context.team->active_level + (team.size > 1 ? 1 : 0);
  team.outer = context.team;
  team.outer_number = context.number;
  team.function = region.function;
  team.data = region.data;
  team.variables = inner_variables(context, region.flags);
  if (keeper != nullptr) {
    keeper->in_region = true;
  } else if (context.team->lists_threads) {  // only a region has a list for those inside
    const std::vector<int>& listed = context.team->threads_inside;
    list_threads(team, {listed.begin() + (listed.size() > 1 ? 1 : 0), listed.end()});
  }
  team.present.store(team.size, std::memory_order_relaxed);
  if (team.first == nullptr) {
    team.first = std::make_unique<Share>();
    team.first->is_first = true;
  }
  team.shared_first = region.first != nullptr;
  if (team.shared_first) team.first->following.store(region.first, std::memory_order_relaxed);
  seat_members(team, context, binding_of(context, region.flags));
  return team;
}

void start_members(Team& team) {
  std::vector<PoolThread*>* const kept = team.keeper != nullptr ? &team.keeper->threads : nullptr;
  Waking waking;
  for (int number = 1; number < team.size; ++number) {
    const auto index = static_cast<std::size_t>(number) - 1;
    PoolThread* thread = nullptr;
    if (kept != nullptr && index < kept->size()) {
      thread = (*kept)[index];
    } else {
      thread = &take_thread();
      thread->borrowed = kept == nullptr;
      if (kept != nullptr) kept->push_back(thread);
    }
    assign(*thread, team, number, waking);
  }
}

[[gnu::cold, gnu::noinline]] void begin_record(Implicit& member) {
  Team& team = *member.team;
  member.record = tools::begin_implicit(team.record, team.size, member.number);
  if (team.shared_first) tell_begin(*member.share);
}

// The calling code becomes that member, until close_member().
Implicit& open_member(Team& team, const int number) {
  static constexpr std::source_location nowhere{};
  void* const closure = detail::create({.name = "parallel", .where = nowhere, .tied = true},
                                       implicit_body, sizeof(Implicit));
  auto& member = *::new (closure) Implicit;
  member.team = &team;
  member.number = number;
  member.variables = team.variables;
  member.taskgroup = team.taskgroup;
  member.share = team.first.get();
  if (team.shared_first) (void)go_on(member);
  team.members[static_cast<std::size_t>(number)].task = &member;
  member.place = {{team.group, number, nullptr}, &member};
  detail::join_group(member.place);
  detail::enter(closure, team.group, member.entered);
  if (suspending() != Suspending::everywhere) detail::set_blocking(true);
  if (tools::on()) [[unlikely]] begin_record(member);
  if (team.displayed) [[unlikely]] display_affinity();
  return member;
}

// The last member to arrive releases all.
Meeting::Ticket arrive(Team& team, Meeting& meeting) noexcept {
  const Meeting::Ticket ticket = meeting.arrive();
  if (ticket.is_last(team.size)) {
    team.work_cancelled.store(false, std::memory_order_relaxed);  // release: let_go()
    meeting.let_go(ticket);
  }
  return ticket;
}

void meet(Team& team, Meeting& meeting) {
  const Meeting::Ticket ticket = arrive(team, meeting);
  wait_until(meeting.address(), "barrier", [&] { return meeting.has_let_go(ticket); });
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_to_end() noexcept {
  std::fputs("\nlibgomp: A parallel region ends in a child of fork() that was made in it: the "
             "other threads of the region exist in the parent only. End the child in the region, "
             "by exit(), _exit() or exec().\n",
             stderr);
  ::_exit(EXIT_FAILURE);
}

void close_member(Implicit& member) {
  Team& team = *member.team;
  if (team.size == 0) [[unlikely]] refuse_to_end();
  const bool is_heard = member.record != nullptr;
  if (is_heard) [[unlikely]] tools::end_code();
  detail::end_scopes(nullptr, "the body of task");
  detail::wait_descendants();
  meet(team, team.end);
  const void* const code = is_heard ? tools::end_implicit(team.size) : nullptr;
  const bool creates = member.number == 0;
  if (any_begun(member)) {
    pass_all(member);
    if (creates) (void)team.first.release();  // the last member to pass it frees it
  }
  detail::leave_group(member.place);
  const detail::Entered entered = member.entered;
  detail::leave(entered);  // `member` is gone
  Initial* const keeper = team.keeper;
  if (creates && is_heard) [[unlikely]] tools::end_parallel(team.record, code);
  if (creates) team.busy->fetch_sub(team.reserved, std::memory_order_relaxed);
  if (!creates || keeper == nullptr) {
    let_go(team);
  } else {
    keeper->in_region = false;
  }
}

// `invoker`: tools::parallel_flag. Null where a region has the calling thread only: in a callback,
// and in code that runs after the end of the runtime, as the destructor of a static object may.
Team* open_team(const Region& region, const unsigned invoker, const Prepare prepare,
                void* const argument) {
  try {
    if (detail::in_callback() || !detail::join_runtime()) [[unlikely]] return nullptr;
    Context& context = current();
    const bool outermost = context.team->group == nullptr;
    if (outermost && suspending() != Suspending::everywhere) detail::set_blocking(true);
    Team& team = make_team(context, region);
    if (tools::on()) [[unlikely]] {
      watch_switches();
      const auto by_default = static_cast<unsigned>(context.variables.threads);
      tools::begin_parallel(team.record, region.threads != 0 ? region.threads : by_default,
                            invoker);
    }
    if (prepare != nullptr) prepare(team, argument);
    start_members(team);
    return &team;
  } catch (const Error& error) {
    fatal("%s", error.what());
  }
}

}  // namespace

void let_go(Team& team) noexcept {
  if (team.present.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  detail::give_group(*team.group);
  delete &team;
}

namespace {

void call_function(const Function function, void* const data) {
  if (tools::on()) [[unlikely]] return tools::call(function, data);
  function(data);
}

}  // namespace

int parallel_prepared(const Region& region, const Prepare prepare, void* const argument) {
  Team* const team = open_team(region, tools::parallel_flag::by_runtime, prepare, argument);
  if (team == nullptr) [[unlikely]] {
    begin_team_of_one(region, prepare, argument);
    region.function(region.data);
    end_team_of_one(current());
    return 1;
  }
  const int size = team->size;
  Implicit& member = open_member(*team, 0);
  call_function(region.function, region.data);
  close_member(member);
  return size;
}

void parallel(const Region& region) { (void)parallel_prepared(region, nullptr, nullptr); }

namespace {

[[gnu::cold, gnu::noinline]] void parallel_heard(const Function function, void* const data,
                                                 const unsigned threads, const unsigned flags,
                                                 const tools::Call call) {
  tools::enter(call);
  parallel({function, data, threads, flags});
}

}  // namespace

void begin_parallel(const Region& region) {
  Team* const team = open_team(region, tools::parallel_flag::by_program, nullptr, nullptr);
  if (team == nullptr) return begin_team_of_one(region, nullptr, nullptr);
  (void)open_member(*team, 0);
}

void end_parallel() {
  Implicit& member = implicit_of(current());
  return member.team->group != nullptr ? close_member(member) : end_team_of_one(member);
}

void run_member(Team& team, const int number) {
  Implicit& member = open_member(team, number);
  call_function(team.function, team.data);
  close_member(member);
}

void barrier(Context& context) {
  Team& team = *context.team;
  if (team.group == nullptr) return;
  detail::wait_descendants();
  meet(team, team.barrier);
}

void barrier_told(Context& context, const tools::Sync kind) {
  if (tools::on()) [[unlikely]] tools::begin_sync(kind);
  barrier(context);
  if (tools::on()) [[unlikely]] tools::end_sync(kind);
}

void barrier_heard(const tools::Sync kind, const tools::Call call) {
  tools::enter(call);
  barrier_told(current(), kind);
}

bool barrier_or_cancelled(Context& context, const tools::Sync kind) {
  Team& team = *context.team;
  if (team.group == nullptr) return false;
  if (team.cancelled.load(std::memory_order_acquire)) return true;
  if (tools::on()) [[unlikely]] tools::begin_sync(kind);
  detail::wait_descendants();
  const Meeting::Ticket ticket = arrive(team, team.barrier);
  wait_until(team.barrier.address(), "barrier", [&] {
    return team.barrier.has_let_go(ticket) || team.cancelled.load(std::memory_order_acquire);
  });
  if (tools::on()) [[unlikely]] tools::end_sync(kind);
  return !team.barrier.has_let_go(ticket);
}

void cancel_region(Context& context) noexcept {
  Team& team = *context.team;
  team.cancelled.store(true, std::memory_order_release);
  wake_all(team.barrier.address());
}

namespace {

// The most threads that may be in teams at one time: more than any Linux allows in a system.
constexpr int threads_max = 1 << 22;

// The thread has forked, and goes on in the child outside of all regions, with the settings that it
// had there. Threads and teams stay in the copy of the parent's memory, unused. A thread that has
// not used OpenMP gets no Initial here. An Initial reads the variables: each child of a shell would
// do so, and a child of a program before it has set them.
void begin_child() noexcept {
  if (const Context* const running = context_in(detail::running_body())) {
    for (Team* team = running->team; team != nullptr && team->group != nullptr;
         team = team->outer) {
      team->size = 0;
    }
  }
  Initial* const outside = initial_if_any();
  if (outside != nullptr) {
    outside->threads.clear();
    outside->teams.clear();
    outside->unfulfilled.clear();
    outside->in_region = false;
    outside->displayed = 0;
    outside->busy.store(1, std::memory_order_relaxed);
  }
  forget_threads();
  forget_waits();
  forget_thread_numbers(outside != nullptr ? outside->thread : -1);
  forget_look();
  tools::forget();
}

// This runs before main, as in libgomp: malformed variables are reported even if no region ever
// begins. A program that only hands LD_PRELOAD on, as a shell or mpirun does, prints nothing, and
// is not bound, because all programs that it starts would be bound, too. A program that may load a
// library with OpenMP later is bound at its first region. LLVM's runtime reads the variables at its
// first use, and its programs may set some of them in main.
[[gnu::constructor]] void at_load() {
  detail::expect_joiners(threads_max, task_stack_bytes());
  detail::in_child_of_fork(&begin_child);
  if (look_for_others() && !is_llvm()) take_first_seat(initial());
  end_load();
}

}  // namespace

}  // namespace imbrex::omp

extern "C" {

[[gnu::visibility("default")]] void GOMP_parallel(void (*function)(void*), void* data,
                                                  unsigned threads, unsigned flags) {
  if (imbrex::omp::tools::on()) [[unlikely]] {
    return imbrex::omp::parallel_heard(function, data, threads, flags,
                                       imbrex::omp::tools::this_call());
  }
  imbrex::omp::parallel({function, data, threads, flags});
}

[[gnu::visibility("default")]] void GOMP_parallel_start(void (*function)(void*), void* data,
                                                        unsigned threads) {
  imbrex::omp::tools::entered();
  imbrex::omp::begin_parallel({function, data, threads});
}

[[gnu::visibility("default")]] void GOMP_parallel_end() {
  imbrex::omp::tools::entered();
  imbrex::omp::end_parallel();
}

[[gnu::visibility("default")]] void GOMP_barrier() {
  imbrex::omp::barrier_here(imbrex::omp::tools::Sync::barrier_explicit);
}

[[gnu::visibility("default")]] bool GOMP_barrier_cancel() {
  imbrex::omp::tools::entered();
  return imbrex::omp::barrier_or_cancelled(imbrex::omp::current(),
                                           imbrex::omp::tools::Sync::barrier_explicit);
}

}
