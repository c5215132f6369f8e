// SPDX-License-Identifier: BSD-3-Clause
#include "omp/context.hpp"

#include <pthread.h>

#include "omp/gate.hpp"
#include "omp/pool.hpp"
#include "omp/sharing/share.hpp"
#include "omp/team.hpp"

namespace imbrex::omp {

const detail::BodyOps implicit_body{.run = nullptr, .drop = nullptr, .destroy = nullptr};

void Meeting::let_go(const Ticket ticket) noexcept {
  // Nobody comes meanwhile: who comes again has seen the new number.
  word_.store((phase(ticket.word_) + 1) << 32, std::memory_order_release);
  wake_all(&word_);
}

Team::Team() = default;
Team::~Team() = default;

Initial::Initial() {
  team = &alone;
  variables = settings().initial;
  alone.members = {{this}};
  alone.busy = &busy;
  share = new Share;
}

Initial::~Initial() {
  give_back(threads);
  for (Team* const past : teams) let_go(*past);
  delete share;
}

namespace {

pthread_key_t make_key() noexcept {
  pthread_key_t key = 0;
  pthread_key_create(&key, [](void* const value) { delete static_cast<Initial*>(value); });
  return key;
}

}  // namespace

// A key and not a thread_local: its destructor runs when those of the program's are through, and
// current() is never inlined into code that may change its thread.
[[gnu::noinline]] Initial& initial() noexcept {
  static const pthread_key_t key = make_key();
  auto* found = static_cast<Initial*>(pthread_getspecific(key));
  if (found == nullptr) {
    found = new Initial;
    pthread_setspecific(key, found);
  }
  return *found;
}

Context& around() noexcept { return context_of(detail::running_body()); }

}  // namespace imbrex::omp
