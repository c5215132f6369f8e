// SPDX-License-Identifier: BSD-3-Clause
// The begin of the collectives of imbrex/collective.hpp that move blocks, for calls of MPI that go
// block by block. Used by blocks.cpp.
#pragma once

#include <mpi.h>

#include "imbrex/collective.hpp"
#include "mpi/collectives/blocks/block_channel.hpp"

namespace imbrex::mpi::blocks {

// Begins the collective of `kind`. `root`: for gather and scatter.
[[nodiscard]] Collective begin(Kind kind, const SendBlocks& send, const ReceiveBlocks& receive,
                               int root, MPI_Comm comm, const CollectiveOptions& options);

}  // namespace imbrex::mpi::blocks
