// SPDX-License-Identifier: BSD-3-Clause
// fake_mpi: requests; waits are tests again and again.
#include <algorithm>

#include "base/arch.hpp"
#include "simulation.hpp"

namespace imbrex::fake_mpi {

namespace {

// The requests of one call, which no other thread may use meanwhile.
class InUse {
 public:
  // `lock` is held whenever a member runs.
  InUse(Lock& lock, int count, const MPI_Request* handles) : lock_(lock) {
    const pthread_t here = base::this_thread();
    for (int i = 0; i < count; ++i) {
      Request* const request = find(handles[i]);
      requests_.push_back(request);
      if (request == nullptr) continue;
      if (request->user != pthread_t{}) lock_->breach("two threads use one request");
      request->user = here;
    }
    if (lock_->chance(lock_->settings.yields)) lock_.give_way();
  }
  ~InUse() {
    for (Request* const request : requests_) {
      if (request != nullptr) request->user = {};
    }
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

  [[nodiscard]] bool valid() const noexcept { return valid_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(requests_.size()); }
  [[nodiscard]] bool is_open(int place) const {  // neither null nor inactive
    const Request* const request = requests_[static_cast<std::size_t>(place)];
    return request != nullptr && request->active;
  }
  [[nodiscard]] bool is_complete(int place) const {
    return is_open(place) && requests_[static_cast<std::size_t>(place)]->complete;
  }
  [[nodiscard]] Request& operator[](int place) const {
    return *requests_[static_cast<std::size_t>(place)];
  }

  // What a call that completes a request does: returns its code.
  int retire(int place, MPI_Request* handle, MPI_Status* status) {
    Request& request = (*this)[place];
    int code = ask(place, status);
    if (request.kind == Request::Kind::general) {
      const int released = lock_.unlocked([&] { return request.release(request.extra); });
      if (code == MPI_SUCCESS) code = released;
    }
    if (request.persistent) {
      request.active = false;
    } else {
      requests_[static_cast<std::size_t>(place)] = nullptr;
      lock_->forget(request);
      *handle = MPI_REQUEST_NULL;
    }
    return code;
  }

  // The status of a complete request, which stays.
  int ask(int place, MPI_Status* status) {
    Request& request = (*this)[place];
    {
      const Loud loud;
      told(&request);
    }
    if (request.kind == Request::Kind::general) {
      request.code = lock_.unlocked([&] { return request.query(request.extra, &request.status); });
    }
    request.status.MPI_ERROR = request.code;
    *status = request.status;
    return request.code;
  }

 private:
  Request* find(MPI_Request handle) {
    if (handle == MPI_REQUEST_NULL) return nullptr;
    const auto found = lock_->requests.find(number_of(handle));
    if (found != lock_->requests.end() && !found->second->freed) return found->second.get();
    lock_->breach("a request that is unknown, complete or freed");
    valid_ = false;
    return nullptr;
  }

  Lock& lock_;
  std::vector<Request*> requests_;
  bool valid_ = true;
};

// Calls with one status leave its error field alone.
void give_one(const MPI_Status& from, MPI_Status* to) {
  if (to == MPI_STATUS_IGNORE) return;
  const int error = to->MPI_ERROR;
  *to = from;
  to->MPI_ERROR = error;
}

// Looks, with progress before or after it.
template <class Look>
void look_and_progress(Lock& lock, Look look) {
  if (!lock->settings.late) lock->progress();
  look();
  if (lock->settings.late) lock->progress();
}

int test_any(const char* function, int count, MPI_Request* requests, int* index, int* flag,
             MPI_Status* status) {
  Lock lock(function);
  InUse used(lock, count, requests);
  if (!used.valid()) return raise(lock, nullptr, MPI_ERR_REQUEST);
  bool none_open = true;
  *index = MPI_UNDEFINED;
  look_and_progress(lock, [&] {
    // Fairness is no promise of MPI's: begin anywhere.
    const auto size = static_cast<unsigned>(count);
    const int first = count > 1 ? static_cast<int>(lock->random() % size) : 0;
    for (int i = 0; i < count; ++i) {
      const int place = (first + i) % count;
      none_open = none_open && !used.is_open(place);
      if (*index == MPI_UNDEFINED && used.is_complete(place)) *index = place;
    }
  });
  *flag = none_open || *index != MPI_UNDEFINED ? 1 : 0;
  MPI_Status found;
  empty_status(found);
  if (*index == MPI_UNDEFINED) {
    if (*flag != 0) give_one(found, status);
    return MPI_SUCCESS;
  }
  Comm* const comm = used[*index].comm;
  const int code = used.retire(*index, &requests[*index], &found);
  give_one(found, status);
  return code == MPI_SUCCESS ? code : raise(lock, comm, code);
}

int test_all(const char* function, int count, MPI_Request* requests, int* flag,
             MPI_Status* statuses) {
  Lock lock(function);
  InUse used(lock, count, requests);
  if (!used.valid()) return raise(lock, nullptr, MPI_ERR_REQUEST);
  *flag = 1;
  look_and_progress(lock, [&] {
    for (int i = 0; i < count; ++i) {
      if (used.is_open(i) && !used.is_complete(i)) *flag = 0;
    }
  });
  if (*flag == 0) return MPI_SUCCESS;
  Comm* failed = nullptr;
  int code = MPI_SUCCESS;
  std::vector<MPI_Status> found(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    MPI_Status& status = found[static_cast<std::size_t>(i)];
    empty_status(status);
    if (!used.is_open(i)) continue;
    Comm* const comm = used[i].comm;
    const int own = used.retire(i, &requests[i], &status);
    status.MPI_ERROR = own;
    if (own == MPI_SUCCESS || code != MPI_SUCCESS) continue;
    code = own;
    failed = comm;
  }
  for (int i = 0; i < count && statuses != MPI_STATUSES_IGNORE; ++i) {
    const int error = statuses[i].MPI_ERROR;
    statuses[i] = found[static_cast<std::size_t>(i)];
    if (code == MPI_SUCCESS) statuses[i].MPI_ERROR = error;
  }
  if (code == MPI_SUCCESS) return code;
  (void)raise(lock, failed, code);
  return MPI_ERR_IN_STATUS;
}

int test_some(const char* function, int count, MPI_Request* requests, int* found, int* indices,
              MPI_Status* statuses) {
  Lock lock(function);
  InUse used(lock, count, requests);
  if (!used.valid()) return raise(lock, nullptr, MPI_ERR_REQUEST);
  *found = 0;
  bool none_open = true;
  look_and_progress(lock, [&] {
    for (int i = 0; i < count; ++i) {
      none_open = none_open && !used.is_open(i);
      if (used.is_complete(i)) indices[(*found)++] = i;
    }
  });
  if (none_open) *found = MPI_UNDEFINED;
  Comm* failed = nullptr;
  int code = MPI_SUCCESS;
  for (int i = 0; i < *found; ++i) {
    const int place = indices[i];
    Comm* const comm = used[place].comm;
    MPI_Status status;
    const int own = used.retire(place, &requests[place], &status);
    status.MPI_ERROR = own;
    if (statuses != MPI_STATUSES_IGNORE) statuses[i] = status;
    if (own == MPI_SUCCESS || code != MPI_SUCCESS) continue;
    code = own;
    failed = comm;
  }
  if (code == MPI_SUCCESS) return code;
  (void)raise(lock, failed, code);
  return MPI_ERR_IN_STATUS;
}

Request* find_request(Lock& lock, MPI_Request handle) {
  const auto found = lock->requests.find(number_of(handle));
  if (found != lock->requests.end() && !found->second->freed) return found->second.get();
  lock->breach("a request that is null, unknown, complete or freed");
  return nullptr;
}

void give_way(const char* function) { Lock(function).give_way(); }

}  // namespace
}  // namespace imbrex::fake_mpi

using namespace imbrex::fake_mpi;

extern "C" {

int PMPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  int index = 0;
  return test_any("Test", 1, request, &index, flag, status);
}

int PMPI_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  return test_any("Testany", count, requests, index, flag, status);
}

