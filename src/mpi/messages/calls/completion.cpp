// SPDX-License-Identifier: BSD-3-Clause
// The calls that take requests: waits, tests, cancel, free, status. Any request may stand for an
// operation of this library, which MPI does not know; requests.hpp handles arrays. A wait or test
// itself reports completed requests to a trace: before it, no code knows which of them will
// complete.
#include <algorithm>
#include <span>

#include "mpi/abi/request_state.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/messages/calls/receives.hpp"
#include "mpi/messages/calls/requests.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/matching/communicators.hpp"
#include "mpi/messages/matching/receive.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/messages/requests/generalized_request.hpp"
#include "mpi/messages/requests/persistent.hpp"
#include "mpi/messages/requests/program_handles.hpp"
#include "mpi/messages/requests/request_table.hpp"
#include "mpi/messages/sends/window.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex::mpi::messages {

namespace {

bool done_or_poll(const Substitute& operation) noexcept {
  if (!operation.done()) engine().poll();
  return operation.done();
}

// ---- one request -----------------------------------------------------------------------------

// A request of MPI that is over when this ends, also by an exception of an error handler.
struct CompletesRequest {
  explicit CompletesRequest(MPI_Request its_request) noexcept : request(its_request) {}
  ~CompletesRequest() { requests().complete(request); }
  CompletesRequest(const CompletesRequest&) = delete;
  CompletesRequest& operator=(const CompletesRequest&) = delete;
  const MPI_Request request;
};

int wait_for_mpi(const Call& call, MPI_Request* request, MPI_Status* status,
                 check::Waiting& waiting) {
  int done = 0;
  Outcome outcome = MPI_SUCCESS;
  waiting.begin_asking();
  if (may_block()) {
    const Callback callback(call);
    outcome = completion::Wait(call.owes_handler(), request, status);
    waiting.set_over();
    return end_call(call, outcome);
  }
  {
    const Callback callback(call);
    outcome = completion::Test(call.owes_handler(), request, &done, status);
  }
  const bool over = done != 0 || outcome.code != MPI_SUCCESS;
  waiting.end_asking(over);
  if (over) return end_call(call, outcome);
  return wait_pending(call, *request, status, &waiting);
}

int test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (Substitute* const ours = substitute(*request)) {
    const bool done = done_or_poll(*ours);
    *flag = done ? 1 : 0;
    note_answer("MPI_Test", done);
    return done ? conclude(*ours, request, status) : MPI_SUCCESS;
  }
  const MPI_Request before = *request;
  const Call call = naming_communicator({.name = "MPI_Test"}, before);
  MPI_Status own;
  if (switches.traces_messages && status == MPI_STATUS_IGNORE) status = &own;
  const Outcome outcome = completion::Test(call.owes_handler(), request, flag, status);
  const int code = outcome.code;
  if (switches.traces_messages && *flag != 0 && code == MPI_SUCCESS) {
    trace_completed(before, *status, 0);
  }
  const bool over = *flag != 0 || code != MPI_SUCCESS;
  if (over) {
    requests().complete(before);
  } else {
    poll_for_others();
  }
  if (before != MPI_REQUEST_NULL) note_answer("MPI_Test", over);
  return end_call(call, outcome);
}

}  // namespace

int wait(const Call& call, MPI_Request* request, MPI_Status* status) {
  check::Waiting waiting(call.name, 1, request);
  if (waiting.code() != MPI_SUCCESS) return waiting.code();
  const int refused = may_block() ? MPI_SUCCESS : check::second_wait(call.name, *request);
  if (refused != MPI_SUCCESS) return refused;
  if (Substitute* const ours = substitute(*request)) {
    if (!ours->done()) {
      waiting.enter(1, request);
      if (waiting.code() != MPI_SUCCESS) return waiting.code();
      wait_for(*ours);
    }
    waiting.set_over();
    return conclude(*ours, request, status);
  }
  const CompletesRequest before(*request);
  MPI_Status own;
  if (switches.traces_messages && status == MPI_STATUS_IGNORE) status = &own;
  const Call named = naming_communicator(call, before.request);
  const int code = wait_for_mpi(named, request, status, waiting);
  if (switches.traces_messages && code == MPI_SUCCESS) trace_completed(before.request, *status, 0);
  return code;
}

Call naming_communicator(const Call& call, MPI_Request request) noexcept {
  Call named = call;
  if (has<Quirk::errors_reach_other_handlers>()) {
    if (call.comm != MPI_COMM_NULL || request == MPI_REQUEST_NULL) return named;
    const Known known = requests().find(request);
    if (const Communicator* const on = known.posted_on()) named.comm = on->handle_unless_freed();
    if (const Persistent* const persistent = known.persistent()) {
      named.comm = persistent->communicator.handle_unless_freed();
      named.is_tested_singly = true;
    }
  }
  return named;
}

