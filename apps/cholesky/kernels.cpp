// SPDX-License-Identifier: BSD-3-Clause
#include "kernels.hpp"

#include <cblas.h>
#include <lapacke.h>

#include <cmath>
#include <cstdlib>

// OpenBLAS has these; with another BLAS they stay null. One thread is then the caller's to ask for.
extern "C" {
__attribute__((weak)) void openblas_set_num_threads(int count);
__attribute__((weak)) char* openblas_get_config(void);
__attribute__((weak)) char* openblas_get_corename(void);
}

namespace cholesky {
namespace {

// A lower triangle of `order` rows inside a larger array.
struct Triangle {
  const double* data;
  int order;
  std::ptrdiff_t stride;
};

// A := A L^-T by halves, [X1 X2] = [A1 L11^-T, (A2 - X1 L21^T) L22^-T], so that gemm does most of
// it: OpenBLAS 0.3.21's dtrsm with AVX-512 reaches a third of its dgemm's rate, this twice that,
// and with its other kernels it loses nothing.
void solve_right(Triangle l, Tile a) noexcept {
  constexpr int leaf = 48;
  const int stride = static_cast<int>(l.stride);
  if (l.order <= leaf) {
    cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, a.rows, l.order,
                1.0, l.data, stride, a.data, a.rows);
    return;
  }
  const int first = (l.order / 2 + 7) / 8 * 8;
  const int second = l.order - first;
  double* const a2 = a.data + static_cast<std::ptrdiff_t>(first) * a.rows;
  solve_right({l.data, first, l.stride}, {a.data, a.rows, first});
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, a.rows, second, first, -1.0, a.data, a.rows,
              l.data + first, stride, 1.0, a2, a.rows);
  solve_right({l.data + first * l.stride + first, second, l.stride}, {a2, a.rows, second});
}

}  // namespace

void use_one_blas_thread() noexcept {
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
}

std::string describe_blas() {
  if (openblas_get_config == nullptr) return "BLAS of unknown make";
  const std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 NO_LAPACKE ..."
  std::string text = config.substr(0, config.find(' ', config.find(' ') + 1));
  if (openblas_get_corename != nullptr) text += std::string(", ") + openblas_get_corename();
  return text + " kernels";
}

std::string advise_on_blas() {
  if (openblas_get_corename == nullptr || std::getenv("OPENBLAS_CORETYPE") != nullptr) return "";
  // What OpenBLAS falls back to for a processor that is younger than it.
  if (std::string(openblas_get_corename()) != "Prescott") return "";
  const char* better = nullptr;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) better = "Haswell";
  if (__builtin_cpu_supports("avx512bw")) better = "SkylakeX";
#endif
  if (better == nullptr) return "";
  return std::string("this OpenBLAS does not know the processor and uses its oldest kernels; "
                     "with OPENBLAS_CORETYPE=") + better + " in the environment it is much faster";
}

int potrf(Tile a) noexcept {
  const int info = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', a.rows, a.data, a.rows);
  if (info != 0) return info;
  for (int i = 0; i < a.rows; ++i) {  // OpenBLAS lets NaN pass
    if (!std::isfinite(a.data[static_cast<std::ptrdiff_t>(i) * a.rows + i])) return i + 1;
  }
  return 0;
}

void trsm(ConstTile diagonal, Tile a) noexcept {
  solve_right({diagonal.data, diagonal.columns, diagonal.rows}, a);
}

void syrk(ConstTile a, Tile c) noexcept {
  cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, c.rows, a.columns, -1.0, a.data, a.rows,
              1.0, c.data, c.rows);
}

void gemm(ConstTile a, ConstTile b, Tile c) noexcept {
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, c.rows, c.columns, a.columns, -1.0, a.data,
              a.rows, b.data, b.rows, 1.0, c.data, c.rows);
}

void add_product(double factor, ConstTile a, Vectors x, Vectors y) noexcept {
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, a.rows, x.count, a.columns, factor,
              a.data, a.rows, x.data, static_cast<int>(x.stride), 1.0, y.data,
              static_cast<int>(y.stride));
}

void add_transposed(double factor, ConstTile a, Vectors x, Vectors y) noexcept {
  cblas_dgemm(CblasColMajor, CblasTrans, CblasNoTrans, a.columns, x.count, a.rows, factor, a.data,
              a.rows, x.data, static_cast<int>(x.stride), 1.0, y.data,
              static_cast<int>(y.stride));
}

void solve_lower(ConstTile diagonal, Vectors x) noexcept {
  cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, diagonal.rows,
              x.count, 1.0, diagonal.data, diagonal.rows, x.data, static_cast<int>(x.stride));
}

GemmMeter::GemmMeter(int size) : size_(size) {
  const auto count = static_cast<std::size_t>(size) * size;
  a_.resize(count);
  b_.resize(count);
  c_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {  // values do not matter, but denormals would
    a_[i] = 1e-3 * static_cast<double>(i % 17);
    b_[i] = 1e-3 * static_cast<double>(i % 13);
  }
}

double GemmMeter::measure(double deadline, double (*clock)()) {
  const double start = clock();
  double now = start;
  double count = 0;
  while (now < deadline) {
    gemm({a_.data(), size_, size_}, {b_.data(), size_, size_}, {c_.data(), size_, size_});
    count += 1;
    now = clock();
  }
  if (count == 0) return 0;
  return 2e-9 * size_ * size_ * static_cast<double>(size_) * count / (now - start);
}

}  // namespace cholesky
