// SPDX-License-Identifier: BSD-3-Clause
// How a protocol of distributed/ reaches other ranks: by active messages, or in tests by a
// simulated network in which one process plays several ranks. Knows no protocol.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

namespace imbrex::distributed {

using Bytes = std::span<const std::byte>;

inline constexpr std::size_t message_bytes_max = 3968;  // head and body together

// One rank's way to all other ranks. Messages from one rank to another arrive in their order, and
// the receiving function runs once at a time on a rank (mpi/active/active.hpp).
class Carrier {
 public:
  [[nodiscard]] virtual int rank() const noexcept = 0;  // of MPI_COMM_WORLD, as all ranks here
  // active::send(): outside of handlers it may suspend.
  virtual void send(int to, Bytes head, Bytes body) = 0;
  virtual void flush() noexcept = 0;

 protected:
  Carrier() = default;
  ~Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;
};

template <class T>
  requires(std::is_trivially_copyable_v<T>)
[[nodiscard]] Bytes bytes_of(const T& object) noexcept {
  return std::as_bytes(std::span(&object, 1));
}

}  // namespace imbrex::distributed
