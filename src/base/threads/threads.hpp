// SPDX-License-Identifier: BSD-3-Clause
// The threads of this process, as the system shows them: which of them run no code of the
// program's, and which sleep until another thread wakes them. Used by reports.
//
// Thread safety: any thread may call every function.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

namespace imbrex::base {

// The kernel's numbers of all threads of this process. Empty if the system does not tell.
[[nodiscard]] std::vector<pid_t> thread_ids();

// Threads that run no code of the program's: those that imbrex starts, except workers.
void add_own_thread(pid_t thread);
void remove_own_thread(pid_t thread) noexcept;
[[nodiscard]] bool is_own_thread(pid_t thread);
// Threads that another library or a tool has started for itself. Whether they call functions of the
// program's is not known.
void add_library_threads(std::span<const pid_t> threads);
[[nodiscard]] bool is_library_thread(pid_t thread);

// How a thread sleeps in a lock, a condition variable or the like (a futex). A moment's view.
struct FutexSleep {
  std::string call;       // its arguments, and how often the thread has slept; empty: it does not
  bool for_good = false;  // without a limit of time, until a thread of this process wakes it
};
[[nodiscard]] FutexSleep futex_sleep_of(pid_t thread);

}  // namespace imbrex::base
