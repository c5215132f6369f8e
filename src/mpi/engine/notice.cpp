// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/notice.hpp"

#include <dlfcn.h>
#include <mpi.h>

#include "base/arch.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "mpi/abi/completion_calls.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/timing.hpp"

namespace imbrex::mpi::progress {

std::atomic<bool> noticed{false};  // any thread; relaxed: a poll synchronises by other means

namespace {

std::atomic<std::uint64_t> count{0};          // any thread that makes progress
std::atomic<std::uint64_t> last_look{0};      // ticks; any thread that makes progress
std::atomic<bool> noticing{false};            // start_noticing() and stop_noticing()

void notice() noexcept {
  if (noticed.exchange(true, std::memory_order_relaxed)) return;
  count.fetch_add(1, std::memory_order_relaxed);
  detail::wake_worker();
}

// ---- the hook ----------------------------------------------------------------------------------

// Tests requests now and then: MPI calls a hook at every turn of a waiting loop. MPI may make
// progress, and so call the hook, during `is_complete`; the inner call finds the engine locked by
// the outer one, and returns.
[[maybe_unused]] void look(bool (*is_complete)(MPI_Request)) noexcept {  // by MPIs with a hook
  if (!noticing.load(std::memory_order_relaxed) || noticed.load(std::memory_order_relaxed) ||
      engine().outstanding().load(std::memory_order_relaxed) == 0) {
    return;
  }
  std::uint64_t last = last_look.load(std::memory_order_relaxed);
  const std::uint64_t now = base::ticks();
  if (now < last + base::about_a_microsecond() ||
      !last_look.compare_exchange_strong(last, now, std::memory_order_relaxed)) {
    return;
  }
  const Timed timed(callbacks_spent);
  if (engine().glance(is_complete)) notice();
}

// The file of MPI's functions, with all its dependencies: it may have been loaded without making
// its names visible to all.
[[maybe_unused]] void* mpi_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&PMPI_Init_thread), &info) == 0) return nullptr;
  return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

template <class Function>
Function* find(const char* name) {
  void* const library = mpi_library();
  void* const address = library == nullptr ? nullptr : dlsym(library, name);
  return reinterpret_cast<Function*>(address);
}

#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40300000

int (*request_is_complete)(MPI_Request) = nullptr;

int on_progress(MPIX_Async_thing) {
  look([](MPI_Request request) { return request_is_complete(request) != 0; });
  return noticing.load(std::memory_order_relaxed) ? MPIX_ASYNC_NOPROGRESS : MPIX_ASYNC_DONE;
}

// Looked up by name: a program may run with an older MPICH than the one it was built with.
std::string hook_into_progress() {
  auto* const start =
      find<int(MPIX_Async_poll_function*, void*, MPIX_Stream)>("PMPIX_Async_start");
  request_is_complete = find<int(MPI_Request)>("PMPIX_Request_is_complete");
  if (start == nullptr || request_is_complete == nullptr) {
    return "this MPICH has no MPIX_Async_start: use 4.3 or later";
  }
  return start(&on_progress, nullptr, MPIX_STREAM_NULL) == MPI_SUCCESS
             ? ""
             : "MPIX_Async_start failed";
}

void unhook_from_progress() noexcept {}  // the hook ends itself

#else

int on_progress() {
  look(&completion::is_complete);
  return 0;
}

// The hook is found by its name: the standard's binary interface may be that of an Open MPI.
std::string hook_into_progress() {
  auto* const start = find<int(int (*)())>("opal_progress_register");
  if (start == nullptr) {
    return "this MPI exports no hook into its progress: use MPICH 4.3 or later (not its standard "
           "ABI), or an Open MPI that exports opal_progress_register";
  }
  return start(&on_progress) == 0 ? "" : "opal_progress_register failed";
}

void unhook_from_progress() noexcept {
  if (auto* const stop = find<int(int (*)())>("opal_progress_unregister")) stop(&on_progress);
}

#endif

}  // namespace

std::string start_noticing() {
  noticing.store(true, std::memory_order_relaxed);
  std::string wrong = hook_into_progress();
  if (!wrong.empty()) noticing.store(false, std::memory_order_relaxed);
  return wrong;
}

void stop_noticing() noexcept {
  if (!noticing.exchange(false, std::memory_order_relaxed)) return;
  unhook_from_progress();
}

void forget_notices() noexcept {
  if (noticed.load(std::memory_order_relaxed)) noticed.store(false, std::memory_order_relaxed);
}

std::uint64_t notices() noexcept { return count.load(std::memory_order_relaxed); }

}  // namespace imbrex::mpi::progress
