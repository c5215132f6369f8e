// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/calls/requests.hpp"

#include <algorithm>
#include <utility>

#include "mpi/abi/switches.hpp"
#include "mpi/messages/requests/program_handles.hpp"
#include "mpi/messages/requests/request_table.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex::mpi::messages {

namespace {

struct CountedListener : Listener {
  Countdown* countdown;

  static void one_done(Listener& self) noexcept {
    static_cast<CountedListener&>(self).countdown->count_down();
  }
};

}  // namespace

Requests::Requests(const int count, MPI_Request requests[])
    : count_(count),
      requests_(requests),
      mpis_(requests, requests + count),
      ours_(static_cast<std::size_t>(count), nullptr),
      statuses_(static_cast<std::size_t>(count)) {
  for (int i = 0; i < count; ++i) {
    ours_[i] = substitute(requests[i]);
    if (ours_[i] == nullptr) {
      if (requests[i] != MPI_REQUEST_NULL) ++mpis_count_;
      continue;
    }
    mpis_[i] = MPI_REQUEST_NULL;
    ++our_count_;
  }
}

void Requests::wait_for_ours(const char* name) {
  if (our_count_ == 0 || all_ours_done()) return;
  Countdown countdown(our_count_);
  std::vector<CountedListener> listeners(static_cast<std::size_t>(our_count_));
  auto listener = listeners.begin();
  for (Substitute* const one : ours_) {
    if (one == nullptr) continue;
    listener->fire = &CountedListener::one_done;
    listener->countdown = &countdown;
    if (!one->attend(*listener++)) countdown.count_down();
  }
  countdown.wait({.name = name});
}

Outcome Requests::test_all(int* done, completion::Testall* waiting) {
  *done = poll_until(&Requests::all_ours_done) ? 1 : 0;
  if (*done == 0 || our_count_ == count_) return MPI_SUCCESS;
  if (waiting != nullptr) return (*waiting)(count_, mpis_.data(), done, statuses_.data());
  return completion::test_all(count_, mpis_.data(), done, statuses_.data());
}

int Requests::finish_all(int code, MPI_Status statuses[]) {
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
    give_back_changed();
    return code;
  }
  for (int i = 0; i < count_; ++i) {
    if (ours_[i] == nullptr) {
      if (code == MPI_SUCCESS) statuses_[i].MPI_ERROR = MPI_SUCCESS;
      if (code == MPI_SUCCESS || requests_[i] != mpis_[i]) {
        give_back(i, statuses_[i], statuses_[i].MPI_ERROR);
      }
    }
  }
  for (int i = 0; i < count_; ++i) {
    if (ours_[i] != nullptr && take(i, code) != MPI_SUCCESS) code = MPI_ERR_IN_STATUS;
  }
  if (statuses == MPI_STATUSES_IGNORE) return code;
  for (int i = 0; i < count_; ++i) {
    copy_status(statuses_[i], &statuses[i]);
    if (code == MPI_ERR_IN_STATUS) statuses[i].MPI_ERROR = statuses_[i].MPI_ERROR;
  }
  return code;
}

Outcome Requests::test_any(int* done) {
  *done = 1;
  index_ = MPI_UNDEFINED;
  if (our_count_ != 0 && poll_until(&Requests::any_of_ours_done)) return MPI_SUCCESS;
  if (our_count_ != 0 && mpis_count_ == 0) {
    *done = 0;
    return MPI_SUCCESS;
  }
  const Outcome outcome =
      completion::Testany(count_, mpis_.data(), &index_, done, statuses_.data());
  if (outcome.code == MPI_SUCCESS && index_ == MPI_UNDEFINED && our_count_ != 0) *done = 0;
  if (*done == 0) poll_for_others();
  return outcome;
}

