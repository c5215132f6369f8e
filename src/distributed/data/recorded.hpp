// SPDX-License-Identifier: BSD-3-Clause
// The file in which a program on data with owners hands its insertions to `imbrex simulate`: what
// recorder.cpp writes, and src/simulate/owners reads. It is a sequence of operations: one byte for
// the kind, then numbers of seven bits a byte, the lowest first. The upper bit says that more
// follows. docs/design/simulator.md describes it.
#pragma once

#include <cstdint>
#include <string_view>

namespace imbrex::distributed::recorded {

// Changes with every change of the file.
inline constexpr std::string_view magic = "imbrex insertions 1\n";

// Numbers of spaces, data, names and reductions count from 0 in the order of their first use.
enum class Operation : std::uint8_t {
  end = 0,      // nothing follows
  space,        // window
  datum,        // space, owner + 1, bytes
  name,         // length, then its bytes
  task,         // space, name, executor, priority, accesses, then for each: datum * 4 + mode, and
                // for mode reduce the reduction
  flush,        // space, datum
  discard,      // space, datum
  move,         // space, datum, new owner
  finish,       // space
  close,        // space
  operations
};

// A priority as a number that is small if the priority is near 0.
[[nodiscard]] constexpr std::uint64_t folded(const int priority) noexcept {
  const auto wide = static_cast<std::int64_t>(priority);
  return static_cast<std::uint64_t>(wide) << 1 ^ static_cast<std::uint64_t>(wide >> 63);
}
[[nodiscard]] constexpr int unfolded(const std::uint64_t number) noexcept {
  return static_cast<int>(static_cast<std::int64_t>(number >> 1) ^
                          -static_cast<std::int64_t>(number & 1));
}

}  // namespace imbrex::distributed::recorded
