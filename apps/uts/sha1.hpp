// SPDX-License-Identifier: BSD-3-Clause
// SHA-1 of messages of one block, in plain C++: the random numbers of the trees. Knows no tree.
// hash_x86.cpp has the same for processors with instructions for it.
//
// libcrypto (OpenSSL 3.0) does not replace hash_x86.cpp: for one child its fastest calls, the
// deprecated SHA1_Init, SHA1_Update and SHA1_Final, take 106 ns and a reused EVP_MD_CTX takes
// 209 ns, and hash_x86.cpp takes 34 ns, since it interleaves three (an AMD EPYC of family 25).
#pragma once

#include <cstdint>
#include <span>

namespace uts {

// A digest, which is also the state of a node. Words 0 to 3 stand in reverse, as the registers of
// the instructions for SHA-1 hold them; word 4 is the last.
struct State {
  std::uint32_t reversed[4];
  std::uint32_t last;

  [[nodiscard]] std::uint32_t word(int i) const noexcept { return i < 4 ? reversed[3 - i] : last; }
  // The node's random number, below 2^31.
  [[nodiscard]] std::uint32_t value() const noexcept { return last & 0x7fffffff; }

  bool operator==(const State&) const = default;
};

// REQUIRES: at most 55 bytes.
[[nodiscard]] State sha1(std::span<const std::uint8_t> message) noexcept;

// SHA-1 of 16 zero bytes and the seed, big-endian.
[[nodiscard]] State root_state(std::int32_t seed) noexcept;
// SHA-1 of the parent's digest and the number of the child, big-endian.
[[nodiscard]] State child_state(const State& parent, std::uint32_t child) noexcept;

}  // namespace uts
