// SPDX-License-Identifier: BSD-3-Clause
// Continuations: functions that are called when requests are complete (imbrex/continue.h).
#include "mpi/interfaces/continue.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "imbrex/detail/plug_ins.hpp"
#include "mpi/engine/guard_mpi.hpp"
#include "mpi/engine/handlers.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/messages/calls/give.hpp"
#include "mpi/messages/requests/request_table.hpp"

namespace imbrex::mpi {

namespace {

using messages::Given;

// One call of imbrex_continue or imbrex_continue_all. Thread safety: any thread calls complete()
// and let_go(). Invariant (1): `open_` counts the incomplete parts, and the call that makes this.
class Continuation {
 public:
  Continuation(int count, imbrex_continuation* function, void* argument)
      : function_(function), argument_(argument), statuses_(static_cast<std::size_t>(count)) {}

  void expect_one() noexcept { open_.fetch_add(1, std::memory_order_relaxed); }

  // Part `place` is complete.
  void complete(int place, const MPI_Status& status) noexcept {
    statuses_[static_cast<std::size_t>(place)] = status;
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
      if (status.MPI_ERROR != MPI_SUCCESS) code = MPI_ERR_IN_STATUS;
    }
    function_(code, static_cast<int>(statuses_.size()), statuses_.data(), argument_);
  }

  imbrex_continuation* function_;
  void* argument_;
  std::vector<MPI_Status> statuses_;  // by position; the thread that completes the part writes it
  std::atomic<int> open_{1};          // any thread; see (1)
};

// The status and code of a request that was given away. Calls the error handler.
const MPI_Status& result_of(const Given& given, const Given::End end) noexcept {
  Operation& its = *given.its;
  its.status.MPI_ERROR = its.code == MPI_SUCCESS ? MPI_SUCCESS : raise_error_in_callback(its);
  if (end == Given::End::persistent) {
    print("imbrex_continue was given a persistent request, which it cannot give back: the request "
          "is freed. Use MPI_Wait or MPI_Test for persistent requests");
    its.status.MPI_ERROR = MPI_ERR_REQUEST;
  }
  return its.status;
}

// One of several requests.
struct Part : Given {
  Part(Continuation& its_whole, const int its_place)
      : Given(&Part::complete), whole(its_whole), place(its_place) {}

  static void complete(Given& self, const End end) noexcept {
    const std::unique_ptr<Part> owned(static_cast<Part*>(&self));
    owned->whole.complete(owned->place, result_of(*owned, end));
  }

  Continuation& whole;
  const int place;
};

// The only request of a continuation: nothing else is needed, so that a very large number of waits
// touches little memory.
struct OnlyOne : Given {
  OnlyOne(imbrex_continuation* const its_function, void* const its_argument)
      : Given(&OnlyOne::complete), function(its_function), argument(its_argument) {}

  static void complete(Given& self, const End end) noexcept {
    auto& one = static_cast<OnlyOne&>(self);
    one.end = end;
    run_handler(one.handler());
  }
  [[nodiscard]] Handler handler() noexcept { return {&OnlyOne::run, this, true}; }
  static void run(void* const self) {
    const std::unique_ptr<OnlyOne> owned(static_cast<OnlyOne*>(self));
    MPI_Status status = result_of(*owned, owned->end);
    owned->function(status.MPI_ERROR, 1, &status, owned->argument);
  }

  imbrex_continuation* function;
  void* argument;
  End end = End::ended;
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

MPI_Status status_of_null() noexcept {
  MPI_Status status = {};
  int flag = 0;
  MPI_Request none = MPI_REQUEST_NULL;
  PMPI_Test(&none, &flag, &status);
  status.MPI_ERROR = MPI_SUCCESS;
  return status;
}

// True if it is complete already: the caller then calls finish(), or lets a handler do it.
[[nodiscard]] bool give(MPI_Request& request, Given& given) {
  const Call call{.name = "imbrex_continue", .at_once = true};
  return messages::give_request(call, request, given, false, nullptr) == messages::Gave::complete;
}

void require(const bool right, const std::string& what) {
  if (!right) throw Error("imbrex: imbrex_continue is given " + what);
}

}  // namespace

void continue_all(const int count, MPI_Request requests[], imbrex_continuation* const function,
                  void* const argument) {
  note_asked_for();
  require_service("imbrex_continue");
  require(count >= 0, std::to_string(count) + " requests");
  require(function != nullptr, "a null pointer as function");
  require(requests != nullptr || count == 0, "a null pointer as requests");
  for (int i = 0; i < count; ++i) {
    require(requests[i] == MPI_REQUEST_NULL ||
                messages::requests().find(requests[i]).persistent() == nullptr,
            "a persistent request, which it cannot give back: use MPI_Wait or MPI_Test for it");
  }

  if (count == 1 && requests[0] != MPI_REQUEST_NULL) {
    auto one = std::make_unique<OnlyOne>(function, argument);
    if (give(requests[0], *one)) run_later(one->handler());
    static_cast<void>(one.release());
  } else {
    Continuation& whole = *std::make_unique<Continuation>(count, function, argument).release();
    for (int i = 0; i < count; ++i) {
      whole.expect_one();
      if (requests[i] == MPI_REQUEST_NULL) {
        whole.complete(i, status_of_null());
        continue;
      }
      auto part = std::make_unique<Part>(whole, i);
      if (give(requests[i], *part)) part->finish();
      static_cast<void>(part.release());
    }
    if (whole.let_go()) run_later({&Continuation::run, &whole, true});
  }
  detail::wake_poller();  // the caller goes on, so an idle worker must poll
}

void cancel_continued(imbrex_continuation* function, const Asks& argument) {
  messages::cancel_given([&](const Given& given) {
    if (given.done == &OnlyOne::complete) {
      const auto& one = static_cast<const OnlyOne&>(given);
      return one.function == function && argument(one.argument);
    }
    return given.done == &Part::complete &&
           static_cast<const Part&>(given).whole.is_of(function, argument);
  });
}

}  // namespace imbrex::mpi

extern "C" [[gnu::visibility("default")]] int imbrex_continue(MPI_Request* request,
                                                              imbrex_continuation* function,
                                                              void* argument) {
  return imbrex_continue_all(1, request, function, argument);
}

extern "C" [[gnu::visibility("default")]] int imbrex_continue_all(int count,
                                                                  MPI_Request requests[],
                                                                  imbrex_continuation* function,
                                                                  void* argument) {
  using namespace imbrex::mpi;
  return guard_mpi([=] { continue_all(count, requests, function, argument); });
}

extern "C" [[gnu::visibility("default")]] int imbrex_progress(void) {
  using namespace imbrex;
  if (!mpi::in_service()) return 0;
  if (mpi::in_handler()) {
    mpi::print("imbrex_progress is called within a continuation or an event handler, and does "
               "nothing there: the thread that runs the handler makes progress afterwards");
    return 0;
  }
  return mpi::engine().poll();
}
