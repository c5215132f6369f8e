// SPDX-License-Identifier: BSD-3-Clause
#include "lines.hpp"

#include <algorithm>
#include <cstdio>
#include <numbers>

#include "../tiled/sleep.hpp"
#include "../tiled/timed.hpp"

namespace fft {

Points allocate(const std::int64_t count) {
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * sizeof(Complex);
  void* const memory = fftw_malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  auto* const points = static_cast<Complex*>(memory);
  std::uninitialized_fill_n(points, std::max<std::int64_t>(count, 1), Complex());
  return Points(points);
}

namespace {

fftw_plan plan_line(const std::int64_t n, const Planning planning) {
  const Points scratch = allocate(n);
  return fftw_plan_dft_1d(static_cast<int>(n), raw(scratch.get()), raw(scratch.get()),
                          FFTW_FORWARD, flag_of(planning));
}

}  // namespace

Lines::Lines(const std::int64_t n, const Planning planning, const double sleep_s,
             Progress& progress)
    : sleep_s_(sleep_s), plan_(plan_line(n, planning)), progress_(progress) {}

Lines::~Lines() { fftw_destroy_plan(plan_); }

void Lines::transform(Complex* const first) const {
  if (sleep()) {
    tiled::sleep_precisely(sleep_s_);
  } else {
    fftw_execute_dft(plan_, raw(first), raw(first));
  }
  progress_.add(1);
}

namespace {

// The flags of a plan for every line, whatever its alignment.
unsigned any_flag_of(const Planning planning) { return flag_of(planning) | FFTW_UNALIGNED; }

fftw_plan plan_piece(const std::int64_t length, const Planning planning) {
  const Points scratch = allocate(length);
  return fftw_plan_dft_1d(static_cast<int>(length), raw(scratch.get()), raw(scratch.get()),
                          FFTW_FORWARD, any_flag_of(planning));
}

// A plan for the points with equal numbers in each piece.
fftw_plan plan_join(const int count, const std::int64_t length, const Planning planning) {
  const Points scratch = allocate(count * length);
  const auto stride = static_cast<int>(length);
  return fftw_plan_many_dft(1, &count, stride, raw(scratch.get()), nullptr, stride, 1,
                            raw(scratch.get()), nullptr, stride, 1, FFTW_FORWARD,
                            any_flag_of(planning));
}

}  // namespace

Pieces::Pieces(const std::int64_t n, const int pieces, const Planning planning,
               const double sleep_s, Progress& progress)
    : count_(pieces),
      length_(n / pieces),
      sleep_s_(sleep_s),
      joined_(joined_share(n, pieces)),
      of_piece_(plan_piece(length_, planning)),
      of_join_(plan_join(count_, length_, planning)),
      progress_(progress) {
  for (std::int64_t piece = 0; piece < count_; ++piece) {
    for (std::int64_t k = 0; k < length_; ++k) {
      const double turn = static_cast<double>(piece * k) / static_cast<double>(n);
      turns_.push_back(std::polar(1.0, -2 * std::numbers::pi * turn));
    }
  }
}

Pieces::~Pieces() {
  fftw_destroy_plan(of_piece_);
  fftw_destroy_plan(of_join_);
}

void Pieces::transform(Complex* const piece) const {
  if (sleep_s_ > 0) {
    tiled::sleep_precisely(sleep_s_ * (1 - joined_) / count_);
  } else {
    fftw_execute_dft(of_piece_, raw(piece), raw(piece));
  }
}

// Point k + length j of the spectrum is the sum over the pieces p of exp(-2 pi i p k / n) times
// point k of piece p, times exp(-2 pi i p j / count).
void Pieces::join(Complex* const line) const {
  if (sleep_s_ > 0) {
    tiled::sleep_precisely(sleep_s_ * joined_);
  } else {
    for (std::size_t i = 0; i < turns_.size(); ++i) line[i] *= turns_[i];
    fftw_execute_dft(of_join_, raw(line), raw(line));
  }
  progress_.add(1);
}

double measure_line(const std::int64_t n, const Planning planning) {
  Progress silent(0, "lines", 0);
  const Lines lines(n, planning, 0, silent);
  const Points line = allocate(n);
  const double seconds = tiled::least_time(
      [&] { std::fill_n(line.get(), n, Complex(1, 1)); }, [&] { lines.transform(line.get()); });
  return std::max(seconds, 1e-9);
}

}  // namespace fft
