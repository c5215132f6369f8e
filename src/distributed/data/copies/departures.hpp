// SPDX-License-Identifier: BSD-3-Clause
// Counts the messages by which copies leave this rank, as root or as relay, for each space, and
// records them in the trace. Stands between the protocol and its carrier.
//
// Thread safety: any thread.
#pragma once

#include <mutex>
#include <unordered_map>

#include "base/guarded.hpp"
#include "distributed/carrier/transfers.hpp"
#include "distributed/data/copies/broadcasts.hpp"

namespace imbrex::distributed {

struct DataHead;

// Names a datum in the trace, the same on all ranks; below 2^40.
[[nodiscard]] std::uint64_t trace_key(const DatumName& datum) noexcept;

class Broadcasts::Departures final : public Transfers {
 public:
  explicit Departures(Transfers& under) noexcept : under_(under) {}
  // Between begin and end, copies that leave for the space are counted.
  void begin(std::uint64_t space);
  void end(std::uint64_t space) noexcept;
  [[nodiscard]] SpaceCopies copies(std::uint64_t space) const noexcept;

  [[nodiscard]] int rank() const noexcept override { return under_.rank(); }
  void send(int to, Bytes head, Bytes body) override;
  void flush() noexcept override { under_.flush(); }
  [[nodiscard]] Landing offer(const int from, const std::span<std::byte> memory, const Ended ended,
                              void* const context) override {
    return under_.offer(from, memory, ended, context);
  }
  void deliver(const Landing& landing, const Bytes data, const Ended ended,
               void* const context) override {
    under_.deliver(landing, data, ended, context);
  }
  void expect() override { under_.expect(); }
  void expect_no_more() noexcept override { under_.expect_no_more(); }

 private:
  void note(int to, const DataHead& copy) noexcept;

  Transfers& under_;
  mutable std::mutex mutex_;  // held for a look
  std::unordered_map<std::uint64_t, SpaceCopies> spaces_ IMBREX_GUARDED_BY(mutex_);
};

}  // namespace imbrex::distributed
