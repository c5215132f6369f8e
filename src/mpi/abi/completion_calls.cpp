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

// ---- all -------------------------------------------------------------------------------------

namespace {

// The communicator whose handler MPICH's MPI_Waitall calls, with MPI_ERR_IN_STATUS.
MPI_Comm told_of_many() noexcept {
  return has<Quirk::requests_blame_world>() ? MPI_COMM_WORLD : MPI_COMM_SELF;
}

void copy_statuses(const std::vector<MPI_Status>& from, const bool failed, MPI_Status to[]) {
  for (const MPI_Status& status : from) {
    const int untouched = to->MPI_ERROR;
    *to = status;
    if (!failed) to->MPI_ERROR = untouched;
    ++to;
  }
}

}  // namespace

Outcome completion::Testall::operator()(int count, MPI_Request requests[], int* done,
                                        MPI_Status statuses[]) {
  if (!has<Quirk::errors_reach_other_handlers>()) {
    return PMPI_Testall(count, requests, done, statuses);
  }
  *done = 0;
  for (; next_ < count; ++next_) {
    const Asking asking(true);
    MPI_Status status = {};
    int complete = 0;
    const Outcome outcome = asking.outcome(PMPI_Test(&requests[next_], &complete, &status));
    if (complete == 0 && outcome.code == MPI_SUCCESS) return MPI_SUCCESS;
    if (outcome.code != MPI_SUCCESS) failed_ = true;
    if (statuses == MPI_STATUSES_IGNORE) continue;
    status.MPI_ERROR = outcome.code;
    statuses_.push_back(status);
  }
  *done = 1;
  if (statuses != MPI_STATUSES_IGNORE) copy_statuses(statuses_, failed_, statuses);
  return failed_ ? Outcome(MPI_ERR_IN_STATUS, true, told_of_many()) : Outcome(MPI_SUCCESS);
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
