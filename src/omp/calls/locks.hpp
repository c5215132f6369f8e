// SPDX-License-Identifier: BSD-3-Clause
// The lock of critical regions and of omp_set_lock(), a word in the program's memory that is 0
// while it is free. locks.cpp says how it works.
//
// Thread safety: any thread.
#pragma once

#include "omp/tools/events.hpp"

namespace imbrex::omp {

// Takes the lock. `what`, a literal, names the wait in reports. Suspends.
void take(int& lock, const char* what);
[[nodiscard]] bool try_take(int& lock) noexcept;
// Frees the lock. REQUIRES: the caller has taken it.
void put(int& lock) noexcept;

// These also tell a tool: a function of a face calls them, since the tool hears where that function
// was called.
[[gnu::cold]] void take_heard(int& lock, tools::Mutex kind, const char* what, tools::Call call);
[[gnu::cold]] bool try_take_heard(int& lock, tools::Call call);
[[gnu::cold]] void put_heard(int& lock, tools::Mutex kind, tools::Call call);
[[gnu::always_inline]] inline void take_here(int& lock, const tools::Mutex kind,
                                             const char* const what) {
  if (tools::on()) [[unlikely]] return take_heard(lock, kind, what, tools::this_call());
  take(lock, what);
}
[[gnu::always_inline]] inline void init_here(int& lock, const int hint) {
  tools::entered();
  lock = 0;
  if (tools::on()) [[unlikely]] {
    tools::init_lock(tools::Mutex::lock, &lock, static_cast<unsigned>(hint));
  }
}
[[gnu::always_inline]] inline void destroy_here(int& lock) {
  tools::entered();
  if (tools::on()) [[unlikely]] tools::destroy_lock(tools::Mutex::lock, &lock);
}
[[gnu::always_inline]] inline bool try_take_here(int& lock) {
  if (tools::on()) [[unlikely]] return try_take_heard(lock, tools::this_call());
  return try_take(lock);
}
[[gnu::always_inline]] inline void put_here(int& lock, const tools::Mutex kind) {
  if (tools::on()) [[unlikely]] return put_heard(lock, kind, tools::this_call());
  put(lock);
}

}  // namespace imbrex::omp
