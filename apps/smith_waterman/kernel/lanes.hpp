// SPDX-License-Identifier: BSD-3-Clause
// The vector kernel. Each file that includes this is compiled for another processor, so all of it
// has internal linkage, and nothing inline of the standard library is called: the linker must not
// take one processor's function for the others.
//
// A band of 16, 32, 48 or 64 rows is computed along its anti-diagonals: in step t, row L computes
// column t - L, which needs of the two steps before what rows L and L - 1 had then. 16 rows are the
// lanes of one vector, a stripe; the stripes of a band do not wait for each other within a step,
// which hides the latency of what one stripe alone would wait for. Rows that have not begun, or
// are done, keep what they have: before, the cell to the left of the tile, and after, its last.
//
// The vectors are those of the compiler, without intrinsics. Highway 1.0.3 (Debian 12) has no
// shift_in() across its blocks of 128 bits.
#pragma once

#include <cstdint>
#include <cstring>

#include "block.hpp"

namespace smith_waterman {
namespace {

using Short = std::int16_t;
constexpr int lanes = 16;
constexpr int stripes_max = 4;
constexpr int band_max = lanes * stripes_max;
using Lanes = Short __attribute__((vector_size(2 * lanes)));
using UnsignedLanes = std::uint16_t __attribute__((vector_size(2 * lanes)));

inline Lanes load(const Short* from) {
  Lanes lanes_there;
  std::memcpy(&lanes_there, from, sizeof lanes_there);
  return lanes_there;
}

inline void store(Short* to, Lanes from) { std::memcpy(to, &from, sizeof from); }

inline Lanes larger(Lanes one, Lanes other) { return one > other ? one : other; }

inline Lanes all(int value) { return Lanes{} + static_cast<Short>(value); }

// The last lane of `before`, then all lanes of `here` but the last.
inline Lanes shift_in(Lanes before, Lanes here) {
  return __builtin_shufflevector(before, here, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
                                 28, 29, 30);
}

// Letters as numbers whose exclusive or is 0 for a match, match - transition for a transition, and
// at least match - transversion else: so a pair counts max(match - (a ^ b), transversion).
struct Codes {
  Short of[4];
  Short none = 0x2000;  // differs from all letters as in a transversion

  explicit Codes(const Scoring& scoring) {
    const int within = scoring.match - scoring.transition;
    int across = 1;
    while (across <= within || across < scoring.match - scoring.transversion) across *= 2;
    of[0] = 0;
    of[1] = static_cast<Short>(within);
    of[2] = static_cast<Short>(across);
    of[3] = static_cast<Short>(across | within);
  }
};

// Buffers of a block, with room at both ends for rows that are not at work.
struct Buffers {
  static constexpr int margin = band_max;
  Short letters[block_side_max + 2 * margin];  // of b, backwards
  Short above[block_side_max + 2 * margin];
  Short below[block_side_max + 2 * margin];
};

// Data that all bands of a block share.
struct Shared {
  const Scoring& scoring;
  int columns;
  const Short* letters;  // b[j] stands at letters[-j]
  Lanes zero;            // of a local alignment, relative to the corner
};

struct Band {
  Short a[band_max];       // codes
  Short column[band_max];  // in: left; out: the last column
  Short corner;
  int rows;
  const Short* above;  // at the first column; one more vector before it may be read
  Short* below;        // at the first column; a band's rows before it, and after the last, are used
};

template <bool local, bool bounded, int stripes>
class BandRun {
 public:
  BandRun(const Shared& shared, const Band& band)
      : shared_(shared), band_(band), last_row_(band.rows - 1) {
    for (int s = 0; s < stripes; ++s) {
      here_[s] = load(band.column + lanes * s);
      diagonal_[s] = Lanes{};
      a_[s] = load(band.a + lanes * s);
    }
    diagonal_[0][0] = band.corner;
  }

  Lanes run(Lanes bound, Short* column) {
    bound_ = bound;
    const int filled = lanes * stripes - 1;  // the step in which the last row begins
    const int end = shared_.columns + last_row_;
    int t = 0;
    for (; t < end && t < filled; ++t) step<true>(t);
    for (; t < shared_.columns; ++t) step<false>(t);
    for (; t < end; ++t) step<true>(t);
    for (int s = 0; s < stripes; ++s) store(column + lanes * s, here_[s]);
    return bound_;
  }

