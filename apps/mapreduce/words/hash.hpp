// SPDX-License-Identifier: BSD-3-Clause
// Hashes of words and of numbers, the same on every machine and rank.
#pragma once

#include <cstdint>
#include <string_view>

namespace mapreduce {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): each bit of the result depends on all.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

// FNV-1a, mixed: by its remainders words are dealt to ranks.
struct WordHash {
  using is_transparent = void;  // tables of strings are asked by views
  [[nodiscard]] std::uint64_t operator()(const std::string_view word) const noexcept {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char byte : word) {
      hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3U;
    }
    return mixed(hash);
  }
};

}  // namespace mapreduce