// An index that MPI has not set belongs to an operation of this library, if any is done. After an
// error MPI may have freed other requests than the one that it names.
int Requests::finish_any(int code, int* index, MPI_Status* status) {
  *index = index_;
  if (index_ != MPI_UNDEFINED) {
    give_back(index_, statuses_[0], code);
    if (code != MPI_SUCCESS) give_back_changed();
  } else {
    for (int i = 0; i < count_ && code == MPI_SUCCESS; ++i) {
      if (ours_[i] == nullptr || !ours_[i]->done()) continue;
      *index = i;
      return conclude(*ours_[i], &requests_[i], status);
    }
  }
  copy_status(statuses_[0], status);
  return code;
}

Outcome Requests::test_some(int* done) {
  indices_.resize(static_cast<std::size_t>(count_));
  const bool ours = our_count_ != 0 && poll_until(&Requests::any_of_ours_done);
  if (our_count_ != 0 && mpis_count_ == 0) {
    *done = ours ? 1 : 0;
    return MPI_SUCCESS;
  }
  const Outcome outcome = test_some_of_mpis();
  if (our_count_ != 0 && found_ == MPI_UNDEFINED) found_ = 0;
  *done = ours || found_ != 0 || outcome.code != MPI_SUCCESS ? 1 : 0;
  if (*done == 0) poll_for_others();
  return outcome;
}

int Requests::finish_some(int code, int* found, int indices[], MPI_Status statuses[]) {
  *found = found_;
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
    give_back_changed();
    return code;
  }
  if (found_ == MPI_UNDEFINED) return code;
  int failed = code;
  std::vector<MPI_Status> results(statuses_.begin(), statuses_.begin() + found_);
  for (int i = 0; i < found_; ++i) {
    if (code == MPI_SUCCESS) results[i].MPI_ERROR = MPI_SUCCESS;
    indices[i] = indices_[i];
    give_back(indices_[i], results[i], results[i].MPI_ERROR);
  }
  if (code != MPI_SUCCESS) give_back_changed();
  for (int i = 0; i < count_; ++i) {
    if (ours_[i] == nullptr || !ours_[i]->done()) continue;
    if (take(i, failed) != MPI_SUCCESS) failed = MPI_ERR_IN_STATUS;
    ours_[i] = nullptr;
    mpis_[i] = requests_[i];  // given back
    indices[(*found)++] = i;
    results.push_back(statuses_[i]);
  }
  if (statuses == MPI_STATUSES_IGNORE) return failed;
  for (int i = 0; i < *found; ++i) {
    copy_status(results[i], &statuses[i]);
    if (failed == MPI_ERR_IN_STATUS) statuses[i].MPI_ERROR = results[i].MPI_ERROR;
  }
  return failed;
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
int Requests::get_status_any(int* index, int* flag, MPI_Status* status) {
  if (our_count_ != 0 && poll_until(&Requests::any_of_ours_done)) {
    const auto ours = std::find_if(ours_.begin(), ours_.end(), [](const Substitute* one) {
      return one != nullptr && one->done();
    });
    *index = static_cast<int>(ours - ours_.begin());
    *flag = 1;
    copy_status((*ours)->status, status);
    return MPI_SUCCESS;
  }
  const int code = PMPI_Request_get_status_any(count_, mpis_.data(), index, flag, status);
  if (code == MPI_SUCCESS && *index == MPI_UNDEFINED && our_count_ != 0) *flag = 0;
  if (*flag == 0) poll_for_others();
  return code;
}

int Requests::get_status_some(int* found, int indices[], MPI_Status statuses[]) {
  if (our_count_ != 0) (void)poll_until(&Requests::any_of_ours_done);
  const int code =
      PMPI_Request_get_status_some(count_, mpis_.data(), found, indices, statuses);
  if (code != MPI_SUCCESS || our_count_ == 0) return code;
  if (*found == MPI_UNDEFINED) *found = 0;
  for (int i = 0; i < count_; ++i) {
    if (ours_[i] == nullptr || !ours_[i]->done()) continue;
    if (statuses != MPI_STATUSES_IGNORE) copy_status(ours_[i]->status, &statuses[*found]);
    indices[(*found)++] = i;
  }
  return code;
}
#endif

