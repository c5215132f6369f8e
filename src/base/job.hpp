// SPDX-License-Identifier: BSD-3-Clause
// The rank of this process in a parallel job, from the environment of the launcher: known before
// MPI_Init, and without MPI.
#pragma once

namespace imbrex::base {

// The rank of this process in its job; 0 if the environment does not say. Only rank 0 prints a
// message that would be the same in every process of a job.
[[nodiscard]] int job_rank() noexcept;

}  // namespace imbrex::base
