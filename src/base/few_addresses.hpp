// SPDX-License-Identifier: BSD-3-Clause
// FewAddresses: finds whether one of a few addresses is given twice, without comparing all pairs.
// Distinct bits in a word prove that addresses are distinct; where two addresses share a bit, the
// caller must compare. Among four addresses, one array in eleven shares one.
#pragma once

#include <cstdint>

namespace imbrex::base {

class FewAddresses {
 public:
  // Adds an address. False if the address may have been added before.
  [[nodiscard]] bool add(const void* const address) noexcept {
    constexpr std::uint64_t spread = 0x9e3779b97f4a7c15;  // 2^64 / the golden ratio
    const auto key = reinterpret_cast<std::uintptr_t>(address);
    const std::uint64_t bit = std::uint64_t{1} << (key * spread >> 58);
    const bool is_new = (seen_ & bit) == 0;
    seen_ |= bit;
    return is_new;
  }

 private:
  std::uint64_t seen_ = 0;
};

}  // namespace imbrex::base
