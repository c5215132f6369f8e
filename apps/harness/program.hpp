// SPDX-License-Identifier: BSD-3-Clause
// The main of a program: MPI from start to end, errors, exit codes, and the checks that all ranks
// make together. Knows nothing of imbrex, so that programs without imbrex use it too.
#pragma once

#include <mpi.h>

#include <string>

#include "input_error.hpp"

namespace apps {

// Calls `start`, which starts MPI, then `run`, whose exit code it returns, and ends MPI. After
// HelpAsked the first rank prints the help, and the code is 0. Every rank throws the same
// InputError: the first rank prints it under `name`, and the code is 1. Any other exception may be
// of this rank alone: it is printed, and ends all ranks with code 1.
[[nodiscard]] int run_program(const char* name, int argc, char** argv,
                              void (*start)(int& argc, char**& argv),
                              int (*run)(int argc, char** argv));

// Replaces this process by `program` of the same folder, with the same arguments. Ends the process
// with code 1 if there is no such program.
[[noreturn]] void become(const char* program, char** argv);

// Collective. Throws InputError on every rank if `mine` is not empty on any: the text of the
// lowest such rank.
void fail_together(MPI_Comm communicator, const std::string& mine);
// Refuses, on every rank, a file that rank 0 cannot write; an empty path asks for no file.
// Collective. Throws InputError.
void check_writable(MPI_Comm communicator, const char* option, const std::string& path);

// The ranks of MPI_COMM_WORLD, and which of them this is.
[[nodiscard]] int rank_of_all();
[[nodiscard]] int ranks_of_all();

// "1 worker", "2 workers".
[[nodiscard]] std::string counted(int count, const char* noun);

}  // namespace apps