 private:
  // `ragged`: some rows have not begun, or are done.
  template <bool ragged>
  [[gnu::always_inline]] inline void step(int t) {
    const Scoring& scoring = shared_.scoring;
    Lanes before = load(band_.above + t - (lanes - 1));
    for (int s = 0; s < stripes; ++s) {
      const Lanes left = here_[s];
      const Lanes up = shift_in(before, left);
      const Lanes differs = a_[s] ^ load(shared_.letters - t + lanes * s);
      const Lanes pair = larger(all(scoring.match) - differs, all(scoring.transversion));
      Lanes cell = larger(diagonal_[s] + pair, larger(up, left) + all(scoring.gap));
      if constexpr (local) cell = larger(cell, shared_.zero);
      if constexpr (ragged) {
        const Lanes number{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
        const auto at = reinterpret_cast<UnsignedLanes>(all(t - lanes * s) - number);
        const auto columns = reinterpret_cast<UnsignedLanes>(all(shared_.columns));
        cell = at < columns ? cell : left;  // before column 0 `at` is large
      }
      diagonal_[s] = up;
      here_[s] = cell;
      if constexpr (bounded) bound_ = larger(bound_, cell);
      before = left;
    }
    const int stripe = stripes - 1;  // that of the last row, as bands are chosen
    band_.below[t - last_row_] = here_[stripe][last_row_ - lanes * stripe];
  }

  const Shared& shared_;
  const Band& band_;
  const int last_row_;
  Lanes here_[stripes];      // what each row computed last
  Lanes diagonal_[stripes];  // what the row above had computed a step before that
  Lanes a_[stripes];
  Lanes bound_;
};

template <bool local, bool bounded>
Lanes run_band(const Shared& shared, const Band& band, Lanes bound, Short* column) {
  switch ((band.rows + lanes - 1) / lanes) {
    case 1: return BandRun<local, bounded, 1>(shared, band).run(bound, column);
    case 2: return BandRun<local, bounded, 2>(shared, band).run(bound, column);
    case 3: return BandRun<local, bounded, 3>(shared, band).run(bound, column);
    default: return BandRun<local, bounded, 4>(shared, band).run(bound, column);
  }
}

Lanes run_band(const Shared& shared, const Band& band, bool want_bound, Lanes bound,
               Short* column) {
  if (shared.scoring.local) {
    return want_bound ? run_band<true, true>(shared, band, bound, column)
                      : run_band<true, false>(shared, band, bound, column);
  }
  return want_bound ? run_band<false, true>(shared, band, bound, column)
                    : run_band<false, false>(shared, band, bound, column);
}

// Rows below the last are those of a larger tile whose letters match none, with falling cells to
// their left: they hold small numbers, and nothing that exceeds the bound.
void fill_band(const Scoring& scoring, const Block& block, int first, const Codes& codes,
               Band& band) {
  const int left_rows = block.rows - first;
  band.rows = left_rows < band_max ? left_rows : band_max;
  for (int i = 0; i < band.rows; ++i) {
    band.a[i] = codes.of[block.a[first + i]];
    band.column[i] = static_cast<Short>(block.column[first + i] - block.corner);
  }
  for (int i = band.rows; i < band_max; ++i) {
    band.a[i] = codes.none;
    band.column[i] = static_cast<Short>(band.column[i - 1] + scoring.gap);
  }
}

Short largest_of(Lanes values) {
  Short largest = values[0];
  for (int i = 1; i < lanes; ++i) largest = values[i] > largest ? values[i] : largest;
  return largest;
}

Score compute_by_lanes(const Scoring& scoring, const Block& block, bool want_bound) {
  const Codes codes(scoring);
  Buffers buffers;
  // b[j] at letters + columns - 1 - j; the margins are read by rows that are not at work.
  Short* const letters = buffers.letters + Buffers::margin;
  Short* above = buffers.above + Buffers::margin;
  Short* below = buffers.below + Buffers::margin;
  for (int j = 0; j < Buffers::margin; ++j) {
    letters[j - Buffers::margin] = letters[block.columns + j] = codes.none;
    above[j - Buffers::margin] = above[block.columns + j] = 0;
    below[j - Buffers::margin] = below[block.columns + j] = 0;
  }
  for (int j = 0; j < block.columns; ++j) {
    letters[block.columns - 1 - j] = codes.of[block.b[j]];
    above[j] = static_cast<Short>(block.row[j] - block.corner);
  }
  // If 0 lies too far below the corner to be reached in this block, any number that no cell reaches
  // serves as well.
  const Score zero = block.corner < 30000 ? -block.corner : -30000;
  const Shared shared{scoring, block.columns, letters + block.columns - 1, all(zero)};
  Lanes bound = all(scoring.local ? zero : -32768);
  Short corner = 0;
  for (int first = 0; first < block.rows; first += band_max) {
    Band band;
    fill_band(scoring, block, first, codes, band);
    band.corner = corner;
    band.above = above;
    band.below = below;
    corner = band.column[band.rows - 1];
    Short column[band_max];
    bound = run_band(shared, band, want_bound, bound, column);
    for (int i = 0; i < band.rows; ++i) block.column[first + i] = block.corner + column[i];
    Short* const next = above;
    above = below;
    below = next;
  }
  for (int j = 0; j < block.columns; ++j) block.row[j] = block.corner + above[j];
  return block.corner + largest_of(bound);
}

}  // namespace
}  // namespace smith_waterman
