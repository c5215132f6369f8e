// SPDX-License-Identifier: BSD-3-Clause
#include "sha1.hpp"

#include <bit>

namespace uts {
namespace {

constexpr std::uint32_t initial[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};

// FIPS 180-4, section 6.1.2, for the only block of a message; the schedule is a ring of 16 words.
State digest(std::uint32_t (&w)[16]) noexcept {
  std::uint32_t a = initial[0], b = initial[1], c = initial[2], d = initial[3], e = initial[4];
  const auto round = [&](int t, std::uint32_t f, std::uint32_t k) {
    if (t >= 16) {
      w[t & 15] = std::rotl(w[(t + 13) & 15] ^ w[(t + 8) & 15] ^ w[(t + 2) & 15] ^ w[t & 15], 1);
    }
    const std::uint32_t next = std::rotl(a, 5) + f + e + k + w[t & 15];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  };
  for (int t = 0; t < 20; ++t) round(t, d ^ (b & (c ^ d)), 0x5a827999);
  for (int t = 20; t < 40; ++t) round(t, b ^ c ^ d, 0x6ed9eba1);
  for (int t = 40; t < 60; ++t) round(t, (b & c) | (d & (b | c)), 0x8f1bbcdc);
  for (int t = 60; t < 80; ++t) round(t, b ^ c ^ d, 0xca62c1d6);
  return {{initial[3] + d, initial[2] + c, initial[1] + b, initial[0] + a}, initial[4] + e};
}

}  // namespace

State sha1(const std::span<const std::uint8_t> message) noexcept {
  std::uint32_t w[16] = {};
  std::uint32_t at = 0;
  const auto put = [&](std::uint32_t byte) {
    w[at / 4] |= byte << (24 - 8 * (at % 4));
    ++at;
  };
  for (const std::uint8_t byte : message) put(byte);
  put(0x80);
  w[15] = static_cast<std::uint32_t>(8 * message.size());
  return digest(w);
}

State root_state(const std::int32_t seed) noexcept {
  std::uint8_t message[20] = {};
  for (int i = 0; i < 4; ++i) {
    message[16 + i] = static_cast<std::uint8_t>(static_cast<std::uint32_t>(seed) >> (24 - 8 * i));
  }
  return sha1(message);
}

State child_state(const State& parent, const std::uint32_t child) noexcept {
  std::uint32_t w[16] = {};
  for (int i = 0; i < 5; ++i) w[i] = parent.word(i);
  w[5] = child;
  w[6] = 0x80000000;
  w[15] = 8 * 24;
  return digest(w);
}

}  // namespace uts
