// SPDX-License-Identifier: BSD-3-Clause
// Task reductions: each thread of the team has a copy of the variables, zeroed, in memory of this
// library; the compiler's code initialises and combines them.
//
// Thread safety: a taskgroup's list is constant while tasks are in it. Only its thread uses a copy:
// an explicit task stays on its thread.
#pragma once

#include <cstdint>

#include "omp/tasks/tasks.hpp"
#include "omp/region/share.hpp"

namespace imbrex::omp {

// Allocate and free the memory that `data`, the compiler's list, describes.
void allocate_reductions(std::uintptr_t* data, int threads);
void free_reductions(std::uintptr_t* data) noexcept;

// For a worksharing construct. prepare_reductions() allocates memory and notes it in `mine`, which
// is not published yet. join_reductions() is called after go_on(), with its result: all members use
// the first member's memory, and the others free theirs.
void prepare_reductions(const Implicit& member, Share& mine, std::uintptr_t* data);
void join_reductions(Implicit& member, std::uintptr_t* data, bool first);

}  // namespace imbrex::omp
