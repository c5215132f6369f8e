// SPDX-License-Identifier: BSD-3-Clause
// The wait of a call in reports and findings; wait_text.hpp makes text of it.
#pragma once

#include <string>

#include "diagnosis/facts.hpp"
#include "imbrex/detail/observation.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/report/waits/wait_text.hpp"

namespace imbrex::mpi::report {

// REQUIRES: handles that are not freed. Without a task the wait has no text of it: that text may
// cost a second (trace/symbols.hpp), so only a report asks for it.
[[nodiscard]] Wait wait_of(const Call& call, const detail::TaskLabel& task);
[[nodiscard]] Wait wait_of(const Call& call);

[[nodiscard]] std::string name_of(MPI_Comm comm);

// The communicator, its members and its name, for facts. Each call asks MPI.
[[nodiscard]] diagnosis::Communicator facts_of(MPI_Comm comm);
// The window, its members and its name.
[[nodiscard]] diagnosis::Communicator facts_of_window(MPI_Win window);
[[nodiscard]] bool has_two_groups(MPI_Comm comm) noexcept;

}  // namespace imbrex::mpi::report