int cancel(MPI_Request* request) {
  Substitute* const ours = substitute(*request);
  if (ours == nullptr) return PMPI_Cancel(request);
  ours->cancel();  // a late cancel is no error
  return MPI_SUCCESS;
}

void cancel_where(const std::function<bool(const Listener&)>& is_listener,
                  const std::function<bool(const Operation&)>& is_operation) {
  bool found = false;
  for_each_communicator([&](Communicator& communicator) {
    found = found || communicator.cancel_of(is_listener);
  });
  if (found || sends::window().cancel_of(is_listener)) return;
  // Under the engine's lock nobody completes, and so frees, the request. An operation that is not
  // there is complete.
  engine().hold_still(
      [&is_operation](const Operation& operation) {
        if (!is_operation(operation)) return;
        // Open MPI ends the program where a request is cancelled that has been cancelled before.
        if (reads_requests && state_of(operation.request) != RequestState::pending) return;
        MPI_Request request = operation.request;  // which MPI only reads
        PMPI_Cancel(&request);
      },
      [](bool) {});
}

namespace {

int free_request(MPI_Request* request) {
  const Known known = *request == MPI_REQUEST_NULL ? Known() : requests().find(*request);
  if (const Token* const token = known.token()) {
    let_go(*token->operation);
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
  }
  if (Persistent* const persistent = known.persistent()) {
    return free_persistent(*persistent, request);
  }
  requests().complete(*request);
  return PMPI_Request_free(request);
}

int get_status(MPI_Request request, int* flag, MPI_Status* status) {
  Substitute* const ours = substitute(request);
  if (ours == nullptr) {
    const int code = PMPI_Request_get_status(request, flag, status);
    const bool over = code != MPI_SUCCESS || *flag != 0;
    if (!over) poll_for_others();
    note_answer("MPI_Request_get_status", over);
    return code;
  }
  const bool done = done_or_poll(*ours);
  *flag = done ? 1 : 0;
  if (done) copy_status(ours->status, status);
  note_answer("MPI_Request_get_status", done);
  return MPI_SUCCESS;
}

// ---- many requests ---------------------------------------------------------------------------

// True if no request can be an operation of this library, so that none need be looked up.
bool all_are_mpis(int count, const MPI_Request requests[]) noexcept {
  return !in_service() || count <= 0 || requests == nullptr ||
         (messages::requests().empty() && !check::on() && !switches.traces_messages);
}

// ---- the calls -------------------------------------------------------------------------------

// The results of these three are set before note_answer(), which may suspend.
int test_all(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  const char* const name = "MPI_Testall";
  int code = MPI_SUCCESS;
  if (all_are_mpis(count, requests)) {
    code = has<Quirk::errors_reach_other_handlers>()
               ? PMPI_Testall(count, requests, flag, statuses)
               : end_call({.name = name}, completion::test_all(count, requests, flag, statuses));
    poll_for_others();
  } else {
    Requests all(count, requests);
    code = end_call({.name = name}, all.test_all(flag, nullptr));
    if (*flag != 0 || code != MPI_SUCCESS) code = all.finish_all(code, statuses);
  }
  note_answer(name, code != MPI_SUCCESS || *flag != 0);
  return code;
}

int test_any(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  const char* const name = "MPI_Testany";
  int code = MPI_SUCCESS;
  if (all_are_mpis(count, requests)) {
    code = reads_requests
               ? end_call({.name = name},
                          completion::Testany(count, requests, index, flag, status))
               : PMPI_Testany(count, requests, index, flag, status);
    poll_for_others();
  } else {
    Requests all(count, requests);
    code = end_call({.name = name}, all.test_any(flag));
    if (*flag != 0 || code != MPI_SUCCESS) {
      code = all.finish_any(code, index, status);
    } else {
      *index = MPI_UNDEFINED;
    }
  }
  // No request is active: that counts as no answer.
  if (*flag != 0 && *index == MPI_UNDEFINED && code == MPI_SUCCESS) return code;
  note_answer(name, code != MPI_SUCCESS || *flag != 0);
  return code;
}

int test_some(int count, MPI_Request requests[], int* found, int indices[], MPI_Status statuses[]) {
  const char* const name = "MPI_Testsome";
  int code = MPI_SUCCESS;
  if (all_are_mpis(count, requests)) {
    code = reads_requests
               ? end_call({.name = name},
                          completion::Testsome(count, requests, found, indices, statuses))
               : PMPI_Testsome(count, requests, found, indices, statuses);
    poll_for_others();
  } else {
    Requests all(count, requests);
    int done = 0;
    code = end_call({.name = name}, all.test_some(&done));
    code = all.finish_some(code, found, indices, statuses);
  }
  if (*found == MPI_UNDEFINED && code == MPI_SUCCESS) return code;  // as in test_any()
  note_answer(name, code != MPI_SUCCESS || *found != 0);
  return code;
}

// wait_until() with `ask(&done)`, for a call that waits for many requests; `requests` are MPI's.
template <class Ask>
int wait_for_many(const char* name, check::Waiting& waiting,
                  const std::span<const MPI_Request> requests, Ask ask) {
  auto reported = [&](int* done) {
    waiting.begin_asking();
    const Outcome outcome = ask(done);
    waiting.end_asking(*done != 0 || outcome.code != MPI_SUCCESS);
    return outcome;
  };
  Question asked = question(reported);
  asked.requests = requests;
  return wait_until({.name = name}, asked);
}

// True if MPI may do the wait.
bool may_block(int count, const MPI_Request requests[]) noexcept {
  return mpi::may_block() && all_are_mpis(count, requests);
}

std::span<const MPI_Request> span_of(int count, const MPI_Request requests[]) noexcept {
  return {requests, static_cast<std::size_t>(std::max(count, 0))};
}

int wait_all(int count, MPI_Request requests[], MPI_Status statuses[]) {
  const char* const name = "MPI_Waitall";
  check::Waiting waiting(name, count, requests);
  if (waiting.code() != MPI_SUCCESS) return waiting.code();
  if (may_block(count, requests)) {
    waiting.begin_asking();
    if (has<Quirk::errors_reach_other_handlers>()) return PMPI_Waitall(count, requests, statuses);
    const Call call{.name = name};
    Outcome outcome = MPI_SUCCESS;
    {
      const Callback callback(call);
      outcome = completion::Testall().wait(count, requests, statuses);
    }
    return end_call(call, outcome);
  }
  completion::Testall test_all;
  if (all_are_mpis(count, requests)) {
    return wait_for_many(name, waiting, span_of(count, requests), [&](int* done) {
      return test_all(count, requests, done, statuses);
    });
  }
  Requests all(count, requests);
  all.wait_for_ours(name);
  const int code = wait_for_many(name, waiting, all.mpis(), [&](int* done) {
    const int ended = test_all.ended();
    const Outcome outcome = all.test_all(done, &test_all);
    if (*done == 0 && test_all.ended() != ended) all.keep_waiting(waiting);
    return outcome;
  });
  return all.finish_all(code, statuses);
}

// Waits until one of the requests is complete: by `block()` if MPI may do it; by `test(done)` if
// all requests are MPI's; else by `test_mixed(all, done)`, which ends with `finish(all, code)`.
template <class Block, class Test, class TestMixed, class Finish>
int wait_for_first(const char* const name, const int count, MPI_Request requests[], Block block,
                   Test test, TestMixed test_mixed, Finish finish) {
  check::Waiting waiting(name, count, requests);
  if (waiting.code() != MPI_SUCCESS) return waiting.code();
  if (may_block(count, requests)) {
    waiting.begin_asking();
    return block();
  }
  if (all_are_mpis(count, requests)) {
    return wait_for_many(name, waiting, span_of(count, requests), test);
  }
  Requests all(count, requests);
  return finish(all, wait_for_many(name, waiting, all.mpis(),
                                   [&](int* done) { return test_mixed(all, done); }));
}

int wait_any(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  return wait_for_first(
      "MPI_Waitany", count, requests,
      [&] { return PMPI_Waitany(count, requests, index, status); },
      [&](int* done) { return completion::Testany(count, requests, index, done, status); },
      [](Requests& all, int* done) { return all.test_any(done); },
      [&](Requests& all, int code) { return all.finish_any(code, index, status); });
}

int wait_some(int count, MPI_Request requests[], int* found, int indices[], MPI_Status statuses[]) {
  return wait_for_first(
      "MPI_Waitsome", count, requests,
      [&] { return PMPI_Waitsome(count, requests, found, indices, statuses); },
      [&](int* done) {
        const Outcome outcome = completion::Testsome(count, requests, found, indices, statuses);
        *done = outcome.code != MPI_SUCCESS || *found != 0;  // MPI_UNDEFINED: nothing to wait for
        return outcome;
      },
      [](Requests& all, int* done) { return all.test_some(done); },
      [&](Requests& all, int code) { return all.finish_some(code, found, indices, statuses); });
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
int get_status_any(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  const int code =
      all_are_mpis(count, requests)
          ? PMPI_Request_get_status_any(count, requests, index, flag, status)
          : Requests(count, requests).get_status_any(index, flag, status);
  note_answer("MPI_Request_get_status_any", code != MPI_SUCCESS || *flag != 0);
  return code;
}

int get_status_some(int count, MPI_Request requests[], int* found, int indices[],
                    MPI_Status statuses[]) {
  const int code =
      all_are_mpis(count, requests)
          ? PMPI_Request_get_status_some(count, requests, found, indices, statuses)
          : Requests(count, requests).get_status_some(found, indices, statuses);
  note_answer("MPI_Request_get_status_some", code != MPI_SUCCESS || *found != 0);
  return code;
}

int get_status_all(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  *flag = 1;
  for (int i = 0; i < count && *flag != 0; ++i) {
    const int code = get_status(requests[i], flag,
                                statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i]);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}
#endif

// Arguments without which a call cannot be carried out: MPI refuses them.
template <class... Result>
bool lacks(const Result*... results) noexcept {
  return ((results == nullptr) || ...);
}
template <class... Result>
bool lacks_some(const int count, const MPI_Request* const requests,
                const Result*... results) noexcept {
  return count < 0 || (count > 0 && requests == nullptr) || lacks(results...);
}

}  // namespace

}  // namespace imbrex::mpi::messages

