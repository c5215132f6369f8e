// SPDX-License-Identifier: BSD-3-Clause
// Transforms of single lines, by FFTW, or asleep for as long as they take. Knows nothing of MPI.
#pragma once

#include <fftw3.h>

#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "../harness/progress.hpp"
#include "stages.hpp"

namespace fft {

using apps::Progress;

// Memory as FFTW's vector instructions want it; of zeros.
struct Free {
  void operator()(Complex* points) const noexcept { fftw_free(points); }
};
using Points = std::unique_ptr<Complex[], Free>;
[[nodiscard]] Points allocate(std::int64_t count);  // throws std::bad_alloc

enum class Planning { estimate, measure };  // how FFTW chooses its algorithm

// Thread safety: made by main; transform() may be called by any number of tasks at once.
class Lines {
 public:
  // Lines of n points each. If `sleep_s` is not 0, transform() sleeps so many seconds for each line
  // instead, and does not change it.
  Lines(std::int64_t n, Planning planning, double sleep_s, Progress& progress);
  ~Lines();
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // Transforms in place, forward, without a factor. `first` is aligned like memory of allocate().
  void transform(Complex* first) const;
  [[nodiscard]] bool sleep() const noexcept { return sleep_s_ > 0; }

 private:
  const double sleep_s_;
  fftw_plan plan_;
  Progress& progress_;
};

// Transforms of lines that arrive in pieces (Cooley and Tukey): piece p of P has the points p, p +
// P and so on of a line, is transformed by itself, and all are joined then. The members are like
// those of Lines. A line that sleeps divides its time: joining takes P's share of the logarithm of
// n, and a pass.
class Pieces {
 public:
  Pieces(std::int64_t n, int pieces, Planning planning, double sleep_s, Progress& progress);
  ~Pieces();
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  [[nodiscard]] int count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t length() const noexcept { return length_; }  // of a piece
  void transform(Complex* piece) const;  // in place
  // `line` has the transformed pieces, one behind the other, and the spectrum afterwards.
  void join(Complex* line) const;

 private:
  const int count_;
  const std::int64_t length_;
  const double sleep_s_;  // of a line
  const double joined_;   // the share of it that joins
  std::vector<Complex> turns_;
  fftw_plan of_piece_;
  fftw_plan of_join_;
  Progress& progress_;
};

// Seconds that a line of n points takes, by the calling thread alone; never 0.
[[nodiscard]] double measure_line(std::int64_t n, Planning planning);

[[nodiscard]] constexpr unsigned flag_of(Planning planning) noexcept {
  return planning == Planning::measure ? FFTW_MEASURE : FFTW_ESTIMATE;
}
[[nodiscard]] inline fftw_complex* raw(Complex* points) noexcept {
  return reinterpret_cast<fftw_complex*>(points);  // FFTW and the standard promise that it is one
}

}  // namespace fft
