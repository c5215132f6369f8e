// SPDX-License-Identifier: BSD-3-Clause
// The generalised requests that stand for operations which MPI does not know.
//
// Thread safety: any thread; one token, one thread at a time.
#pragma once

#include "mpi/messages/matching/known.hpp"

namespace imbrex::mpi::messages {

// Makes a token that stands for `operation`; null if MPI gives no more.
[[nodiscard]] Token* take_token(Substitute& operation);
// Takes back a token that the program does not have any more.
void give_token(Token& token) noexcept;

}  // namespace imbrex::mpi::messages