// ---- what programs call ----------------------------------------------------------------------

#define IMBREX_REQUEST_CALL(name, parameters, arguments, lacks, call)                 \
  IMBREX_FUNCTION(name) parameters {                                                  \
    if (imbrex::mpi::messages::lacks) [[unlikely]] return PMPI_##name arguments;      \
    return imbrex::mpi::messages::call;                                               \
  }

IMBREX_REQUEST_CALL(Wait, (MPI_Request* request, MPI_Status* status), (request, status),
                    lacks(request), wait({"MPI_Wait"}, request, status))
IMBREX_REQUEST_CALL(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]),
                    (count, requests, statuses), lacks_some(count, requests),
                    wait_all(count, requests, statuses))
IMBREX_REQUEST_CALL(Waitany, (int count, MPI_Request requests[], int* index, MPI_Status* status),
                    (count, requests, index, status), lacks_some(count, requests, index),
                    wait_any(count, requests, index, status))
IMBREX_REQUEST_CALL(Waitsome,
                    (int count, MPI_Request requests[], int* found, int indices[],
                     MPI_Status statuses[]),
                    (count, requests, found, indices, statuses),
                    lacks_some(count, requests, found),
                    wait_some(count, requests, found, indices, statuses))
IMBREX_REQUEST_CALL(Test, (MPI_Request* request, int* flag, MPI_Status* status),
                    (request, flag, status), lacks(request, flag), test(request, flag, status))
