// SPDX-License-Identifier: BSD-3-Clause
// Where the entries of a matrix come from: any rank can make any part of it, at any time.
#pragma once

#include <cstdint>

namespace tiled {

// A part of the full matrix.
struct Block {
  std::int64_t row;
  std::int64_t column;
  int rows;
  int columns;
};

// Thread safety: fill() may be called by any number of tasks at once.
class Source {
 public:
  virtual ~Source() = default;
  // Column-major, `block.rows` apart.
  virtual void fill(const Block& block, double* entries) const = 0;
};

// Uniform entries in (-0.5, 0.5) with n added to the diagonal: positive definite, and the same on
// any grid, since an entry depends on its position and the seed alone.
class RandomSource : public Source {
 public:
  // `bad_minor`, if not 0, is the order of the first leading minor that shall not be positive.
  RandomSource(std::int64_t n, std::uint64_t seed, std::int64_t bad_minor) noexcept
      : n_(n), seed_(seed), bad_minor_(bad_minor) {}

  void fill(const Block& block, double* entries) const override {
    for (int c = 0; c < block.columns; ++c) {
      for (int r = 0; r < block.rows; ++r) *entries++ = entry(block.row + r, block.column + c);
    }
  }

  [[nodiscard]] double entry(std::int64_t i, std::int64_t j) const noexcept {
    if (i + 1 == bad_minor_ && i == j) return -1.0;
    const auto high = static_cast<std::uint64_t>(i > j ? i : j);
    const auto low = static_cast<std::uint64_t>(i > j ? j : i);
    const std::uint64_t bits = mix(seed_ + high * 0x9e3779b97f4a7c15ULL + mix(low + 1));
    const double uniform = static_cast<double>(bits >> 11) * 0x1p-53 - 0.5;
    return i == j ? uniform + static_cast<double>(n_) : uniform;
  }

 private:
  // The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
  static std::uint64_t mix(std::uint64_t x) noexcept {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }

  std::int64_t n_;
  std::uint64_t seed_;
  std::int64_t bad_minor_;
};

// A RandomSource with half the value below the diagonal: not symmetric, and diagonally dominant, so
// that LU needs no pivoting.
class UnsymmetricSource : public Source {
 public:
  UnsymmetricSource(std::int64_t n, std::uint64_t seed) noexcept : random_(n, seed, 0) {}

  void fill(const Block& block, double* entries) const override {
    for (int c = 0; c < block.columns; ++c) {
      for (int r = 0; r < block.rows; ++r) *entries++ = entry(block.row + r, block.column + c);
    }
  }
  [[nodiscard]] double entry(std::int64_t i, std::int64_t j) const noexcept {
    return random_.entry(i, j) * (i > j ? 0.5 : 1.0);
  }

 private:
  RandomSource random_;
};

// Uniform entries in (-0.5, 0.5), without a structure.
class UniformSource : public Source {
 public:
  UniformSource(std::int64_t n, std::uint64_t seed) noexcept : n_(n), random_(0, seed, 0) {}

  void fill(const Block& block, double* entries) const override {
    for (int c = 0; c < block.columns; ++c) {
      // Off the other's diagonal, and on one side of it, where it is not symmetric.
      for (int r = 0; r < block.rows; ++r) {
        *entries++ = random_.entry(block.row + r, n_ + block.column + c);
      }
    }
  }

 private:
  std::int64_t n_;
  RandomSource random_;
};

}  // namespace tiled
