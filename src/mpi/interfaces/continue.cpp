// SPDX-License-Identifier: BSD-3-Clause
// Continuations: functions that are called when requests are complete (imbrex/continue.h). A
// request lies in an operation on the heap until the engine has completed it; an operation that
// imbrex matches or sends itself reports its own completion.
#include "mpi/interfaces/continue.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "imbrex/detail/plug_ins.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/handlers.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/messages/calls/receives.hpp"
#include "mpi/messages/matching/substitute.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/messages/requests/generalized_request.hpp"
#include "mpi/messages/requests/persistent.hpp"
#include "mpi/messages/requests/program_handles.hpp"
#include "mpi/messages/requests/request_table.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex::mpi {

namespace {

using messages::Substitute;

// One call of imbrex_continue or imbrex_continue_all. Thread safety: any thread calls complete()
// and let_go(). Invariant (1): `open_` counts the incomplete parts, and the call that makes this.
class Continuation {
 public:
  Continuation(int count, imbrex_continuation* function, void* argument)
      : function_(function), argument_(argument), statuses_(static_cast<std::size_t>(count)) {}

  void expect_one() noexcept { open_.fetch_add(1, std::memory_order_relaxed); }

  // Part `place` is complete.
  void complete(int place, const MPI_Status& status, int code) noexcept {
    MPI_Status& own = statuses_[static_cast<std::size_t>(place)];
    own = status;
    own.MPI_ERROR = code;
    if (let_go()) run_handler({&Continuation::run, this, true});
  }

  // True for the last one, which must call run().
  [[nodiscard]] bool let_go() noexcept {
    // Release: this part's status; acquire: those of all others.
    return open_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  static void run(void* self) {
    const std::unique_ptr<Continuation> owned(static_cast<Continuation*>(self));
    owned->call();
  }

  [[nodiscard]] bool is_of(imbrex_continuation* function, const Asks& argument) const {
    return function_ == function && argument(argument_);
  }

 private:
  void call() {
    int code = MPI_SUCCESS;
    for (const MPI_Status& status : statuses_) {
      if (status.MPI_ERROR == MPI_SUCCESS) continue;
      code = statuses_.size() == 1 ? status.MPI_ERROR : static_cast<int>(MPI_ERR_IN_STATUS);
    }
    function_(code, static_cast<int>(statuses_.size()), statuses_.data(), argument_);
  }

  imbrex_continuation* function_;
  void* argument_;
  std::vector<MPI_Status> statuses_;  // by position; the thread that completes the part writes it
  std::atomic<int> open_{1};          // any thread; see (1)
};

// A request of MPI.
struct Part : Operation {
  Continuation* whole = nullptr;
  int place = 0;
  MPI_Request given = MPI_REQUEST_NULL;  // the handle of the program

  static void on_completion(Operation& self) noexcept {
    const std::unique_ptr<Part> owned(static_cast<Part*>(&self));
    if (switches.traces_messages && owned->code == MPI_SUCCESS) {
      trace_completed(owned->given, owned->status, owned->task.id);
    }
    messages::requests().complete(owned->given);
    int code = owned->code == MPI_SUCCESS ? MPI_SUCCESS : raise_error_in_callback(*owned);
    if (code == MPI_SUCCESS && owned->request != MPI_REQUEST_NULL) {
      PMPI_Request_free(&owned->request);
      say_persistent();
      code = MPI_ERR_REQUEST;
    }
    owned->whole->complete(owned->place, owned->status, code);
  }

  static void say_persistent() {
    say("imbrex_continue was given a persistent request, which it cannot give back: the request is "
        "freed. Use MPI_Wait or MPI_Test for persistent requests");
  }
};

void end_of(Substitute& ours) noexcept {
  if (ours.code != MPI_SUCCESS) {
    ours.forget_freed();
  } else if (switches.traces_messages) {
    trace_completed(ours, MPI_REQUEST_NULL, ours.task.id);
  }
}

// An operation of this library.
struct OurPart : messages::Listener {
  std::unique_ptr<Substitute> operation;
  Continuation* whole = nullptr;
  int place = 0;

