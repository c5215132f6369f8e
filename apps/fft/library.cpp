// SPDX-License-Identifier: BSD-3-Clause
// The variant of FFTW's own library for MPI.
#include <fftw3-mpi.h>

#include <new>

#include "variants.hpp"

namespace fft {

bool Library::is_there() noexcept { return true; }

Library::Library(const int dims, const std::int64_t n, const Planning planning) {
  fftw_mpi_init();
  ptrdiff_t rows = 0, first = 0, rows_after = 0, first_after = 0;
  const ptrdiff_t needed =
      dims == 2 ? fftw_mpi_local_size_2d_transposed(n, n, MPI_COMM_WORLD, &rows, &first,
                                                    &rows_after, &first_after)
                : fftw_mpi_local_size_3d_transposed(n, n, n, MPI_COMM_WORLD, &rows, &first,
                                                    &rows_after, &first_after);
  points_ = allocate(needed);
  const unsigned flags = flag_of(planning) | FFTW_MPI_TRANSPOSED_OUT;
  fftw_complex* const points = raw(points_.get());
  plan_ = dims == 2 ? fftw_mpi_plan_dft_2d(n, n, points, points, MPI_COMM_WORLD, FFTW_FORWARD,
                                           flags)
                    : fftw_mpi_plan_dft_3d(n, n, n, points, points, MPI_COMM_WORLD, FFTW_FORWARD,
                                           flags);
  if (plan_ == nullptr) throw std::bad_alloc();
  const Range before{first, first + rows};
  const Range after{first_after, first_after + rows_after};
  const Range all{0, n};
  if (dims == 2) {
    input_ = {{all, before, Range{0, 1}}, {2, 1, 0}};
    output_ = {{after, all, Range{0, 1}}, {2, 0, 1}};
  } else {
    input_ = {{all, all, before}, {2, 1, 0}};
    output_ = {{all, after, all}, {1, 2, 0}};
  }
}

Library::~Library() { fftw_destroy_plan(plan_); }

void Library::run() { fftw_execute(plan_); }

}  // namespace fft
