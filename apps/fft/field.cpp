// SPDX-License-Identifier: BSD-3-Clause
#include "field.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace fft {
namespace {

// A number from -1 to 1 for each index, by splitmix64.
double uniform(std::uint64_t index) noexcept {
  index += 0x9e3779b97f4a7c15;
  index = (index ^ (index >> 30)) * 0xbf58476d1ce4e5b9;
  index = (index ^ (index >> 27)) * 0x94d049bb133111eb;
  index ^= index >> 31;
  return static_cast<double>(index >> 11) * 0x1p-52 - 1;
}

// Sums over all ranks.
struct Sums {
  double departure = 0;
  double reference = 0;
};

double relative(Sums sums, const Field& field) {
  MPI_Allreduce(MPI_IN_PLACE, &sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double rounding =
      std::numeric_limits<double>::epsilon() * std::max(1.0, std::log2(field.points()));
  return std::sqrt(sums.departure / std::max(sums.reference, 1e-300)) / rounding;
}

// Returns the departure from the values that `expected(x, y, z)` gives.
template <class Expected>
double departure(const Field& field, const Layout& layout, const Complex* const points,
                 Expected&& expected) {
  Sums sums;
  for_each_point(layout, [&](std::int64_t i, std::int64_t x, std::int64_t y, std::int64_t z) {
    const Complex right = expected(x, y, z);
    sums.departure += std::norm(points[i] - right);
    sums.reference += std::norm(right);
  });
  return relative(sums, field);
}

double check_whole(const Field& field, const Layout& layout, const Complex* const spectrum) {
  const auto n = static_cast<int>(field.n);
  const Points whole = allocate(static_cast<std::int64_t>(field.points()));
  const std::int64_t depth = field.dims == 3 ? field.n : 1;
  fill(field, {{Range{0, n}, Range{0, n}, Range{0, depth}}, {2, 1, 0}}, whole.get());
  const fftw_plan plan =
      field.dims == 2
          ? fftw_plan_dft_2d(n, n, raw(whole.get()), raw(whole.get()), FFTW_FORWARD, FFTW_ESTIMATE)
          : fftw_plan_dft_3d(n, n, n, raw(whole.get()), raw(whole.get()), FFTW_FORWARD,
                             FFTW_ESTIMATE);
  fftw_execute(plan);
  fftw_destroy_plan(plan);
  return departure(field, layout, spectrum, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    return whole[static_cast<std::size_t>((z * n + y) * n + x)];
  });
}

double check_wave(const Field& field, const Layout& layout, const Complex* const spectrum) {
  const std::array peak = field.wave();
  return departure(field, layout, spectrum, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    return std::array{x, y, z} == peak ? Complex(field.points()) : Complex();
  });
}

// The energy of the whole field is computed anew, since each rank can: by slabs of it.
double check_energy(const Field& field, const Layout& layout, const Complex* const spectrum) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const Range all{0, field.n};
  const Range depth{0, field.dims == 3 ? field.n : 1};
  const Range mine{field.n * rank / ranks, field.n * (rank + 1) / ranks};
  double energies[2] = {};  // of the field, of the spectrum
  for_each_point({{all, mine, depth}, {2, 1, 0}},
                 [&](std::int64_t, std::int64_t x, std::int64_t y, std::int64_t z) {
                   energies[0] += std::norm(field.at(x, y, z));
                 });
  for (std::int64_t i = 0; i < layout.points(); ++i) energies[1] += std::norm(spectrum[i]);
  MPI_Allreduce(MPI_IN_PLACE, energies, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double right = std::sqrt(energies[0] * field.points());
  // The rounding of a sum of terms of one sign grows at most with the root of their number.
  const double rounding = std::numeric_limits<double>::epsilon() *
                          std::max(1.0, std::log2(field.points()) + std::sqrt(field.points()));
  return std::abs(std::sqrt(energies[1]) - right) / std::max(right, 1e-300) / rounding;
}

}  // namespace

std::array<std::int64_t, 3> Field::wave() const noexcept {
  return {1 % n, (n - 1) / 2, dims == 3 ? n / 3 : 0};
}

double Field::points() const noexcept {
  return std::pow(static_cast<double>(n), static_cast<double>(dims));
}

Complex Field::at(const std::int64_t x, const std::int64_t y, const std::int64_t z) const noexcept {
  const auto number = static_cast<std::uint64_t>((z * n + y) * n + x);
  switch (kind) {
    case Kind::random: {
      const std::uint64_t first = 2 * number + (seed << 40);
      return {uniform(first), uniform(first + 1)};
    }
    case Kind::wave: {
      const auto [a, b, c] = wave();
      // Reduced before it is rounded, so that the wave is exact wherever it is.
      const std::int64_t turns = (a * x % n + b * y % n + c * z % n) % n;
      return std::polar(1.0, 2 * std::numbers::pi * static_cast<double>(turns) /
                                 static_cast<double>(n));
    }
    case Kind::numbers: break;
  }
  return static_cast<double>(number);
}

void fill(const Field& field, const Layout& layout, Complex* const points) {
  for_each_point(layout, [&](std::int64_t i, std::int64_t x, std::int64_t y, std::int64_t z) {
    points[i] = field.at(x, y, z);
  });
}

double Errors::largest() const noexcept {
  double most = 0;
  for (const auto& error : {whole, wave, energy, round_trip, moved}) {
    if (error && !std::isnan(most) && !(*error <= most)) most = *error;  // NaN stays
  }
  return most;
}

Errors check(const Field& field, const Layout& layout, const Complex* const spectrum,
             const bool lines_sleep) {
  Errors errors;
  if (lines_sleep) {
    std::int64_t wrong = 0;
    for_each_point(layout, [&](std::int64_t i, std::int64_t x, std::int64_t y, std::int64_t z) {
      wrong += spectrum[i] != field.at(x, y, z);
    });
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    errors.moved = static_cast<double>(wrong) * 2 * error_limit;
    return errors;
  }
  if (field.points() <= whole_points_max) errors.whole = check_whole(field, layout, spectrum);
  if (field.kind == Field::Kind::wave) errors.wave = check_wave(field, layout, spectrum);
  errors.energy = check_energy(field, layout, spectrum);
  return errors;
}

double check_round_trip(const Field& field, const Layout& layout, const Complex* const points) {
  return departure(field, layout, points, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    return std::conj(field.at(x, y, z)) * field.points();
  });
}

}  // namespace fft
