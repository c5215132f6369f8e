// SPDX-License-Identifier: BSD-3-Clause
// Operations of imbrex behind a handle: their completion, and their view by programs.
#include "mpi/messages/matching/substitute.hpp"

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>  // Open MPI 5: the errors of failed processes
#endif

#include <cstdio>
#include <memory>

#include "base/arch.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex::mpi::messages {

namespace {

Listener done_listener{nullptr, {}};
Listener announcing_listener{nullptr, {}};

std::atomic<std::uint64_t> unattended{0};  // any thread

[[noreturn]] void fail_two_listeners(const Call& call) noexcept {
  std::fprintf(stderr,
               "imbrex: the request of %s (%s %d, tag %d) is waited for twice, now by %s: give "
               "each request to one call only\n",
               call.name, call.kind == Kind::send ? "to" : "source", call.peer, call.tag,
               detail::describe_current_task().c_str());
  abort_all(MPI_COMM_WORLD, 1);
}

}  // namespace

MPI_Status empty_status() noexcept {
  MPI_Status status = {};
  status.MPI_SOURCE = MPI_ANY_SOURCE;
  status.MPI_TAG = MPI_ANY_TAG;
  status.MPI_ERROR = MPI_SUCCESS;
  PMPI_Status_set_elements(&status, MPI_BYTE, 0);
  PMPI_Status_set_cancelled(&status, 0);
  return status;
}

int end_kept(MPI_Request& request, int code) noexcept {
  if (code == MPI_SUCCESS || request == MPI_REQUEST_NULL) return code;
  PMPI_Cancel(&request);
  // If a message has been faster than the cancel, the receive ends, too. A wait would report the
  // failure once more.
  constexpr int looks_max = 10'000;  // a failed process may keep even that from ending
  int over = 0;
  for (int looks = 0; over == 0 && looks < looks_max; ++looks) {
    if (PMPI_Request_get_status(request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
  }
  PMPI_Request_free(&request);
  forget_kept();  // of these calls: the failure has been reported, or will be
#ifdef MPIX_ERR_PROC_FAILED_PENDING
  int error_class = code;
  PMPI_Error_class(code, &error_class);
  if (error_class == MPIX_ERR_PROC_FAILED_PENDING) return MPIX_ERR_PROC_FAILED;
#endif
  return code;
}

// ---- the operation ---------------------------------------------------------------------------

Listener* Substitute::done_mark() noexcept { return &done_listener; }
Listener* Substitute::announcing_mark() noexcept { return &announcing_listener; }

Substitute::Substitute(Communicator& its_communicator, const Kind its_kind,
                       const bool owns_type) noexcept
    : kind(its_kind),
      owns_type_(owns_type),
      life_(its_communicator.life()),
      communicator(its_communicator) {
  task = detail::current_task();
  complete = &Substitute::completed;
}

Substitute::~Substitute() {
  if (owns_type_) PMPI_Type_free(&call.type);
}

void Substitute::give_handle(Token& token) noexcept {
  owner = token;
  handle_.store(token.request, std::memory_order_relaxed);
}

void Substitute::forget_freed() noexcept {
  if (communicator.life() != life_) call.comm = MPI_COMM_NULL;
}

std::uint64_t Substitute::ended_unattended() noexcept {
  return unattended.load(std::memory_order_acquire);
}

bool Substitute::attend(Listener& listener) noexcept {
  Listener* there = nullptr;
  // Release: the completing thread sees the listener. Acquire: a failure means that it is done.
  while (!listener_.compare_exchange_strong(there, &listener, std::memory_order_acq_rel,
                                            std::memory_order_acquire)) {
    if (there == done_mark()) return false;
    if (there != announcing_mark()) fail_two_listeners(call);
    base::pause();  // a few instructions of the thread that completes it
    there = nullptr;
  }
  engine().attend();
  return true;
}

namespace {

struct WaitingTask : Listener {
  detail::EventWord event;

  static void wake(Listener& self) noexcept {
    detail::fire(static_cast<WaitingTask&>(self).event);
  }
};

}  // namespace

void wait_for(Substitute& operation) {
  const auto is_done = [](const void* const it) {
    return static_cast<const Substitute*>(it)->done();
  };
  if (ask_until(operation.call, is_done, &operation)) return;
  WaitingTask listener;
  listener.fire = &WaitingTask::wake;
  listener.woken = detail::footprint();
  if (operation.attend(listener)) detail::await(listener.event, reason_of(operation.call));
}

void Substitute::end_cancelled() noexcept {
  status = empty_status();
  PMPI_Status_set_cancelled(&status, 1);
  code = MPI_SUCCESS;
  end();
}

void Substitute::end_failed(int its_code) noexcept {
  status = empty_status();
  code = its_code;
  end();
}

void Substitute::end_like(const Operation& other, int its_code) noexcept {
  status = other.status;
  handler_ran = other.handler_ran;
  handler = other.handler;
  code = its_code;
  end();
}

void Substitute::end() noexcept {
  completed(*this);
  engine().withdraw();
}

void Substitute::completed(Operation& base) noexcept {
  Substitute& self = static_cast<Substitute&>(base);
  self.code = end_kept(self.request, self.code);
  engine().leave_feed();
  Listener* listener = self.listener_.load(std::memory_order_acquire);  // pairs with attend()
  if (listener == nullptr &&
      self.listener_.compare_exchange_strong(listener, announcing_mark(),
                                             std::memory_order_acquire,
                                             std::memory_order_acquire)) {
    engine().attend();  // no task will
    if (Token* const token = self.token()) {
      token->announced = true;
      PMPI_Grequest_complete(token->request);
    }
    // `self` may be gone from here on
    self.listener_.store(done_mark(), std::memory_order_release);
    unattended.fetch_add(1, std::memory_order_release);  // after the store above: see
                                                         // ended_unattended()
    return;
  }
  self.listener_.store(done_mark(), std::memory_order_release);
  listener->fire(*listener);
}

}  // namespace imbrex::mpi::messages
