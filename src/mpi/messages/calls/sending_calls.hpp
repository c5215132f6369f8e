// SPDX-License-Identifier: BSD-3-Clause
// The calls that send: a policy that learns sending tasks (fa) is told before each. The functions
// that observed.py makes call these, or observed.hpp does. Thread safety: any thread calls every
// function.
#pragma once

#include <mpi.h>

namespace imbrex::mpi::sending_calls {

// This task is about to send to `peer`; or to start requests that may send.
void message(int peer) noexcept;
void start(int count, const MPI_Request* requests) noexcept;
// A partition of a message.
void part() noexcept;
// A collective in which every rank sends, only the root, or all others.
void collective() noexcept;
void from_root(int root, MPI_Comm comm) noexcept;
void to_root(int root, MPI_Comm comm) noexcept;

// A persistent operation that sends was made with this result; the second function: a request is
// about to be freed.
void note_persistent(int code, const MPI_Request* request) noexcept;
void freed(const MPI_Request* request) noexcept;

}  // namespace imbrex::mpi::sending_calls
