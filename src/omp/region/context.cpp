// SPDX-License-Identifier: BSD-3-Clause
#include "omp/region/context.hpp"

#include <pthread.h>

#include "omp/environment/machine.hpp"
#include "omp/tools/events.hpp"

namespace imbrex::omp {

const detail::BodyOps implicit_body{.run = nullptr, .drop = nullptr, .destroy = nullptr};

namespace {

// The program's constructors, and those of a tool, may not have run before.
bool loaded = false;

// The calling thread's, for speed; the key owns it.
thread_local constinit Initial* own [[gnu::tls_model("initial-exec")]] = nullptr;

pthread_key_t make_key() noexcept {
  pthread_key_t key = 0;
  pthread_key_create(&key, [](void* const value) {
    own = nullptr;
    delete static_cast<Initial*>(value);
  });
  return key;
}

// A key, because its destructor runs after those of the program's thread-locals.
[[gnu::cold, gnu::noinline]] Initial& make_initial() noexcept {
  static const pthread_key_t key = make_key();
  own = new Initial;
  pthread_setspecific(key, own);
  if (tools::on() && loaded) (void)tools::listener();
  return *own;
}

}  // namespace

// These two are never inlined into code that may change its thread.
[[gnu::noinline]] Initial* initial_if_any() noexcept {
  asm volatile("");
  return own;
}

[[gnu::noinline]] Initial& initial() noexcept {
  asm volatile("");
  if (own != nullptr) [[likely]] return *own;
  return make_initial();
}

void end_load() noexcept { loaded = true; }

namespace {

void leave(const detail::WaitKind why) noexcept {
  tools::leave(why == detail::WaitKind::mpi || why == detail::WaitKind::turn);
}
void resume(const detail::RunningBody& body) noexcept {
  tools::resume(innermost(context_of(body)).record);
}

}  // namespace

void watch_switches() noexcept {
  static constexpr detail::SwitchOps switches{.leaves = &leave, .resumes = &resume};
  detail::observe_switches(switches);
}

void take_first_seat(Initial& outside) {
  if (settings().places.empty() || !outside.own_team.seats.empty()) return;
  int bound_to = -1;
  move_to(0, bound_to);
  outside.own_team.seats = {{0, 0, static_cast<int>(settings().places.size())}};
}

Context& caller() noexcept {
  Context& context = current();
  if (context.team->group != nullptr) [[likely]] return context;
  // A region that has begun in a callback has a team of its own.
  if (context.team != &initial().own_team || !detail::in_callback()) return context;
  const detail::Interrupted interrupted = detail::interrupted();
  if (Context* const below = context_in(interrupted.body)) return innermost(*below);
  if (interrupted.place == nullptr) return context;
  return *static_cast<const MemberPlace*>(interrupted.place)->member;
}

Context& around() noexcept { return context_of(detail::running_body()); }

}  // namespace imbrex::omp
