// SPDX-License-Identifier: BSD-3-Clause
// A look at this rank: the waits of its tasks in MPI and elsewhere, and the unexpected messages.
// Used by watchdog.cpp and by MPI_Finalize.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "diagnosis/facts.hpp"
#include "mpi/report/waits/wait_text.hpp"

namespace imbrex::mpi::report {

// As long as two marks are equal, no task has begun or resumed and no operation has begun or ended.
struct Mark {
  std::uint64_t begun = 0;
  std::uint64_t messages = 0;  // active messages, sent and handled
  int open = 0;           // operations, and collectives with held parts
  // Every task waits and something is open, or every task asks repeatedly; no message waits for its
  // turn.
  bool all_wait = false;
  bool at_rest = false;   // no task asks
  bool halted = false;    // Situation::halted
  bool keeps_others = false;  // Situation::keeps_others
  bool operator==(const Mark&) const = default;
};
[[nodiscard]] Mark mark() noexcept;

struct Look {
  Lines lines;                  // a heading and its lines
  diagnosis::RankFacts facts;   // without the fields that need a watch: still_ms, may_continue
};
// `last` is a mark of a moment ago: if nothing has happened since, waits of tasks outside of MPI
// are described, too.
[[nodiscard]] Look look(const Mark& last);

// The state of this rank, as a text that stays the same while nothing goes on here; empty if the
// rank may go on by itself, or by processes outside of MPI_COMM_WORLD. `mark` is one of this
// moment.
[[nodiscard]] std::string standstill(const Mark& mark);

// Main is in MPI_Finalize, and no work of the program is left here: only another rank could keep it
// waiting.
[[nodiscard]] bool only_ends(const Mark& mark) noexcept;

// The bytes of the largest message that MPI has, or of the largest that a receive takes.
[[nodiscard]] std::int64_t largest_open() noexcept;

// The running task, mostly main, is in MPI_Finalize from now on: reports say so. Call it there, and
// with false at its end.
void note_finalize(bool begins) noexcept;

// For code above MPI: from now on each look has the lines that `describe` appends, each ended, at
// most `lines_max`. Any thread calls it at any time, and it must not wait.
using Describe = void (*)(void* context, std::size_t lines_max, std::string& text) noexcept;
void add_description(Describe describe, void* context);

// The operations in flight, one line for each kind. For MPI_Finalize.
[[nodiscard]] Lines open_operations();

}  // namespace imbrex::mpi::report
