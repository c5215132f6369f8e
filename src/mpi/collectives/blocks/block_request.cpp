// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/collectives/blocks/block_request.hpp"

#include <exception>
#include <utility>

#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/messages/matching/communicators.hpp"
#include "mpi/messages/matching/substitute.hpp"
#include "mpi/messages/requests/generalized_request.hpp"

namespace imbrex::mpi::blocks {

namespace {

int code_of(const std::exception_ptr& error) noexcept {
  if (error == nullptr) return MPI_SUCCESS;
  try {
    std::rethrow_exception(error);
  } catch (const MpiError& it) {
    return it.code();
  } catch (...) {
    return MPI_ERR_OTHER;
  }
}

messages::Communicator& communicator_for(const Call& call) {
  messages::Communicator* const it = messages::communicator_of(call.comm);
  if (it == nullptr) throw make_error(call.name, MPI_ERR_OTHER, detail::describe_current_task());
  return *it;
}

}  // namespace

// The engine polls it in each round: such a round makes the future ready.
class Begun::WhenAll final : public messages::Substitute {
 public:
  explicit WhenAll(const Call& its_call)
      : Substitute(communicator_for(its_call), Kind::collective, false) {
    call = its_call;
    ask = &WhenAll::is_over;
    complete = &WhenAll::ended;
  }
  void cancel() noexcept override {}  // as in MPI, a collective cannot be cancelled

  Future<void> all;

 private:
  static bool is_over(Operation& self) { return static_cast<WhenAll&>(self).all.ready(); }
  // The error counts as taken: the call that takes the request returns its code.
  static void ended(Operation& base) noexcept {
    auto& self = static_cast<WhenAll&>(base);
    self.status = messages::empty_status();
    self.code = code_of(detail::take_failure(*detail::completion_of(self.all)));
    self.handler_ran = false;
    Substitute::completed(base);
  }
};

Begun::Begun(const Call& call) : operation_(std::make_unique<WhenAll>(call)) {
  messages::Token* const token = messages::take_token(*operation_);
  if (token == nullptr) throw make_error(call.name, MPI_ERR_OTHER, detail::describe_current_task());
  operation_->give_handle(*token);
}

Begun::~Begun() {
  if (operation_ != nullptr) messages::give_token(*operation_->token());
}

MPI_Request Begun::give(Future<void> all) noexcept {
  WhenAll& it = *operation_.release();  // the code that takes the request ends it
  it.all = std::move(all);
  const MPI_Request request = it.handle();
  engine().expect();
  engine().hand_over(it);
  detail::wake_poller();  // the caller goes on, so an idle worker must poll
  return request;
}

}  // namespace imbrex::mpi::blocks
