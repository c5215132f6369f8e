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

namespace tiled {
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

// Does the work of getrf() on a part of a tile. It works by halves, so that gemm does most of the
// work.
int factor_part(double* a, int order, int stride) noexcept {
  constexpr int leaf = 32;
  const auto at = [a, stride](int i, int j) -> double& {
    return a[static_cast<std::ptrdiff_t>(j) * stride + i];
  };
  if (order <= leaf) {
    for (int k = 0; k < order; ++k) {
      if (at(k, k) == 0 || !std::isfinite(at(k, k))) return k + 1;
      for (int i = k + 1; i < order; ++i) at(i, k) /= at(k, k);
      for (int j = k + 1; j < order; ++j) {
        for (int i = k + 1; i < order; ++i) at(i, j) -= at(i, k) * at(k, j);
      }
    }
    return 0;
  }
  const int half = order / 2;
  const int rest = order - half;
  if (const int info = factor_part(a, half, stride); info != 0) return info;
  cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit, half, rest, 1.0, a,
              stride, &at(0, half), stride);
  cblas_dtrsm(CblasColMajor, CblasRight, CblasUpper, CblasNoTrans, CblasNonUnit, rest, half, 1.0, a,
              stride, &at(half, 0), stride);
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, rest, rest, half, -1.0, &at(half, 0),
              stride, &at(0, half), stride, 1.0, &at(half, half), stride);
  const int info = factor_part(&at(half, half), rest, stride);
  return info == 0 ? 0 : half + info;
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
  // OpenBLAS falls back to Prescott for a processor that is younger than the library.
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

int getrf(Tile a) noexcept { return factor_part(a.data, a.rows, a.rows); }

void solve_lower_unit(ConstTile diagonal, Tile a) noexcept {
  cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit, a.rows, a.columns, 1.0,
              diagonal.data, diagonal.rows, a.data, a.rows);
}

void solve_upper(ConstTile diagonal, Tile a) noexcept {
  cblas_dtrsm(CblasColMajor, CblasRight, CblasUpper, CblasNoTrans, CblasNonUnit, a.rows, a.columns,
              1.0, diagonal.data, diagonal.rows, a.data, a.rows);
}

void subtract_product(ConstTile a, ConstTile b, Tile c) noexcept {
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, c.rows, c.columns, a.columns, -1.0, a.data,
              a.rows, b.data, b.rows, 1.0, c.data, c.rows);
}

void add_product(ConstTile a, ConstTile b, Tile c) noexcept {
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, c.rows, c.columns, a.columns, 1.0, a.data,
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

}  // namespace tiled
