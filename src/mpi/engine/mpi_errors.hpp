// SPDX-License-Identifier: BSD-3-Clause
// Errors of MPI: the exceptions of C++ calls, and the error handlers of communicators.
#pragma once

#include <exception>
#include <string>

#include "imbrex/mpi.hpp"
#include "mpi/abi/error_handlers.hpp"

namespace imbrex::mpi {

struct Call;
struct Operation;

// `place` is the result of detail::describe_current_task() where the operation was begun.
[[nodiscard]] MpiError make_error(const char* call, int code, const std::string& place);

// Calls the communicator's error handler, if it is still owed, for a failed operation that the
// engine completed. Returns the code for the call to return. REQUIRES: operation.code is an error.
[[nodiscard]] int raise_error(const Operation& operation);

// raise_error() for code outside of tasks, which an exception cannot reach: it is named on stderr.
[[nodiscard]] int raise_error_in_callback(const Operation& operation) noexcept;

// Calls the error handler of the call's communicator for an error that this call of the running
// task finds itself. Returns the code for the call to return.
[[nodiscard]] int raise_error(const Call& call, int code);

// "rank 2 has failed", if the MPI knows which ranks of a communicator have failed; else empty.
[[nodiscard]] std::string describe_failed(MPI_Comm comm);

// Calls PMPI_Abort, after earlier output has had time to reach the terminal.
[[noreturn]] void abort_all(MPI_Comm comm, int code) noexcept;

// Prints a line of imbrex on standard error.
void print(const std::string& text);

// The text of an Error without "imbrex: ", for a message that names imbrex itself.
[[nodiscard]] std::string unprefixed(const std::exception& error);

// Called in MPI_Init and MPI_Finalize.
void begin_errors();
void end_errors();

}  // namespace imbrex::mpi
