// SPDX-License-Identifier: BSD-3-Clause
// A carrier that also moves long data, directly from memory to memory. Knows no protocol.
#pragma once

#include "distributed/carrier/carrier.hpp"
#include "mpi/active/active.hpp"

namespace imbrex::distributed {

using mpi::active::Ended;
using mpi::active::Landing;
using mpi::active::transfer_bytes_max;

class Transfers : public Carrier {
 public:
  // active::offer() and deliver(); these throw MpiError.
  [[nodiscard]] virtual Landing offer(int from, std::span<std::byte> memory, Ended ended,
                                      void* context) = 0;
  virtual void deliver(const Landing& landing, Bytes data, Ended ended, void* context) = 0;
  // Between the two, which are called equally often, this rank depends on messages of others.
  virtual void expect() = 0;
  virtual void expect_no_more() noexcept = 0;

 protected:
  Transfers() = default;
  ~Transfers() = default;
};

}  // namespace imbrex::distributed
