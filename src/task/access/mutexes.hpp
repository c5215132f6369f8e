// SPDX-License-Identifier: BSD-3-Clause
// The mutexes of mutexinoutset accesses: who holds one, and who is next. The two functions that
// make a task ready stand in descriptor.hpp, since whatever makes one ready calls them.
#pragma once

#include "task/access_block.hpp"

namespace imbrex::task {

// The mutex of `access` goes to the next that waits for it.
void give_back(Access& access, ReadyList& ready) noexcept;
// Drops a reference; the last one destroys it.
void drop_mutex(Mutex* mutex) noexcept;

}  // namespace imbrex::task
