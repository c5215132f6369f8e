// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/requests/generalized_request.hpp"

#include <memory>

#include "mpi/messages/matching/object_pool.hpp"
#include "mpi/messages/matching/substitute.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/messages/requests/request_table.hpp"

namespace imbrex::mpi::messages {

namespace {

constinit CommonSpares<Token> all_tokens;
constinit thread_local Spares<Token, all_tokens> tokens;

// These three are called only for calls that bypass imbrex (PMPI_Wait and so on).
int query(void* state, MPI_Status* status) {
  const Substitute* const operation = static_cast<const Token*>(state)->operation;
  copy_status(operation != nullptr ? operation->status : empty_status(), status);
  return operation != nullptr ? operation->code : MPI_SUCCESS;
}
int cancel(void* state, int complete) {
  Substitute* const operation = static_cast<const Token*>(state)->operation;
  if (complete == 0 && operation != nullptr) operation->cancel();
  return MPI_SUCCESS;
}
int release(void* state) {
  const std::unique_ptr<Token> token(static_cast<Token*>(state));
  requests().forget(token->request);
  delete token->operation;
  return MPI_SUCCESS;
}

}  // namespace

[[gnu::noinline]] Token* take_token(Substitute& operation) {
  Token* token = tokens.take();
  if (token == nullptr) {
    auto unused = std::make_unique<Token>();
    if (PMPI_Grequest_start(&query, &release, &cancel, unused.get(), &unused->request) !=
        MPI_SUCCESS) {
      return nullptr;
    }
    token = unused.release();
    requests().know(token->request, {*token});
  }
  token->operation = &operation;
  return token;
}

[[gnu::noinline]] void give_token(Token& token) noexcept {
  token.operation = nullptr;
  if (token.announced) {
    MPI_Request request = token.request;
    PMPI_Request_free(&request);  // calls release()
    return;
  }
  tokens.give(token);
}

}  // namespace imbrex::mpi::messages
