// SPDX-License-Identifier: BSD-3-Clause
// What completion queues need of continuations beside imbrex/continue.h.
#pragma once

#include <functional>

#include "imbrex/continue.h"

namespace imbrex::mpi {

// True if a continuation's argument is the one that is looked for. Called with a lock held.
using Asks = std::function<bool(const void* argument)>;

// imbrex_continue_all() for callers with a guard of their own: throws what that returns as a code.
void continue_all(int count, MPI_Request requests[], imbrex_continuation* function, void* argument);

// Asks MPI to cancel the requests that imbrex_continue() was given with this function and with an
// argument that `argument` recognises. Too late is no error.
void cancel_continued(imbrex_continuation* function, const Asks& argument);

}  // namespace imbrex::mpi
