// SPDX-License-Identifier: BSD-3-Clause
// Waits for MPI: in a task, and on threads outside of tasks.
#include "mpi/messages/matching/wait.hpp"

#include <sched.h>

#include <atomic>

#include "base/arch.hpp"
#include "imbrex/detail/observation.hpp"
#include "mpi/abi/inquiries.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/recording/paths.hpp"

namespace imbrex::mpi {

namespace {

// A round in place asks a few times, about 50 ns each, between two checks whether something else
// has become ready. After rounds_of_spinning the processor is yielded to other processes each time,
// because ranks may share it. After in_place_ns_max the task suspends after all: reports then show
// its wait completely, and the cost of a wake-up is small beside the wait. The limit is one of
// time, since other processes may keep the yielded processor.
constexpr int asks_per_round = 8;
constexpr int rounds_of_spinning = 250;
constexpr std::uint64_t in_place_ns_max = 5'000'000;

// One thread polls in place at a time: two threads that spin inside one MPI cost 100 times the
// latency of one when they share processors (measured with Open MPI). A race lets two in; that is
// slow, not wrong.
std::atomic<bool> someone_in_place{false};

// True if this worker has nothing better to do than to spin for its own operation. Other waiting
// tasks need the engine, and a worker that runs them as soon as their operations are complete.
bool nothing_else_runs() noexcept { return detail::nothing_ready() && !engine().attended(); }

// The running task is shown as idle while this lives.
class Idle {
 public:
  explicit Idle(const char* const call) noexcept {
    someone_in_place.store(true, std::memory_order_relaxed);
    detail::begin_idle(call);
  }
  ~Idle() {
    detail::end_idle();
    someone_in_place.store(false, std::memory_order_relaxed);
  }
  Idle(const Idle&) = delete;
  Idle& operator=(const Idle&) = delete;
};

// Calls `ask` until it returns true, then returns true; false if the task should suspend.
template <class Ask>
bool spin_in_place(const char* const call, Ask ask) {
  if (someone_in_place.load(std::memory_order_relaxed) || !nothing_else_runs() ||
      detail::workers_share()) {
    return false;
  }
  const Idle idle(call);
  const std::uint64_t begin = base::monotonic_ns();
  for (int round = 0; nothing_else_runs(); ++round) {
    if (round > rounds_of_spinning) {
      sched_yield();
      if (base::monotonic_ns() - begin > in_place_ns_max) return false;
    }
    for (int i = 0; i < asks_per_round; ++i) {
      if (ask()) return true;
    }
    if (engine().must_feed()) engine().poll();  // receives without a waiting task
    if (round % 16 == 15) paths::poll();        // as rarely as costs nothing
    check::poll_ranks();
  }
  return false;
}

// For a thread outside of tasks: it has nothing else to do.
template <class Ask>
void spin_outside(Ask ask) {
  for (int round = 0; !ask(); ++round) {
    if (in_service()) engine().poll();
    check::poll_ranks();
    if (round > rounds_of_spinning) sched_yield();
  }
}

// Asks in a Callback, since MPI may call the user's functions. True once there is an answer.
bool ask_once(const Call& call, const Question& question, Outcome* outcome) {
  const Callback callback(call);
  int done = 0;
  *outcome = question.function(question.arguments, &done);
  return done != 0 || outcome->code != MPI_SUCCESS;
}

struct WaitingOperation : Operation {
  detail::EventWord event;
  check::Waiting* waiting = nullptr;

  static void wake(Operation& base) noexcept {
    auto& self = static_cast<WaitingOperation&>(base);
    if (self.waiting != nullptr) self.waiting->set_over();
    detail::fire(self.event);
  }
};

// Suspends. `operation` is complete afterwards.
void suspend(WaitingOperation& operation) {
  const detail::WaitReason reason = reason_of(operation.call);
  operation.complete = &WaitingOperation::wake;
  engine().add(operation);
  detail::await(operation.event, reason);
}

struct AskingOperation : WaitingOperation {
  Question question;