  static void on_completion(messages::Listener& self) noexcept {
    const std::unique_ptr<OurPart> owned(static_cast<OurPart*>(&self));
    Substitute& its = *owned->operation;
    end_of(its);
    const int code = its.code == MPI_SUCCESS ? MPI_SUCCESS : raise_error_in_callback(its);
    owned->whole->complete(owned->place, its.status, code);
  }
};

// All requests were complete already: the next round of the engine runs the continuation, since it
// must not run within the call that asks for it.
struct Later : Operation {
  Handler handler;

  static bool yes(Operation&) { return true; }
  static void run(Operation& self) noexcept {
    const std::unique_ptr<Later> owned(static_cast<Later*>(&self));
    run_handler(owned->handler);
  }
};

void run_later(const Handler& handler) {
  auto later = std::make_unique<Later>();
  later->call = {.name = "imbrex_continue"};
  later->complete = &Later::run;
  later->ask = &Later::yes;
  later->handler = handler;
  engine().add(*later.release());
}

// The only request of a continuation is an operation of this library: nothing else is needed, so
// that a very large number of waits touches little memory.
struct OnlyOne : messages::Listener {
  std::unique_ptr<Substitute> operation;
  imbrex_continuation* function;
  void* argument;

  [[nodiscard]] Handler handler() noexcept { return {&OnlyOne::run, this, true}; }
  static void on_completion(messages::Listener& self) noexcept {
    run_handler(static_cast<OnlyOne&>(self).handler());
  }
  static void run(void* self) {
    const std::unique_ptr<OnlyOne> owned(static_cast<OnlyOne*>(self));
    Substitute& its = *owned->operation;
    end_of(its);
    its.status.MPI_ERROR = its.code == MPI_SUCCESS ? MPI_SUCCESS : raise_error_in_callback(its);
    owned->function(its.status.MPI_ERROR, 1, &its.status, owned->argument);
  }
};

void continue_ours(Substitute& ours, MPI_Request& request, imbrex_continuation* function,
                      void* argument) {
  auto one = std::make_unique<OnlyOne>();
  one->fire = &OnlyOne::on_completion;
  one->operation.reset(&ours);
  one->function = function;
  one->argument = argument;
  OnlyOne& waiting = *one.release();
  messages::Token& token = *ours.token();
  if (switches.traces_messages) trace_given(request, nullptr, &ours);
  request = MPI_REQUEST_NULL;
  ours.take_handle();
  const bool waits = ours.attend(waiting);
  give_token(token);  // not the operation's: that may have ended
  if (!waits) run_later(waiting.handler());
  detail::wake_poller();  // the caller goes on, so an idle worker must poll
}

void continue_ours(Continuation& whole, int place, Substitute& ours, MPI_Request& request) {
  auto part = std::make_unique<OurPart>();
  part->fire = &OurPart::on_completion;
  part->operation.reset(&ours);
  part->whole = &whole;
  part->place = place;
  OurPart* const waiting = part.release();
  messages::Token& token = *ours.token();
  if (switches.traces_messages) trace_given(request, nullptr, &ours);
  request = MPI_REQUEST_NULL;
  ours.take_handle();
  const bool waits = ours.attend(*waiting);
  give_token(token);  // not the operation's: that may have ended
  if (!waits) OurPart::on_completion(*waiting);
}

void take_over(Continuation& whole, int place, MPI_Request& request) {
  whole.expect_one();
  if (Substitute* const ours = messages::substitute(request)) {
    return continue_ours(whole, place, *ours, request);
  }
  auto part = std::make_unique<Part>();
  part->call = messages::naming_communicator({.name = "imbrex_continue", .at_once = true}, request);
  part->complete = &Part::on_completion;
  part->whole = &whole;
  part->place = place;
  part->given = part->request = std::exchange(request, MPI_REQUEST_NULL);
  engine().add(*part.release());
}

MPI_Status status_of_null() noexcept {
  MPI_Status status = {};
  int flag = 0;
  MPI_Request none = MPI_REQUEST_NULL;
  PMPI_Test(&none, &flag, &status);
  return status;
}

int refuse(int code, const std::string& what) {
  say("imbrex_continue " + what);
  return code;
}

int continue_all(int count, MPI_Request requests[], imbrex_continuation* function,
                 void* argument) {
  if (refused("imbrex_continue")) return MPI_ERR_OTHER;
  if (!in_service()) {
    return refuse(MPI_ERR_OTHER,
                  "is called outside of MPI_Init and MPI_Finalize: call MPI_Init first");
  }
  if (count < 0) return refuse(MPI_ERR_COUNT, "is given " + std::to_string(count) + " requests");
  if (function == nullptr) return refuse(MPI_ERR_ARG, "is given a null pointer as function");
  for (int i = 0; i < count; ++i) {
    if (requests[i] == MPI_REQUEST_NULL) continue;
    if (messages::requests().find(requests[i]).persistent() != nullptr) {
      return refuse(MPI_ERR_REQUEST,
                    "is given a persistent request, which it cannot give back: use MPI_Wait or "
                    "MPI_Test for it");
    }
  }

  Continuation& whole = *std::make_unique<Continuation>(count, function, argument).release();
  for (int i = 0; i < count; ++i) {
    if (requests[i] != MPI_REQUEST_NULL) {
      take_over(whole, i, requests[i]);
    } else {
      whole.expect_one();
      whole.complete(i, status_of_null(), MPI_SUCCESS);
    }
  }
  if (whole.let_go()) run_later({&Continuation::run, &whole, true});
  detail::wake_poller();  // the caller goes on, so an idle worker must poll
  return MPI_SUCCESS;
}

}  // namespace

void cancel_continued(imbrex_continuation* function, const Asks& argument) {
  messages::cancel_where(
      [&](const messages::Listener& listener) {
        if (listener.fire == &OnlyOne::on_completion) {
          const auto& one = static_cast<const OnlyOne&>(listener);
          return one.function == function && argument(one.argument);
        }
        return listener.fire == &OurPart::on_completion &&
               static_cast<const OurPart&>(listener).whole->is_of(function, argument);
      },
      [&](const Operation& operation) {
        return operation.complete == &Part::on_completion &&
               static_cast<const Part&>(operation).whole->is_of(function, argument);
      });
}

}  // namespace imbrex::mpi

extern "C" [[gnu::visibility("default")]] int imbrex_continue(MPI_Request* request,
                                                              imbrex_continuation* function,
                                                              void* argument) {
  using namespace imbrex::mpi;
  note_asked_for();
  if (in_service() && function != nullptr) {
    Substitute* const ours = messages::substitute(*request);
    if (ours != nullptr && ours->token() != nullptr) {
      continue_ours(*ours, *request, function, argument);
      return MPI_SUCCESS;
    }
  }
  return continue_all(1, request, function, argument);
}

extern "C" [[gnu::visibility("default")]] int imbrex_continue_all(int count,
                                                                  MPI_Request requests[],
                                                                  imbrex_continuation* function,
                                                                  void* argument) {
  imbrex::mpi::note_asked_for();
  return imbrex::mpi::continue_all(count, requests, function, argument);
}

extern "C" [[gnu::visibility("default")]] int imbrex_progress(void) {
  using namespace imbrex;
  if (!mpi::in_service()) return 0;
  if (mpi::in_handler()) {
    mpi::say("imbrex_progress is called within a continuation or an event handler, and does "
             "nothing there: the thread that runs the handler makes progress afterwards");
    return 0;
  }
  return mpi::engine().poll();
}
