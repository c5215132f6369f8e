// SPDX-License-Identifier: BSD-3-Clause
// Transfers: long data that go directly to memory which their receiver has offered. Each is an
// operation of the engine; the holder calls the function for its end.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <unordered_set>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "mpi/active/post/open_work.hpp"
#include "mpi/active/post/wire.hpp"

namespace imbrex::mpi::active {

using Ended = void (*)(void* context, std::exception_ptr error) noexcept;

// Thread safety: any thread calls offer(), deliver() and delivered(); the holder calls take_ended()
// and landed(). Invariant: a transfer is counted as sent before it can arrive, and as handled once
// its function has returned at the receiver: the waves of MPI_Finalize see it in flight in between.
class ActiveTransfers {
 public:
  ActiveTransfers(const Wire& wire, OpenWork& work) noexcept : wire_(wire), work_(work) {}

  // Returns the tag of a transfer into `memory`. Throws MpiError.
  [[nodiscard]] int offer(int from, std::span<std::byte> memory, Ended ended, void* context);
  void deliver(int to, int tag, std::span<const std::byte> data, Ended ended, void* context);
  // Calls the functions of the ended transfers. Returns their number.
  [[nodiscard]] int take_ended() noexcept;

  [[nodiscard]] std::int64_t delivered() const noexcept {
    return delivered_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t landed() const noexcept { return landed_; }

 private:
  struct Transfer;
  [[nodiscard]] int take_tag();
  void free_tag(int tag) noexcept;
  void end(Transfer& transfer) noexcept;

  const Wire& wire_;
  OpenWork& work_;
  base::SpinLock ended_lock_;
  Transfer* first_ended_ IMBREX_GUARDED_BY(ended_lock_) = nullptr;
  Transfer* last_ended_ IMBREX_GUARDED_BY(ended_lock_) = nullptr;
  std::mutex tags_lock_;
  int last_tag_ IMBREX_GUARDED_BY(tags_lock_) = 0;
  std::unordered_set<int> tags_ IMBREX_GUARDED_BY(tags_lock_);
  std::atomic<std::int64_t> delivered_{0};  // any thread
  std::int64_t landed_ = 0;                 // only the holder uses it
};

}  // namespace imbrex::mpi::active
