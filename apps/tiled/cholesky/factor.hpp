// SPDX-License-Identifier: BSD-3-Clause
// The three versions of the right-looking tiled factorisation A = L L^T that are compared.
#pragma once

#include <cstdint>

#include "../exchange.hpp"
#include "order.hpp"
#include "timed.hpp"

namespace cholesky {

// Each function returns an equal value on every rank: 0, or the order of the first leading minor
// that is not positive; the matrix is then undefined. Each overwrites the lower triangle; the cells
// above the diagonal of a diagonal tile stay as they are. Collective; called by main.

// The usual MPI + threads code: in each step one rank factors the diagonal tile, main broadcasts
// it, all threads solve the panel, main broadcasts the panel, all threads update; a barrier of the
// threads after each phase. Nothing is computed while messages travel.
[[nodiscard]] std::int64_t factor_fork_join(const Team& team, TiledMatrix& matrix,
                                            const Kernels& kernels);

// One task for each operation on a tile, and one for each message, in which plain MPI_Send and
// MPI_Recv block; one sequential loop creates them in program order on every rank.
[[nodiscard]] std::int64_t factor_tasks(const Team& team, TiledMatrix& matrix,
                                        const Kernels& kernels, const TaskOptions& options,
                                        TaskUse& use);

// Every rank inserts the tasks of factor_tasks(), without messages: the tiles that they read and
// write are data with owners. Only the priorities `panel` have a meaning here.
[[nodiscard]] std::int64_t factor_inserted(const Team& team, TiledMatrix& matrix,
                                           const Kernels& kernels, const TaskOptions& options,
                                           TaskUse& use);

}  // namespace cholesky
