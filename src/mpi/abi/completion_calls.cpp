// SPDX-License-Identifier: BSD-3-Clause
// The codes that MPI passes to error handlers during completion calls of this library, and
// completion calls for many requests where an MPI gets them wrong.
#include "mpi/abi/completion_calls.hpp"

#include <pthread.h>

#include <atomic>
#include <optional>
#include <utility>

namespace imbrex::mpi {

namespace {

// The Asking of each thread. It is a key of pthreads, since only the runtime uses thread-local
// variables; an Asking does not outlive a suspension, so no task carries one to another thread.
pthread_key_t make_key() noexcept {
  pthread_key_t key = 0;
  pthread_key_create(&key, nullptr);
  return key;
}
const pthread_key_t asking_key = make_key();

}  // namespace

Asking* Asking::here() noexcept { return static_cast<Asking*>(pthread_getspecific(asking_key)); }

Asking::Asking(const bool quiet) noexcept : quiet_(quiet), outer_(here()) {
  pthread_setspecific(asking_key, this);
}
Asking::~Asking() { pthread_setspecific(asking_key, outer_); }

Asking::Lent::Lent(Asking* const asking) noexcept : outer_(here()) {
  pthread_setspecific(asking_key, asking);
}
Asking::Lent::~Lent() { pthread_setspecific(asking_key, outer_); }

bool Asking::keep(MPI_Comm comm, int code) noexcept {
  Asking* const asking = here();
  if (asking == nullptr) return false;
  asking->kept_code_ = code;
  asking->comm_ = comm;
  asking->owed_ = asking->quiet_ || comm == MPI_COMM_SELF || comm == MPI_COMM_WORLD;
  return asking->owed_;
}

// MPICH's MPI_Waitall calls the handler of one of these.
Outcome completion::failed_several() noexcept {
  return {MPI_ERR_IN_STATUS, true,
          has<Quirk::requests_blame_world>() ? MPI_COMM_WORLD : MPI_COMM_SELF};
}

// ---- all -------------------------------------------------------------------------------------

namespace {

// Progress as by a test of this pending request, which does not end it. Returns the error of a
// process whose failure keeps the request pending.
Outcome make_progress(MPI_Request pending, MPI_Status* status) {
  MPI_Request requests[] = {pending, never_complete};
  MPI_Status statuses[2] = {};
  int done = 0;
  const Outcome outcome = PMPI_Testall(2, requests, &done, statuses);
  if (outcome.code != MPI_SUCCESS && status != MPI_STATUS_IGNORE) *status = statuses[0];
  return outcome;
}

MPI_Status* place_in(MPI_Status statuses[], const int place) noexcept {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[place];
}

}  // namespace

// Counts the complete requests at the front of the array, and makes progress for the one behind.
Outcome completion::Testall::look(int count, const MPI_Request requests[], MPI_Status statuses[]) {
  for (bool asked = false; complete_ < count; ++complete_) {
    const MPI_Request request = requests[complete_];
    if (request == MPI_Request{}) continue;  // MPI must report the error
    if (!reads_requests) {
      if (!is_complete(request)) break;
      continue;
    }
    if (state_of(request) != RequestState::pending) continue;
    if (asked) break;
    asked = true;
    const Outcome outcome = make_progress(request, place_in(statuses, complete_));
    if (outcome.code != MPI_SUCCESS) return outcome;
    if (state_of(request) == RequestState::pending) break;
  }
  return MPI_SUCCESS;
}

// The statuses have error codes only if a request has failed.
void completion::Testall::take(const int place, const Outcome& outcome,
                               MPI_Status statuses[]) noexcept {
  if (outcome.code != MPI_SUCCESS && !failed_) {
    failed_ = true;
    of_first_ = outcome.kept;
    for (int i = 0; i < place && statuses != MPI_STATUSES_IGNORE; ++i) {
      statuses[i].MPI_ERROR = MPI_SUCCESS;
    }
  }
  if (failed_ && statuses != MPI_STATUSES_IGNORE) statuses[place].MPI_ERROR = outcome.code;
}

// Ends the requests in turn by `end(request, &complete, status)`. False once one is pending.
template <class End>
bool completion::Testall::end_each(int count, MPI_Request requests[], MPI_Status statuses[],
                                   End end) {
  for (; ended_ < count; ++ended_) {
    MPI_Status* const status = place_in(statuses, ended_);
    const int untouched = status == MPI_STATUS_IGNORE ? MPI_SUCCESS : status->MPI_ERROR;
    // Open MPI calls the handler of the first failed request, MPICH one for the call as a whole.
    std::optional<Asking> quiet;
    if (failed_ || has<Quirk::errors_reach_other_handlers>()) quiet.emplace(true);
    int complete = 0;
    const int code = end(&requests[ended_], &complete, status);
    const Outcome outcome = quiet ? quiet->outcome(code) : Outcome(code);
    if (complete == 0 && outcome.code == MPI_SUCCESS) return false;
    if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = untouched;
    take(ended_, outcome, statuses);
  }
  return true;
}

Outcome completion::Testall::result() const noexcept {
  if (!failed_) return MPI_SUCCESS;
  if (has<Quirk::errors_reach_other_handlers>()) return failed_several();
  Outcome outcome = MPI_ERR_IN_STATUS;
  outcome.kept = of_first_;
  return outcome;
}

Outcome completion::Testall::operator()(int count, MPI_Request requests[], int* done,
                                        MPI_Status statuses[]) {
  *done = 0;
  if (!has<Quirk::errors_reach_other_handlers>()) {
    const Outcome outcome = look(count, requests, statuses);
    if (outcome.code != MPI_SUCCESS || complete_ < count) return outcome;
  }
  const auto test = [](MPI_Request* request, int* complete, MPI_Status* status) {
    return PMPI_Test(request, complete, status);
  };
  if (!end_each(count, requests, statuses, test)) return MPI_SUCCESS;
  *done = 1;
  return result();
}

Outcome completion::Testall::wait(int count, MPI_Request requests[], MPI_Status statuses[]) {
  (void)end_each(count, requests, statuses,
                 [](MPI_Request* request, int* complete, MPI_Status* status) {
                   *complete = 1;
                   return PMPI_Wait(request, status);
                 });
  return result();
}

Outcome completion::test_all(int count, MPI_Request requests[], int* done,
                             MPI_Status statuses[]) {
  if (!has<Quirk::errors_reach_other_handlers>()) {
    return Testall()(count, requests, done, statuses);
  }
  return ask([&] { return PMPI_Testall(count, requests, done, statuses); });
}

// ---- any and some ----------------------------------------------------------------------------

namespace {

std::atomic<unsigned> turn{0};  // any thread; selects the pending request that is tested

// The result of look_through() for an array of requests.
struct Seen {
  int active = 0;        // number of requests that are not inactive
  int pending = -1;      // a pending request, another one each time
};

// Calls `found(place)` for each complete request, until that returns false. A null pointer counts
// as complete, since MPI must report the error.
template <class Found>
Seen look_through(int count, const MPI_Request requests[], Found found) {
  const int from = static_cast<int>(turn.fetch_add(1, std::memory_order_relaxed) %
                                    static_cast<unsigned>(count));
  Seen seen;
  for (int i = 0; i < count; ++i) {
    const RequestState state =
        requests[i] == MPI_Request{} ? RequestState::complete : state_of(requests[i]);
    if (state == RequestState::inactive) continue;
    ++seen.active;
    if (state == RequestState::complete) {
      if (!found(i)) break;
    } else if (seen.pending < 0 || (seen.pending < from && i >= from)) {
      seen.pending = i;
    }
  }
  return seen;
}

// True if the operation at this place is over.
bool ends(MPI_Request& request, MPI_Status* status, Outcome* outcome) {
  int complete = 0;
  *outcome = completion::Test(&request, &complete, status);
  return complete != 0 || outcome->code != MPI_SUCCESS;
}

}  // namespace

Outcome completion::Testany(int count, MPI_Request requests[], int* index, int* done,
                            MPI_Status* status) {
  const auto ask_mpi = [&] { return PMPI_Testany(count, requests, index, done, status); };
  if (!reads_requests || count <= 0) return ask(ask_mpi);
  Outcome outcome = MPI_SUCCESS;
  *index = MPI_UNDEFINED;
  const auto end = [&](int place) {
    if (!ends(requests[place], status, &outcome)) return false;
    *index = place;
    return true;
  };
  const Seen seen = look_through(count, requests, [&](int place) { return !end(place); });
  if (seen.active == 0) return ask(ask_mpi);
  // MPI then makes progress, and detects a failed process.
  if (*index == MPI_UNDEFINED && seen.pending >= 0) end(seen.pending);
  *done = *index != MPI_UNDEFINED ? 1 : 0;
  return outcome;
}

Outcome completion::Testsome(int count, MPI_Request requests[], int* found, int indices[],
                             MPI_Status statuses[]) {
  const auto ask_mpi = [&] { return PMPI_Testsome(count, requests, found, indices, statuses); };
  if (!reads_requests || count <= 0) return ask(ask_mpi);
  *found = 0;
  bool failed = false;
  KeptHandler of_first;
  const auto end = [&](int place) {
    // As in MPI, only the handler of the first failed request is called.
    std::optional<Asking> quiet;
    if (failed) quiet.emplace(true);
    MPI_Status status = {};
    Outcome outcome = MPI_SUCCESS;
    if (!ends(requests[place], &status, &outcome)) return;
    status.MPI_ERROR = outcome.code;
    if (outcome.code != MPI_SUCCESS && !std::exchange(failed, true)) of_first = outcome.kept;
    indices[*found] = place;
    if (statuses != MPI_STATUSES_IGNORE) statuses[*found] = status;
    ++*found;
  };
  const Seen seen = look_through(count, requests, [&](int place) {
    end(place);
    return true;
  });
  if (seen.active == 0) return ask(ask_mpi);
  if (*found == 0 && seen.pending >= 0) end(seen.pending);
  Outcome outcome = failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
  outcome.kept = of_first;
  return outcome;
}

}  // namespace imbrex::mpi
