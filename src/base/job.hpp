// SPDX-License-Identifier: BSD-3-Clause
// Which process of a parallel job this is, by what launchers leave in the environment: known before
// MPI is, and without one.
#pragma once

namespace imbrex::base {

// The rank of this process in its job; 0, too, where nobody says. A message that would be the same
// in every process of a job is printed by rank 0 alone.
[[nodiscard]] int job_rank() noexcept;

}  // namespace imbrex::base