  // Called by the engine, within a Callback.
  static bool ask(Operation& base) {
    AskingOperation& self = static_cast<AskingOperation&>(base);
    int done = 0;
    const Outcome outcome = self.question.function(self.question.arguments, &done);
    self.take(outcome);
    return done != 0 || outcome.code != MPI_SUCCESS;
  }
};

}  // namespace

detail::WaitReason reason_of(const Call& call) noexcept {
  const std::int64_t bytes = bytes_of(call.count, call.type);
  return {.kind = detail::WaitKind::mpi,
          .what = call.name,
          .peer = call.peer == Call::none ? -1 : call.peer,
          .tag = call.tag == Call::none ? -1 : call.tag,
          .bytes = bytes < 0 ? 0 : static_cast<std::size_t>(bytes),
          .communicator = (std::uint64_t)call.comm};
}

// In a function that MPI calls nothing suspends, also not in a call of imbrex from there.
void go_on_asking(const char* const call) {
  detail::go_on_asking(call, in_service() && depth_in_next() == 0);
}

void copy_status(const MPI_Status& from, MPI_Status* to) noexcept {
  if (to == MPI_STATUS_IGNORE) return;
  const int error = to->MPI_ERROR;
  *to = from;
  to->MPI_ERROR = error;
}

std::span<const MPI_Request> requests_of(const Operation& operation) noexcept {
  if (operation.ask == nullptr) return {&operation.request, 1};
  if (operation.ask != &AskingOperation::ask) return {};
  return static_cast<const AskingOperation&>(operation).question.requests;
}

int end_failed_call(const Call& call, const Outcome& outcome) {
  if (!outcome.owed) return call_kept(outcome.kept, outcome.code);
  Call owing = call;
  owing.name_handler(outcome);
  return raise_error(owing, outcome.code);
}

bool ask_in_place(const Call& call, const Question& question, Outcome* outcome) {
  const auto ask = [&] { return ask_once(call, question, outcome); };
  return ask() || spin_in_place(call.name, ask);
}

int wait_until(const Call& call, Question question) {
  Outcome outcome = MPI_SUCCESS;
  if (!suspends()) {
    spin_outside([&] { return ask_once(call, question, &outcome); });
    return end_call(call, outcome);
  }
  if (ask_in_place(call, question, &outcome)) return end_call(call, outcome);

  AskingOperation operation;
  operation.call = call;
  operation.question = question;
  operation.Operation::ask = &AskingOperation::ask;
  suspend(operation);
  return operation.code == MPI_SUCCESS ? MPI_SUCCESS : raise_error(operation);
}

int wait_pending(const Call& call, MPI_Request& request, MPI_Status* status,
                 check::Waiting* const waiting) {
  auto test = [&](int* done) {
    if (waiting != nullptr) waiting->begin_asking();
    const Outcome outcome = completion::Test(call.owes_handler(), &request, done, status);
    if (waiting != nullptr) waiting->end_asking(*done != 0 || outcome.code != MPI_SUCCESS);
    return outcome;
  };
  Outcome outcome = MPI_SUCCESS;
  const auto ask = [&] { return ask_once(call, question(test), &outcome); };
  if (!suspends()) {
    if (must_poll()) {
      spin_outside(ask);
    } else {
      if (waiting != nullptr) waiting->begin_asking();
      const Callback callback(call);
      outcome = completion::Wait(call.owes_handler(), &request, status);
      if (waiting != nullptr) waiting->end_asking(true);
    }
    return end_call(call, outcome);
  }
  if (call.is_tested_singly) {
    Question alone = question(test);
    alone.requests = {&request, 1};
    return wait_until(call, alone);
  }
  if (spin_in_place(call.name, ask)) return end_call(call, outcome);

  WaitingOperation operation;
  operation.call = call;
  operation.request = request;
  operation.waiting = waiting;
  if (waiting != nullptr) {
    waiting->enter(1, &request);
    if (waiting->code() != MPI_SUCCESS) return waiting->code();
    waiting->hand_over();
  }
  suspend(operation);
  request = operation.request;
  copy_status(operation.status, status);
  return operation.code == MPI_SUCCESS ? MPI_SUCCESS : raise_error(operation);
}

bool ask_until(const Call& call, bool (*const is_done)(const void* what), const void* const what) {
  if (!suspends()) {
    spin_outside([&] { return is_done(what); });
    return true;
  }
  const auto ask = [&] {
    engine().poll();
    return is_done(what);
  };
  // If other tasks wait, too, a thread polls for them, and one more check for each message costs
  // too much.
  return (!engine().attended() && ask()) || spin_in_place(call.name, ask);
}

void Countdown::count_down() noexcept {
  if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) detail::fire(event_);
}

void Countdown::wait(const Call& call) {
  if (suspends()) {
    engine().poll();
    detail::await(event_, reason_of(call));
  } else {
    spin_outside([&] { return event_.has_fired(); });
  }
}

}  // namespace imbrex::mpi
