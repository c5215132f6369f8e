// SPDX-License-Identifier: BSD-3-Clause
// The modes of making MPI progress (Castillo et al., ICS 2019, section 5), and the replacement if
// MPI or the machine cannot provide the requested one. Pure: knows no MPI.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace imbrex::mpi::threads {

enum class Mode : std::uint8_t {
  automatic,         // workers poll; a sleeping thread polls when no worker has for a while
  poll,              // workers poll, between tasks and when idle (EV-PO)
  callback,          // workers poll, and completions inside any MPI call are noticed there (CB-SW)
  shared_thread,     // a thread polls, on the processors of the workers (CT-SH)
  dedicated_thread,  // a thread polls, on a processor of its own (CT-DE)
  monitor_thread     // a thread of its own drives MPI, callbacks notice completions (CB-HW,
                     // emulated)
};

[[nodiscard]] std::string_view name_of(Mode mode) noexcept;
// REQUIRES: a valid value of IMBREX_PROGRESS.
[[nodiscard]] Mode mode_of(std::string_view option) noexcept;

// The features that modes use.
[[nodiscard]] bool has_callback(Mode mode) noexcept;
[[nodiscard]] bool has_own_processor(Mode mode) noexcept;
[[nodiscard]] bool workers_poll(Mode mode) noexcept;

// Why a callback or an own processor is not available, and the remedy; empty if it is.
struct Obstacles {
  std::string callback;
  std::string own_processor;
};

// The resources of this process.
struct Standing {
  bool started = false;   // the runtime ran before MPI_Init
  int processors = 1;     // processors that the process may use
  int of_machine = 1;     // all processors of the machine
  int ranks = 1;          // ranks of this machine that may use the same processors
};
// Why there is no processor to spare for a thread, and the remedy if there is one.
[[nodiscard]] std::string why_none_to_spare(const Standing& standing);

struct Choice {
  Mode asked;
  Mode runs;
  std::string why;  // empty if it is the requested mode
};
[[nodiscard]] Choice choose(Mode asked, const Obstacles& obstacles);

// "poll" or "poll (callback was asked for, but ...)".
[[nodiscard]] std::string describe(const Choice& choice);

}  // namespace imbrex::mpi::threads
