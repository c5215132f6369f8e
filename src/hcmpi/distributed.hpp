// SPDX-License-Identifier: BSD-3-Clause
// hcmpi.h: distributed data-driven futures, by a FutureSpace of bytes over MPI_COMM_WORLD.
//
// HCMPI_Init opens the space without communication: its number is known. Idle workers poll for its
// messages from the first handle on, so that other programs do not pay for it. The space ends with
// MPI_Finalize, which waits until no rank has a task left and no message is in flight: its close()
// would find out nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <source_location>
#include <vector>

#include "imbrex/compat/hcmpi.h"
#include "imbrex/future.hpp"

namespace imbrex::hcmpi {

// The object of a DDF_HANDLE. Thread safety: any thread.
class Distributed {
 public:
  using Bytes = std::vector<std::byte>;
  Distributed(const std::uint64_t its_guid, const std::size_t bytes) noexcept
      : guid_(its_guid), bytes_(bytes) {}

  [[nodiscard]] std::uint64_t guid() const noexcept { return guid_; }
  // Asks for the value at the first call, which may suspend for room to send.
  [[nodiscard]] Future<Bytes> future();
  void put(const void* data, const std::source_location& where) const;
  [[nodiscard]] void* get();  // never waits: Misuse if the value is not here

 private:
  const std::uint64_t guid_;
  const std::size_t bytes_;
  std::mutex lock_;       // guards `value_`; held for a look
  Future<Bytes> value_;   // empty until the value was asked for; then it keeps the value here
};

// The program has freed the handle: the next DDF_HANDLE of its guid makes another.
void forget_handle(const hc_ddf& handle);
// Called in HCMPI_Init: from here on this rank answers other ranks.
void open_distributed();

}  // namespace imbrex::hcmpi
