// SPDX-License-Identifier: BSD-3-Clause
// A look at this rank: what its tasks wait for in MPI and elsewhere, and which messages are there
// that nobody receives. Used by watchdog.cpp and by MPI_Finalize.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "mpi/report/waits/wait_text.hpp"

namespace imbrex::mpi::report {

// As long as two of these are equal, no task has begun or gone on and no operation has come or
// gone.
struct Mark {
  std::uint64_t begun = 0;
  std::uint64_t messages = 0;  // active ones, sent and handled
  int open = 0;           // operations, and collectives with parts that the program holds
  // Every task waits and something is open, or asks again and again; no message waits for its turn.
  bool all_wait = false;
  bool at_rest = false;   // no task asks
  bool halted = false;    // Situation::halted
  bool keeps_others = false;  // Situation::keeps_others
  bool operator==(const Mark&) const = default;
};
[[nodiscard]] Mark mark() noexcept;

// A heading and what stands below it, 40 lines at most. `last` is a mark of a moment ago: if
// nothing has happened since, what tasks wait for outside of MPI is told too.
[[nodiscard]] Lines look(const Mark& last);

// What this rank does, as a text that stays the same while nothing goes on here; empty if the rank
// may go on by itself, or by processes outside of MPI_COMM_WORLD. `mark` is one of this moment.
[[nodiscard]] std::string standstill(const Mark& mark);

// Main is in MPI_Finalize, and nothing of the program's is left here: only a rank that is elsewhere
// could keep it waiting.
[[nodiscard]] bool only_ends(const Mark& mark) noexcept;

// The bytes of the largest message that MPI has, or of the largest that a receive takes.
[[nodiscard]] std::int64_t largest_open() noexcept;

// The running task, main mostly, is in MPI_Finalize from now on: reports say so. To be called
// there, and with false where it ends.
void note_finalize(bool begins) noexcept;

// For what stands above MPI: from now on each look has the lines that `describe` appends, each
// ended, at most `lines_max`. It is called by any thread at any time, and must not wait.
using Describe = void (*)(void* context, std::size_t lines_max, std::string& text) noexcept;
void add_description(Describe describe, void* context);

// The operations under way, one line for each kind. For MPI_Finalize.
[[nodiscard]] Lines open_operations();

}  // namespace imbrex::mpi::report
