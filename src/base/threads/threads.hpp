// SPDX-License-Identifier: BSD-3-Clause
// The threads of this process, as the system shows them: which threads run no code of the program,
// and which sleep until another thread wakes them. Used by reports.
//
// Thread safety: any thread may call every function.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

namespace imbrex::base {

// The kernel's numbers of all threads of this process. Empty if the system does not tell them.
[[nodiscard]] std::vector<pid_t> thread_ids();

// Registers a thread that runs no code of the program: all threads that imbrex starts, except
// workers.
void add_own_thread(pid_t thread);
void remove_own_thread(pid_t thread) noexcept;
[[nodiscard]] bool is_own_thread(pid_t thread);
// Registers threads that another library or a tool has started for itself. They may or may not call
// functions of the program.
void add_library_threads(std::span<const pid_t> threads);
[[nodiscard]] bool is_library_thread(pid_t thread);
// In a child of fork: none of the registered threads exists.
void forget_threads() noexcept;

// How a thread sleeps in a lock, a condition variable or another futex. A moment's view.
struct FutexSleep {
  std::string call;       // its arguments, and how often the thread has slept; empty: it does not
                          // sleep
  bool for_good = false;  // no time limit: it sleeps until a thread of this process wakes it
};
[[nodiscard]] FutexSleep futex_sleep_of(pid_t thread);

}  // namespace imbrex::base