// ---- the parts -------------------------------------------------------------------------------

bool Requests::all_ours_done() {
  return std::all_of(ours_.begin(), ours_.end(),
                     [](const Substitute* one) { return one == nullptr || one->done(); });
}

// There may be thousands of requests, and each poll calls this.
bool Requests::any_of_ours_done() {
  const std::uint64_t ended = Substitute::ended_unattended();
  if (ended == ended_before_) return false;
  ended_before_ = ended;
  return std::any_of(ours_.begin(), ours_.end(),
                     [](const Substitute* one) { return one != nullptr && one->done(); });
}

bool Requests::poll_until(bool (Requests::*const enough)()) {
  if ((this->*enough)()) return true;
  if (our_count_ != 0 || must_poll()) engine().poll();
  return (this->*enough)();
}

bool Requests::is_posted_persistent(const int i) const noexcept {
  if (ours_[i] != nullptr || mpis_[i] == MPI_REQUEST_NULL) return false;
  const Persistent* const persistent = messages::requests().find(mpis_[i]).persistent();
  return persistent != nullptr && persistent->posted;
}

// MPICH's MPI_Testsome says MPI_SUCCESS in the status of a persistent receive that has failed
// (docs/design/mpi-facts.md).
Outcome Requests::test_some_of_mpis() {
  found_ = 0;
  bool failed = false;
  std::vector<std::pair<int, MPI_Request>> pending;
  if (has<Quirk::errors_reach_other_handlers>() && messages::requests().has_substitutes()) {
    for (int i = 0; i < count_; ++i) {
      if (!is_posted_persistent(i)) continue;
      int done = 0;
      MPI_Status& status = statuses_[found_];
      const Outcome outcome = completion::Test(true, &mpis_[i], &done, &status);
      if (done == 0 && outcome.code == MPI_SUCCESS) {
        pending.emplace_back(i, std::exchange(mpis_[i], MPI_REQUEST_NULL));
        continue;
      }
      status.MPI_ERROR = outcome.code;
      failed = failed || outcome.code != MPI_SUCCESS;
      indices_[found_++] = i;
    }
  }
  int others = 0;
  const Outcome outcome = completion::Testsome(count_, mpis_.data(), &others,
                                               indices_.data() + found_, statuses_.data() + found_);
  for (const auto& [i, request] : pending) mpis_[i] = request;
  if (others == MPI_UNDEFINED) {
    if (found_ == 0 && pending.empty()) found_ = MPI_UNDEFINED;
    return failed ? completion::failed_several() : outcome;
  }
  for (int k = 0; k < others; ++k, ++found_) {
    if (outcome.code == MPI_SUCCESS) statuses_[found_].MPI_ERROR = MPI_SUCCESS;
  }
  return failed && outcome.code == MPI_SUCCESS ? completion::failed_several() : outcome;
}

void Requests::give_back(const int i, const MPI_Status& status, const int code) {
  if (switches.traces_messages && code == MPI_SUCCESS) trace_completed(requests_[i], status, 0);
  give_back(i);
}

void Requests::give_back(const int i) {
  messages::requests().complete(requests_[i]);
  requests_[i] = mpis_[i];
}

void Requests::give_back_changed() {
  for (int i = 0; i < count_; ++i) {
    if (ours_[i] == nullptr && requests_[i] != mpis_[i]) give_back(i);
  }
}

int Requests::take(const int i, const int code_so_far) {
  statuses_[i].MPI_ERROR = MPI_SUCCESS;
  const auto end = code_so_far == MPI_SUCCESS ? &conclude : &conclude_quietly;
  const int code = end(*ours_[i], &requests_[i], &statuses_[i]);
  statuses_[i].MPI_ERROR = code;
  return code;
}

}  // namespace imbrex::mpi::messages
