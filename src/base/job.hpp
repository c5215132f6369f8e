// SPDX-License-Identifier: BSD-3-Clause
// The parallel job of this process, from the environment of the launcher: known before MPI_Init,
// and without MPI. Also tells whether another process of the job still runs.
#pragma once

#include <cstdint>
#include <string>

namespace imbrex::base {

// The rank of this process in its job; 0 if the environment does not say. Only rank 0 prints a
// message that would be the same in every process of a job.
[[nodiscard]] int job_rank() noexcept;

// A name on which all ranks of a job on a node agree, and which can be part of a file's name.
[[nodiscard]] std::string job_name();

// When the process began, in the kernel's clock ticks since its boot; 0: no such process runs.
[[nodiscard]] std::uint64_t started_at(int process) noexcept;

}  // namespace imbrex::base
