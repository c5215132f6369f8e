// SPDX-License-Identifier: BSD-3-Clause
// TAMPI_Iwait and TAMPI_Wait: requests that are bound to the running task.
#include <dlfcn.h>

#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "TAMPI.h"
#include "base/arch.hpp"
#include "base/guarded.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/interfaces/tampi/tampi.hpp"
#include "mpi/messages/matching/wait.hpp"

namespace imbrex::mpi::tampi {

namespace {

// The requests that were bound in main and in other threads of the program. These have no
// dependents that could wait, so TAMPI_Wait waits. Each thread has a list of its own, since a
// request of one thread may depend on another thread.
class OutsideOfTasks {
 public:
  void add(Future<MPI_Status> future) {
    const std::lock_guard guard(lock_);
    std::vector<Future<MPI_Status>>& mine = bound_[base::this_thread()];
    if (mine.size() == mine.capacity()) {  // now and then drops complete ones
      std::erase_if(mine, [](const Future<MPI_Status>& one) {
        return one.ready() && detail::completion_of(one)->failure == nullptr;
      });
    }
    mine.push_back(std::move(future));
  }

  [[nodiscard]] std::vector<Future<MPI_Status>> take() {
    const std::lock_guard guard(lock_);
    const auto found = bound_.find(base::this_thread());
    if (found == bound_.end()) return {};
    std::vector<Future<MPI_Status>> mine = std::move(found->second);
    bound_.erase(found);
    return mine;
  }

 private:
  std::mutex lock_;  // held for a few moves of a list
  std::map<pthread_t, std::vector<Future<MPI_Status>>> bound_ IMBREX_GUARDED_BY(lock_);
};

// Never destroyed: threads may end after main.
OutsideOfTasks& outside_of_tasks() {
  static OutsideOfTasks& the_one = *new OutsideOfTasks;
  return the_one;
}

// The file of another OpenMP runtime, if this thread is in a parallel region of one; else empty.
// imbrex's own needs libimbrex.so, so its dependencies have imbrex's functions.
std::string other_openmp() {
  static auto* const level =
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_level"));
  Dl_info found;
  if (level == nullptr || level() == 0 ||
      dladdr(reinterpret_cast<void*>(level), &found) == 0) {
    return "";
  }
  void* const library = dlopen(found.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return "";
  const bool ours = dlsym(library, "imbrex_spawn") != nullptr;
  dlclose(library);
  return ours ? "" : found.dli_fname;
}

// Reports once another OpenMP runtime. Its tasks are no tasks of imbrex: their dependents do not
// wait for the bound requests.
void report_other_openmp(const char* call) {
  static std::atomic<bool> reported{false};  // any thread
  if (reported.load(std::memory_order_relaxed)) return;
  const std::string file = other_openmp();
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (file.empty() || reported.exchange(true, std::memory_order_relaxed) || rank != 0) return;
  print(std::string(call) + " in a parallel region of " + file +
        ", whose tasks imbrex does not know: no task waits for the request, and results are wrong. "
        "Run the program by imbrex run, which loads a libgomp.so.1 whose tasks wait: imbrex run -- "
        "mpirun -n 2 ./program");
}

// The code of the current exception, after a report; an MpiError has been reported by its error
// handler.
int code_of_exception(const char* call) noexcept {
  try {
    throw;
  } catch (const MpiError& error) {
    return error.code();
  } catch (const std::exception& error) {
    refuse(call, unprefixed(error), MPI_ERR_REQUEST);
  } catch (...) {
    refuse(call, "an error handler of the program's has thrown", MPI_ERR_REQUEST);
  }
  if (!switches.is_active.load(std::memory_order_relaxed)) return MPI_ERR_REQUEST;
  return raise_error({.name = call, .comm = MPI_COMM_WORLD}, MPI_ERR_REQUEST);
}

int code_of(const Future<MPI_Status>& done, const char* call) noexcept {
  if (detail::completion_of(done)->failure == nullptr) return MPI_SUCCESS;
  try {
    detail::rethrow_failure(*detail::completion_of(done));
  } catch (...) {
    return code_of_exception(call);
  }
}

void write_status(void* to, const MPI_Status& status, int code) noexcept {
  auto* const place = static_cast<MPI_Status*>(to);
  copy_status(status, place);
  if (code != MPI_SUCCESS) place->MPI_ERROR = code;
}

}  // namespace

StatusPlace place_of(MPI_Status* status) noexcept {
  if (status == MPI_STATUS_IGNORE) return {};
  return {.write = &write_status, .to = status};
}

int bind(const char* call, MPI_Request* request, const StatusPlace& place) noexcept {
  if (*request == MPI_REQUEST_NULL) return MPI_SUCCESS;
  if (switches.is_active.load(std::memory_order_relaxed) && !is_enabled()) return MPI_SUCCESS;
  try {
    Future<MPI_Status> future = take_over(call, *request, place);
    const bool known = future.ready();
    const int code = known ? code_of(future, call) : MPI_SUCCESS;
    if (known && code == MPI_SUCCESS) return code;
    if (detail::in_spawned_task()) {
      detail::release_after(*detail::completion_of(future));
    } else {
      report_other_openmp(call);
      outside_of_tasks().add(std::move(future));
    }
    return code;
  } catch (...) {
    return code_of_exception(call);
  }
}

int wait_for_bound(const char* call) noexcept {
  if (detail::in_spawned_task()) return MPI_SUCCESS;
  int first = MPI_SUCCESS;
  try {
    for (const Future<MPI_Status>& future : outside_of_tasks().take()) {
      future.wait();
      const int code = code_of(future, call);
      if (first == MPI_SUCCESS) first = code;
    }
    return first;
  } catch (...) {
    return code_of_exception(call);
  }
}

}  // namespace imbrex::mpi::tampi

namespace tampi = imbrex::mpi::tampi;

#pragma GCC visibility push(default)
extern "C" {

int TAMPI_Iwait(MPI_Request* const request, MPI_Status* const status) {
  return tampi::bind("TAMPI_Iwait", request, tampi::place_of(status));
}

int TAMPI_Iwaitall(const int count, MPI_Request requests[], MPI_Status statuses[]) {
  int first = MPI_SUCCESS;
  for (int i = 0; i < count; ++i) {
    MPI_Status* const status =
        statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
    const int code = tampi::bind("TAMPI_Iwaitall", &requests[i], tampi::place_of(status));
    if (first == MPI_SUCCESS) first = code;
  }
  return first;
}

int TAMPI_Wait(MPI_Request* const request, MPI_Status* const status) {
  return tampi::is_enabled() ? tampi::wait_for_bound("TAMPI_Wait") : MPI_Wait(request, status);
}

int TAMPI_Waitall(const int count, MPI_Request requests[], MPI_Status statuses[]) {
  return tampi::is_enabled() ? tampi::wait_for_bound("TAMPI_Waitall")
                             : MPI_Waitall(count, requests, statuses);
}

}  // extern "C"
#pragma GCC visibility pop
