// SPDX-License-Identifier: BSD-3-Clause
// The hash with the instructions for SHA-1 of x86 processors, several independent ones interleaved.
#include <cpuid.h>
#include <immintrin.h>

#include <utility>

#define UTS_TARGET [[gnu::target("sha,sse4.1")]]
#include "lanes.hpp"

namespace uts {
namespace {

// One group of four rounds of all lanes. W[g % 4] has four words of the schedule, the first one
// highest; from group 4 on they are made from the four before.
template <int Group>
UTS_TARGET [[gnu::always_inline]] inline void rounds(__m128i (&abcd)[lanes], __m128i (&e)[lanes],
                                                  __m128i (&w)[lanes][4]) noexcept {
#pragma GCC unroll 8
  for (int lane = 0; lane < lanes; ++lane) {
    __m128i& mine = w[lane][Group & 3];
    if constexpr (Group >= 4) {
      mine = _mm_sha1msg2_epu32(
          _mm_xor_si128(_mm_sha1msg1_epu32(mine, w[lane][(Group + 1) & 3]),
                        w[lane][(Group + 2) & 3]),
          w[lane][(Group + 3) & 3]);
    }
    const __m128i sum =
        Group == 0 ? _mm_add_epi32(e[lane], mine) : _mm_sha1nexte_epu32(e[lane], mine);
    e[lane] = abcd[lane];
    abcd[lane] = _mm_sha1rnds4_epu32(abcd[lane], sum, Group / 5);
  }
}

template <int... Groups>
UTS_TARGET [[gnu::always_inline]] inline void all_rounds(
    __m128i (&abcd)[lanes], __m128i (&e)[lanes], __m128i (&w)[lanes][4],
    std::integer_sequence<int, Groups...>) noexcept {
  (rounds<Groups>(abcd, e, w), ...);
}

struct ShaHashes {
  UTS_TARGET [[gnu::always_inline]] static void run(const State* const (&parents)[lanes],
                                                 const std::uint32_t (&children)[lanes],
                                                 State (&out)[lanes]) noexcept {
    const __m128i abcd_before = _mm_set_epi32(0x67452301, static_cast<int>(0xefcdab89),
                                              static_cast<int>(0x98badcfe), 0x10325476);
    const __m128i e_before = _mm_set_epi32(static_cast<int>(0xc3d2e1f0), 0, 0, 0);
    __m128i abcd[lanes];
    __m128i e[lanes];
    __m128i w[lanes][4];
    for (int lane = 0; lane < lanes; ++lane) {
      abcd[lane] = abcd_before;
      e[lane] = e_before;
      w[lane][0] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(parents[lane]->reversed));
      w[lane][1] = _mm_set_epi32(static_cast<int>(parents[lane]->last),
                                 static_cast<int>(children[lane]), INT32_MIN, 0);
      w[lane][2] = _mm_setzero_si128();
      w[lane][3] = _mm_set_epi32(0, 0, 0, 8 * 24);
    }
    all_rounds(abcd, e, w, std::make_integer_sequence<int, 20>());
    for (int lane = 0; lane < lanes; ++lane) {
      const __m128i last = _mm_sha1nexte_epu32(e[lane], e_before);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out[lane].reversed),
                       _mm_add_epi32(abcd[lane], abcd_before));
      out[lane].last = static_cast<std::uint32_t>(_mm_extract_epi32(last, 3));
    }
  }
};

UTS_TARGET Node* expand_sha(const Tree& tree, const std::span<const Node> parents,
                         Node* out) noexcept {
  return Expander<ShaHashes>(tree, out).run(parents);
}

}  // namespace

bool processor_has_sha() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_SSE4_1) == 0) return false;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
}

Expand expand_with_sha() noexcept { return &expand_sha; }

}  // namespace uts
