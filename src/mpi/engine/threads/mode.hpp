// SPDX-License-Identifier: BSD-3-Clause
// The modes of making MPI progress (Castillo et al., ICS 2019, section 5), and which one runs when
// MPI or the machine cannot give the one that is asked for. Pure: knows no MPI.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace imbrex::mpi::threads {

enum class Mode : std::uint8_t {
  automatic,         // workers poll; a sleeping thread steps in when none has for a while
  poll,              // workers poll, between tasks and when idle (EV-PO)
  callback,          // and what completes inside any MPI call is noticed there (CB-SW)
  shared_thread,     // a thread polls, on the processors of the workers (CT-SH)
  dedicated_thread,  // a thread polls, on a processor of its own (CT-DE)
  monitor_thread     // a thread of its own drives MPI, callbacks notice (CB-HW, emulated)
};

[[nodiscard]] std::string_view name_of(Mode mode) noexcept;
// REQUIRES: a valid value of IMBREX_PROGRESS.
[[nodiscard]] Mode mode_of(std::string_view option) noexcept;

// Which modes use what.
[[nodiscard]] bool has_callback(Mode mode) noexcept;
[[nodiscard]] bool has_own_processor(Mode mode) noexcept;
[[nodiscard]] bool workers_poll(Mode mode) noexcept;

// Why a callback or an own processor cannot be had, and what to do about it; empty if it can.
struct Obstacles {
  std::string callback;
  std::string own_processor;
};

// What this process has to run on.
struct Standing {
  bool started = false;   // the runtime ran before MPI_Init
  int processors = 1;     // that the process may use
  int of_machine = 1;     // all there are
  int ranks = 1;          // of this machine that may use the same processors
};
// Why there is no processor to spare for a thread, and what to do about it where anything can be.
[[nodiscard]] std::string why_none_to_spare(const Standing& standing);

struct Choice {
  Mode asked;
  Mode runs;
  std::string why;  // empty if it is the one that was asked for
};
[[nodiscard]] Choice choose(Mode asked, const Obstacles& obstacles);

// "poll" or "poll (callback was asked for, but ...)".
[[nodiscard]] std::string describe(const Choice& choice);

}  // namespace imbrex::mpi::threads