int PMPI_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  return test_all("Testall", count, requests, flag, statuses);
}

int PMPI_Testsome(int count, MPI_Request requests[], int* found, int indices[],
                  MPI_Status statuses[]) {
  return test_some("Testsome", count, requests, found, indices, statuses);
}

int PMPI_Wait(MPI_Request* request, MPI_Status* status) {
  int index = 0;
  return PMPI_Waitany(1, request, &index, status);
}

int PMPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  int flag = 0;
  int code = MPI_SUCCESS;
  while (flag == 0 && code == MPI_SUCCESS) {
    code = test_any("Waitany", count, requests, index, &flag, status);
    if (flag == 0) give_way("Waitany");
  }
  return code;
}

int PMPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  int flag = 0;
  int code = MPI_SUCCESS;
  while (flag == 0 && code == MPI_SUCCESS) {
    code = test_all("Waitall", count, requests, &flag, statuses);
    if (flag == 0) give_way("Waitall");
  }
  return code;
}

int PMPI_Waitsome(int count, MPI_Request requests[], int* found, int indices[],
                  MPI_Status statuses[]) {
  int code = MPI_SUCCESS;
  *found = 0;
  while (*found == 0 && code == MPI_SUCCESS) {
    code = test_some("Waitsome", count, requests, found, indices, statuses);
    if (*found == 0) give_way("Waitsome");
  }
  return code;
}

