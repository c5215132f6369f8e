// SPDX-License-Identifier: BSD-3-Clause
// Which calls send: a policy that learns which tasks do (fa) is told before each. The functions
// that told.py makes call these, or told.hpp does. Thread safety: every function, any thread.
#pragma once

#include <mpi.h>

namespace imbrex::mpi::sending_calls {

// This task is about to send to `peer`; or to start what may be sends.
void message(int peer) noexcept;
void start(int count, const MPI_Request* requests) noexcept;
// A partition of a message.
void part() noexcept;
// A collective in which every rank sends, only the root, or all others.
void collective() noexcept;
void from_root(int root, MPI_Comm comm) noexcept;
void to_root(int root, MPI_Comm comm) noexcept;

// A persistent operation that sends, of this rank, was made with this outcome; a request is about
// to be freed.
void note_persistent(int code, const MPI_Request* request) noexcept;
void freed(const MPI_Request* request) noexcept;

}  // namespace imbrex::mpi::sending_calls
