// SPDX-License-Identifier: BSD-3-Clause
// The BLAS and LAPACK calls on tiles, and the rate at which this machine does them. One thread
// each. Knows nothing of tasks and MPI.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tiled {

// Columns are contiguous; the stride is the number of rows.
struct Tile {
  double* data;
  int rows;
  int columns;
};
struct ConstTile {
  const double* data;
  int rows;
  int columns;
};

// Tells the BLAS library to use the calling thread alone.
void use_one_blas_thread() noexcept;

// Name and version of the BLAS library and of the kernels it chose, as far as it tells.
[[nodiscard]] std::string describe_blas();
// Advice about kernels that are older than the processor; empty if none are.
[[nodiscard]] std::string advise_on_blas();

// A = L L^T in place, lower triangle. Returns 0, or the order of the leading minor that is not
// positive; a NaN on the diagonal counts as one.
[[nodiscard]] int potrf(Tile a) noexcept;
void trsm(ConstTile diagonal, Tile a) noexcept;            // A := A L^-T
void syrk(ConstTile a, Tile c) noexcept;                   // lower triangle of C := C - A A^T
void gemm(ConstTile a, ConstTile b, Tile c) noexcept;      // C := C - A B^T

// A = L U in place, L with a unit diagonal; no pivoting. Returns 0, or the order of the leading
// minor that is zero; a NaN on the diagonal counts as one.
[[nodiscard]] int getrf(Tile a) noexcept;
void solve_lower_unit(ConstTile diagonal, Tile a) noexcept;        // A := L^-1 A
void solve_upper(ConstTile diagonal, Tile a) noexcept;             // A := A U^-1
void subtract_product(ConstTile a, ConstTile b, Tile c) noexcept;  // C := C - A B
void add_product(ConstTile a, ConstTile b, Tile c) noexcept;       // C := C + A B

// Multiplications by few vectors, whose columns are `stride` apart.
struct Vectors {
  double* data;
  int count;
  std::ptrdiff_t stride;
};
void add_product(double factor, ConstTile a, Vectors x, Vectors y) noexcept;  // y += factor A x
void add_transposed(double factor, ConstTile a, Vectors x, Vectors y) noexcept;  // ... A^T x
void solve_lower(ConstTile diagonal, Vectors x) noexcept;                     // x := L^-1 x

// Multiplies square matrices until a moment has come: what a processor can do at best.
// Thread safety: one thread for each meter.
class GemmMeter {
 public:
  explicit GemmMeter(int size);
  // Gflop/s from now to the first return of a multiplication after `deadline` (MPI_Wtime's or any
  // other `clock`, seconds); 0 if that has passed already.
  [[nodiscard]] double measure(double deadline, double (*clock)());

 private:
  int size_;
  std::vector<double> a_, b_, c_;
};

}  // namespace tiled
