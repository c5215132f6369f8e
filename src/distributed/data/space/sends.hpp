// SPDX-License-Identifier: BSD-3-Clause
// A version that goes to other ranks: the list of them, which is open until the version is there
// and somebody sends it. So ranks that ask meanwhile get it by one broadcast.
//
// Thread safety: add(), the thread that inserts; close(), whoever sends; the rest as Copy.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "distributed/data/copies/broadcasts.hpp"
#include "distributed/data/space/copy.hpp"

namespace imbrex::distributed {

using detail::DataSpace;
using detail::Datum;

// Kept by the datum's record while it may be open, and by who sends until the last byte has left.
class VersionSend {
 public:
  VersionSend(Datum& datum, Copy& copy) : datum_(datum), copy_(copy) { copy.retain(); }
  VersionSend(const VersionSend&) = delete;
  VersionSend& operator=(const VersionSend&) = delete;

  // False: it has been closed.
  [[nodiscard]] bool add(const Recipient& recipient) {
    const std::lock_guard guard(mutex_);
    if (closed_) return false;
    list_.push_back(recipient);
    return true;
  }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  // In a task that has access to the copy, which the access keeps until all has left.
  void send() noexcept;

 private:
  ~VersionSend() = default;
  [[nodiscard]] std::vector<Recipient> close() {
    const std::lock_guard guard(mutex_);
    closed_ = true;
    return std::move(list_);
  }
  static void ended(void* sending, std::exception_ptr error) noexcept;
  void end() noexcept;

  Datum& datum_;
  Copy& copy_;
  Buffer* scratch_ = nullptr;
  detail::EventWord left_;
  std::atomic<std::uint32_t> references_{2};
  std::mutex mutex_;  // held for a look
  bool closed_ IMBREX_GUARDED_BY(mutex_) = false;
  std::vector<Recipient> list_ IMBREX_GUARDED_BY(mutex_);
};

}  // namespace imbrex::distributed
