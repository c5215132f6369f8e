// SPDX-License-Identifier: BSD-3-Clause
// A version that goes to other ranks: the list of recipients, which is open until the version
// exists and is sent. Ranks that ask meanwhile get it by one broadcast, in the order that the
// policy prefers: Leads finds the recipients whose work leads to a send.
//
// Thread safety: the inserting thread calls add() and raise(), and uses Leads; the sending thread
// calls close(); the rest as Copy.
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
#include "distributed/data/leads.hpp"
#include "distributed/data/space/copy.hpp"

namespace imbrex::distributed {

using detail::DataSpace;
using detail::Datum;

// The datum's record keeps it while it may be open, the sender until the last byte has left.
class VersionSend {
 public:
  VersionSend(Datum& datum, Copy& copy, std::vector<Recipient> list)
      : datum_(datum), copy_(copy), list_(std::move(list)) {
    copy.retain();
  }
  VersionSend(const VersionSend&) = delete;
  VersionSend& operator=(const VersionSend&) = delete;

  // False: the list is closed.
  [[nodiscard]] bool add(const Recipient& recipient) {
    const std::lock_guard guard(mutex_);
    if (closed_.load(std::memory_order_relaxed)) return false;
    list_.push_back(recipient);
    return true;
  }
  // The copy for this rank of MPI_COMM_WORLD has at least this urgency, if the list is open.
  void raise(const int rank, const std::int32_t urgency) {
    const std::lock_guard guard(mutex_);
    distributed::raise(list_, rank, urgency);
  }
  // A hint: the list may close at any time.
  [[nodiscard]] bool is_open() const noexcept { return !closed_.load(std::memory_order_relaxed); }
  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  // Runs in a task with access to the copy, which the access keeps until all data have left.
  void send() noexcept;

 private:
  ~VersionSend() = default;
  [[nodiscard]] std::vector<Recipient> close() {
    const std::lock_guard guard(mutex_);
    closed_.store(true, std::memory_order_relaxed);
    return std::move(list_);
  }
  static void ended(void* sending, std::exception_ptr error) noexcept;
  void end() noexcept;

  Datum& datum_;
  Copy& copy_;
  Buffer* scratch_ = nullptr;
  detail::EventWord left_;
  std::atomic<std::uint32_t> references_{2};
  std::mutex mutex_;  // held for a few instructions
  std::atomic<bool> closed_{false};  // written under the mutex, which orders it with the list
  std::vector<Recipient> list_ IMBREX_GUARDED_BY(mutex_);
};
using VersionLeads = Leads<VersionSend>;

}  // namespace imbrex::distributed
