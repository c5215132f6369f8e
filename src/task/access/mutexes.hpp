// SPDX-License-Identifier: BSD-3-Clause
// The mutexes of mutexinoutset accesses: the holder and the next one. The two functions that make a
// task ready are in descriptor.hpp, since all code that makes a task ready calls them.
#pragma once

#include "task/access_block.hpp"

namespace imbrex::task {

// Gives the mutex of `access` to the next access that waits for it.
void give_back(Access& access, ReadyList& ready) noexcept;
// Drops a reference; the last one destroys it.
void drop_mutex(Mutex* mutex) noexcept;

}  // namespace imbrex::task
