// SPDX-License-Identifier: BSD-3-Clause
// The generalised requests that stand for operations which MPI does not know.
//
// Thread safety: any thread; one token, one thread at a time.
#pragma once

#include <mpi.h>

namespace imbrex::mpi::receive {

class Substitute;

// A generalised request that stands for an operation: the handle that the program gets. MPI is told
// that it is complete only if nobody has begun to wait by then; else it is used again, which saves
// its start and its end.
struct Token {
  MPI_Request request = MPI_REQUEST_NULL;
  Substitute* operation = nullptr;
  bool announced = false;  // MPI knows that it is complete
  Token* next = nullptr;
};

// Gives a token that stands for `operation`; null if MPI gives no more.
[[nodiscard]] Token* take_token(Substitute& operation);
// Takes a token back that the program has no more.
void give_token(Token& token) noexcept;

}  // namespace imbrex::mpi::receive
