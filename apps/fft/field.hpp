// SPDX-License-Identifier: BSD-3-Clause
// What is transformed, and whether what came out is its spectrum.
#pragma once

#include <memory>
#include <optional>

#include "lines.hpp"
#include "stages.hpp"

namespace fft {

// A field of n x n, or n x n x n points, each of which any rank can compute.
struct Field {
  enum class Kind {
    random,   // real and imaginary parts are uniform from -1 to 1
    wave,     // exp(2 pi i (a x + b y + c z) / n): its spectrum is a single point
    numbers,  // the number of the point: for lines that sleep, after which all are as before
  };

  Kind kind = Kind::random;
  int dims = 2;
  std::int64_t n = 1;
  std::uint64_t seed = 1;

  [[nodiscard]] Complex at(std::int64_t x, std::int64_t y, std::int64_t z) const noexcept;
  [[nodiscard]] std::array<std::int64_t, 3> wave() const noexcept;  // a, b and c
  [[nodiscard]] double points() const noexcept;                     // of all ranks
};

void fill(const Field& field, const Layout& layout, Complex* points);

// Each member is a departure divided by the departure that rounding explains, eps log2(number of
// points) with eps = 2^-52. The value covers all ranks and is relative in the Euclidean norm; a
// right result is below error_limit. A member without a value does not apply to the run.
struct Errors {
  std::optional<double> whole;       // from FFTW's transform of the whole field, of few points
  std::optional<double> wave;        // from the known spectrum of a wave
  std::optional<double> energy;      // from Parseval's theorem
  std::optional<double> round_trip;  // of the transform back, from the input
  std::optional<double> moved;       // lines that sleep: points that are not where they belong

  [[nodiscard]] double largest() const noexcept;
};
inline constexpr double error_limit = 4;
inline constexpr double whole_points_max = 1 << 20;  // each rank transforms them all

// All but the round trip. Collective.
[[nodiscard]] Errors check(const Field& field, const Layout& layout, const Complex* spectrum,
                           bool lines_sleep);
// `points` is what a forward transform of the spectrum's conjugate gave, in the layout of the
// input. Collective.
[[nodiscard]] double check_round_trip(const Field& field, const Layout& layout,
                                      const Complex* points);

}  // namespace fft
