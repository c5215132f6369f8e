// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/abi/error_handlers.hpp"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "base/arch.hpp"
#include "base/guarded.hpp"

namespace imbrex::mpi {

namespace {

// An error is rare, and two errors at once are rarer: there is one list for all threads.
struct KeptHandlers {
  std::mutex lock;
  std::vector<std::pair<pthread_t, KeptHandler>> all IMBREX_GUARDED_BY(lock);
};
KeptHandlers& kept_handlers() noexcept {
  static auto& all = *new KeptHandlers;  // never destroyed: MPI may fail while static objects are
                                         // destroyed
  return all;
}

// The entry of the calling thread, or the end.
auto find_here() noexcept IMBREX_REQUIRES(kept_handlers().lock) {
  const pthread_t thread = base::this_thread();
  return std::ranges::find_if(kept_handlers().all, [thread](const auto& one) {
    return pthread_equal(one.first, thread) != 0;
  });
}

}  // namespace

std::atomic<int> kept_count{0};

void keep(const KeptHandler& handler) noexcept {
  (void)take_kept();
  kept_count.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard guard(kept_handlers().lock);
  kept_handlers().all.emplace_back(base::this_thread(), handler);
}

KeptHandler take_kept() noexcept {
  const std::lock_guard guard(kept_handlers().lock);
  const auto found = find_here();
  if (found == kept_handlers().all.end()) return {};
  const KeptHandler handler = found->second;
  *found = kept_handlers().all.back();
  kept_handlers().all.pop_back();
  kept_count.fetch_sub(1, std::memory_order_relaxed);
  return handler;
}

int code_of_kept(const int code) noexcept {
  const std::lock_guard guard(kept_handlers().lock);
  const auto found = find_here();
  return found == kept_handlers().all.end() ? code : found->second.code;
}

}  // namespace imbrex::mpi
