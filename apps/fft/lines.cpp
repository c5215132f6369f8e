// SPDX-License-Identifier: BSD-3-Clause
#include "lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

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

void Progress::begin(std::string what) {
  what_ = std::move(what);
  done_.store(0, std::memory_order_relaxed);
  said_.store(0, std::memory_order_relaxed);
  start_ = std::chrono::steady_clock::now();
}

void Progress::add(const std::int64_t lines) {
  if (interval_s_ <= 0) return;
  const std::int64_t done = done_.fetch_add(lines, std::memory_order_relaxed) + lines;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
  int said = said_.load(std::memory_order_relaxed);
  const int due = static_cast<int>(passed.count() / interval_s_);
  if (due <= said || !said_.compare_exchange_strong(said, due, std::memory_order_relaxed)) return;
  fmt::print(stderr, "fft: {}: {:.0f} % of the first rank's lines after {:.0f} s\n", what_,
             100.0 * static_cast<double>(done) / static_cast<double>(lines_), passed.count());
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

double measure_line(const std::int64_t n, const Planning planning) {
  Progress silent(0, 0);
  const Lines lines(n, planning, 0, silent);
  const Points line = allocate(n);
  const double seconds = tiled::least_time(
      [&] { std::fill_n(line.get(), n, Complex(1, 1)); }, [&] { lines.transform(line.get()); });
  return std::max(seconds, 1e-9);
}

}  // namespace fft