int PMPI_Startall(int count, MPI_Request requests[]) {
  Lock lock("Startall");
  for (int i = 0; i < count; ++i) {
    Request* const request = find_request(lock, requests[i]);
    if (request == nullptr || !request->persistent || request->active) {
      lock->breach("a request is started that is not persistent and inactive");
      return raise(lock, nullptr, MPI_ERR_REQUEST);
    }
    if (const int code = lock.fault(); code != MPI_SUCCESS) {
      return raise(lock, request->comm, code);
    }
    lock->activate(*request);
  }
  return MPI_SUCCESS;
}

int PMPI_Start(MPI_Request* request) { return PMPI_Startall(1, request); }

int PMPI_Cancel(MPI_Request* handle) {
  Lock lock("Cancel");
  Request* const request = find_request(lock, *handle);
  if (request == nullptr) return raise(lock, nullptr, MPI_ERR_REQUEST);
  if (request->kind == Request::Kind::general) {
    const bool complete = request->complete;
    return lock.unlocked([&] { return request->cancel(request->extra, complete ? 1 : 0); });
  }
  if (request->kind != Request::Kind::receive || request->message != nullptr ||
      request->complete || !request->active) {
    return MPI_SUCCESS;  // too late, or a send: they are never cancelled here
  }
  std::erase(request->comm->posted, request);
  request->complete = true;
  request->status.fake_cancelled = 1;
  return MPI_SUCCESS;
}

int PMPI_Request_free(MPI_Request* handle) {
  Lock lock("Request_free");
  Request* const request = find_request(lock, *handle);
  if (request == nullptr) return raise(lock, nullptr, MPI_ERR_REQUEST);
  *handle = MPI_REQUEST_NULL;
  if (request->active && !request->complete) {
    request->freed = true;
    return MPI_SUCCESS;
  }
  if (request->kind == Request::Kind::general) {
    (void)lock.unlocked([&] { return request->release(request->extra); });
  }
  lock->forget(*request);
  return MPI_SUCCESS;
}

int PMPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  Lock lock("Request_get_status");
  InUse used(lock, 1, &request);
  if (!used.valid()) return raise(lock, nullptr, MPI_ERR_REQUEST);
  MPI_Status found;
  empty_status(found);
  *flag = 1;
  if (used.is_open(0)) {
    look_and_progress(lock, [&] { *flag = used.is_complete(0) ? 1 : 0; });
    if (*flag != 0) (void)used.ask(0, &found);
  }
  if (*flag != 0) give_one(found, status);
  return MPI_SUCCESS;
}

int PMPI_Grequest_start(MPI_Grequest_query_function* query, MPI_Grequest_free_function* release,
                        MPI_Grequest_cancel_function* cancel, void* extra, MPI_Request* request) {
  Lock lock("Grequest_start");
  if (const int code = lock.fault(); code != MPI_SUCCESS) return raise(lock, nullptr, code);
  Request& made = lock->add_request(Request::Kind::general, nullptr);
  made.query = query;
  made.release = release;
  made.cancel = cancel;
  made.extra = extra;
  *request = made.handle;
  return MPI_SUCCESS;
}

int PMPI_Grequest_complete(MPI_Request handle) {
  Lock lock("Grequest_complete");
  const auto found = lock->requests.find(number_of(handle));
  if (found == lock->requests.end() || found->second->kind != Request::Kind::general ||
      found->second->complete) {
    lock->breach("a generalised request is completed that is unknown or complete");
    return raise(lock, nullptr, MPI_ERR_REQUEST);
  }
  Request& request = *found->second;
  {
    const Loud loud;
    transferred(&request);
  }
  request.complete = true;
  if (!request.freed) return MPI_SUCCESS;
  (void)lock.unlocked([&] { return request.release(request.extra); });
  lock->forget(request);
  return MPI_SUCCESS;
}

MPI_Fint PMPI_Request_c2f(MPI_Request request) { return static_cast<MPI_Fint>(number_of(request)); }
MPI_Request PMPI_Request_f2c(MPI_Fint number) {
  return reinterpret_cast<MPI_Request>(static_cast<std::uintptr_t>(number));
}
MPI_Fint MPI_Request_c2f(MPI_Request request) { return PMPI_Request_c2f(request); }
MPI_Request MPI_Request_f2c(MPI_Fint number) { return PMPI_Request_f2c(number); }

}  // extern "C"
