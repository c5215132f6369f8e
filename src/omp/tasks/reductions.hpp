// SPDX-License-Identifier: BSD-3-Clause
// Task reductions: each thread of the team has a copy of the variables, zeroed, in memory of ours;
// the compiler's code initialises and combines them.
//
// Thread safety: a taskgroup's list is constant while tasks are in it. A copy is its thread's: an
// explicit task stays on its thread.
#pragma once

#include <cstdint>

#include "omp/tasks/tasks.hpp"
#include "omp/sharing/share.hpp"

namespace imbrex::omp {

// Memory for what `data`, the compiler's list, describes.
void allocate_reductions(std::uintptr_t* data, int threads);
void free_reductions(std::uintptr_t* data) noexcept;

// Of a worksharing construct. prepare: `mine`, not published yet, shall own that memory if it is
// the first. join: after go_on(), with its answer.
void prepare_reductions(const Implicit& member, Share& mine, std::uintptr_t* data);
void join_reductions(Implicit& member, std::uintptr_t* data, bool first);

}  // namespace imbrex::omp