IMBREX_REQUEST_CALL(Testall, (int count, MPI_Request requests[], int* flag, MPI_Status statuses[]),
                    (count, requests, flag, statuses), lacks_some(count, requests, flag),
                    test_all(count, requests, flag, statuses))
IMBREX_REQUEST_CALL(Testany,
                    (int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status),
                    (count, requests, index, flag, status),
                    lacks_some(count, requests, index, flag),
                    test_any(count, requests, index, flag, status))
IMBREX_REQUEST_CALL(Testsome,
                    (int count, MPI_Request requests[], int* found, int indices[],
                     MPI_Status statuses[]),
                    (count, requests, found, indices, statuses),
                    lacks_some(count, requests, found),
                    test_some(count, requests, found, indices, statuses))
IMBREX_REQUEST_CALL(Cancel, (MPI_Request* request), (request), lacks(request), cancel(request))
IMBREX_REQUEST_CALL(Request_free, (MPI_Request* request), (request), lacks(request),
                    free_request(request))
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
// Some headers declare the array const.
IMBREX_REQUEST_CALL(Request_get_status_any,
                    (int count, const MPI_Request requests[], int* index, int* flag,
                     MPI_Status* status),
                    (count, requests, index, flag, status),
                    lacks_some(count, requests, index, flag),
                    get_status_any(count, const_cast<MPI_Request*>(requests), index, flag, status))
IMBREX_REQUEST_CALL(Request_get_status_some,
                    (int count, const MPI_Request requests[], int* found, int indices[],
                     MPI_Status statuses[]),
                    (count, requests, found, indices, statuses),
                    lacks_some(count, requests, found),
                    get_status_some(count, const_cast<MPI_Request*>(requests), found, indices,
                                    statuses))
IMBREX_REQUEST_CALL(Request_get_status_all,
                    (int count, const MPI_Request requests[], int* flag, MPI_Status statuses[]),
                    (count, requests, flag, statuses), lacks_some(count, requests, flag),
                    get_status_all(count, const_cast<MPI_Request*>(requests), flag, statuses))
#endif
IMBREX_REQUEST_CALL(Request_get_status, (MPI_Request request, int* flag, MPI_Status* status),
                    (request, flag, status), lacks(flag), get_status(request, flag, status))
