// SPDX-License-Identifier: BSD-3-Clause
// Waiting in a task for MPI.
#include "wait.hpp"

#include <sched.h>

#include <atomic>

namespace imbrex::mpi {

namespace {

// A round in place asks a few times, about 50 ns each, between two looks at whether something else
// has become ready. After `patience` rounds the processor is offered to other processes each time:
// ranks may share it. After rounds_max the task suspends after all: then reports show what it waits
// for, and the cost of being woken is nothing beside the wait.
constexpr int asks_per_round = 8;
constexpr int patience = 250;
constexpr int rounds_max = 12'500;

// One thread polls in place at a time: two that spin inside one MPI cost 100 times the latency of
// one when they share processors (measured with Open MPI). A race lets two in; that is slow,
// not wrong.
std::atomic<bool> someone_in_place{false};

// True if this worker has nothing better to do than to spin for its own operation. Operations that
// are outstanding need the engine, which this thread does not serve meanwhile.
bool alone() noexcept {
  return detail::nothing_ready() && engine().outstanding().load(std::memory_order_relaxed) == 0;
}

// The running task is shown as idle while this lives.
class Idle {
 public:
  Idle() noexcept {
    someone_in_place.store(true, std::memory_order_relaxed);
    detail::begin_idle();
  }
  ~Idle() {
    detail::end_idle();
    someone_in_place.store(false, std::memory_order_relaxed);
  }
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;
};

// True once the question is answered; false if the task should make room.
bool poll_in_place(const Question& question, Said* said) {
  if (someone_in_place.load(std::memory_order_relaxed) || !alone()) return false;
  const Idle idle;
  for (int round = 0; round < rounds_max && alone(); ++round) {
    if (round > patience) sched_yield();
    const Callback callback;
    for (int i = 0; i < asks_per_round; ++i) {
      int done = 0;
      *said = question.function(question.arguments, &done);
      if (done != 0 || said->code != MPI_SUCCESS) return true;
    }
  }
  return false;
}

struct WaitingOperation : Operation {
  detail::EventWord event;

  static void wake(Operation& self) noexcept {
    detail::fire(static_cast<WaitingOperation&>(self).event);
  }
};

// Suspends. After it `operation` is complete.
void suspend(WaitingOperation& operation) {
  const Call& call = operation.call;
  int type_bytes = 0;
  if (call.type != MPI_DATATYPE_NULL) PMPI_Type_size(call.type, &type_bytes);
  const detail::WaitReason reason{
      .what = call.name,
      .mpi = true,
      .peer = call.peer,
      .tag = call.tag,
      .bytes = static_cast<std::size_t>(type_bytes) * static_cast<std::size_t>(call.count)};
  operation.complete = &WaitingOperation::wake;
  engine().add(operation);
  detail::await(operation.event, reason);
}

struct AskingOperation : WaitingOperation {
  Question question;

  // Called by the engine, which has said already that this is a callback.
  static bool ask(Operation& base) {
    AskingOperation& self = static_cast<AskingOperation&>(base);
    int done = 0;
    const Said said = self.question.function(self.question.arguments, &done);
    self.code = said.code;
    self.handler_ran = said.code != MPI_SUCCESS && !said.owed;
    return done != 0 || said.code != MPI_SUCCESS;
  }
};

// As MPI does for calls that return one status: the error field stays as it was.
void copy_status(const MPI_Status& from, MPI_Status* to) noexcept {
  if (to == MPI_STATUS_IGNORE) return;
  const int error = to->MPI_ERROR;
  *to = from;
  to->MPI_ERROR = error;
}

// Suspends.
int wait_suspended(const Call& call, const Question& question) {
  AskingOperation operation;
  operation.call = call;
  operation.question = question;
  operation.Operation::ask = &AskingOperation::ask;
  suspend(operation);
  return operation.code == MPI_SUCCESS ? MPI_SUCCESS : raise_error(operation);
}

}  // namespace

int wait_until(const Call& call, Question question) {
  int done = 0;
  Said said = MPI_SUCCESS;
  {
    const Callback callback;
    said = question.function(question.arguments, &done);
  }
  if (done == 0 && said.code == MPI_SUCCESS && !poll_in_place(question, &said)) {
    return wait_suspended(call, question);
  }
  return settle(call, said);
}

int wait_for(const Call& call, MPI_Request& request, MPI_Status* status) {
  int done = 0;
  Said said = MPI_SUCCESS;
  {
    const Callback callback;
    said = asked::Test(&request, &done, status);
  }
  if (done != 0 || said.code != MPI_SUCCESS) return settle(call, said);
  return wait_pending(call, request, status);
}

int wait_pending(const Call& call, MPI_Request& request, MPI_Status* status) {
  auto test = [&](int* done) { return asked::Test(&request, done, status); };
  Said said = MPI_SUCCESS;
  if (poll_in_place(question(test), &said)) return settle(call, said);

  WaitingOperation operation;
  operation.call = call;
  operation.request = request;
  suspend(operation);
  request = operation.request;
  copy_status(operation.status, status);
  return operation.code == MPI_SUCCESS ? MPI_SUCCESS : raise_error(operation);
}

int raise_error(const Operation& operation) {
  int code = operation.code;
  if (operation.handler.function != nullptr) {
    // As MPI would have called it: the code is MPI's, and the function may change it.
    MPI_Comm comm = operation.handler.comm;
    code = operation.handler.code;
    operation.handler.function(&comm, &code, nullptr);
    return operation.code == MPI_ERR_IN_STATUS ? MPI_ERR_IN_STATUS : code;
  }
  return settle(operation.call, {code, !operation.handler_ran});
}

int settle(const Call& call, const Said& said) {
  if (said.code == MPI_SUCCESS || !said.owed) return said.code;
  if (call.comm != MPI_COMM_NULL) {
    PMPI_Comm_call_errhandler(call.comm, said.code);
  } else if (!mpi_calls_own_handler && !call.throws) {
    PMPI_Comm_call_errhandler(MPI_COMM_SELF, said.code);  // as MPICH 5 does
  }
  return said.code;
}

}  // namespace imbrex::mpi
