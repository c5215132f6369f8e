// SPDX-License-Identifier: BSD-3-Clause
#include "matvec.hpp"

#include <cblas.h>

#include <algorithm>
#include <cmath>

#include "../words/hash.hpp"

namespace mapreduce {

double entry(const std::int64_t i, const std::int64_t j) noexcept {
  const std::uint64_t bits =
      mixed(mixed(static_cast<std::uint64_t>(i)) + static_cast<std::uint64_t>(j));
  return static_cast<double>(bits >> 11) * 0x1p-52 - 1;
}

MatVec::MatVec(const std::int64_t n, MPI_Comm comm, const int chunks)
    : n_(n), comm_(comm), chunks_(chunks) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &ranks_);
  first_ = n * rank_ / ranks_;
  columns_ = n * (rank_ + 1) / ranks_ - first_;
  a_.reserve(static_cast<std::size_t>(n * columns_));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < columns_; ++j) a_.push_back(entry(i, first_ + j));
  }
  for (std::int64_t j = 0; j < columns_; ++j) x_.push_back(entry(first_ + j, n));
}

std::int64_t MatVec::first_column_of(const int chunk) const noexcept {
  return columns_ * chunk / chunks_;
}

void MatVec::begin() {
  reduced_.all().clear();
  y_.assign(static_cast<std::size_t>((n_ - rank_ + ranks_ - 1) / ranks_), 0.0);
}

void MatVec::map(const Chunks chunks, Output& output) {
  const std::int64_t first = first_column_of(chunks.first);
  const auto length = static_cast<std::uint32_t>(first_column_of(chunks.end) - first);
  if (length == 0) return;
  const std::size_t tuple = 2 * sizeof(std::uint32_t) + length * sizeof(double);
  for (Bytes& bytes : output) {
    bytes.reserve(bytes.size() + tuple * static_cast<std::size_t>(n_ / ranks_ + 1));
  }
  std::vector<double> products(length);
  for (std::int64_t i = 0; i < n_; ++i) {
    const double* const row = a_.data() + i * columns_ + first;
    for (std::uint32_t j = 0; j < length; ++j) {
      products[j] = row[j] * x_[static_cast<std::size_t>(first) + j];
    }
    const std::uint32_t head[2] = {static_cast<std::uint32_t>(i), length};
    Bytes& bytes = output[static_cast<std::size_t>(i % ranks_)];
    append(bytes, head, 2);
    append(bytes, products.data(), length);
  }
}

void MatVec::reduce(const std::span<const std::byte> tuples) {
  const auto zeros = [this] { return std::make_unique<std::vector<double>>(y_.size(), 0.0); };
  reduced_.with_one(zeros, [&](std::vector<double>& y) {
    const std::byte* at = tuples.data();
    while (at != tuples.data() + tuples.size()) {
      std::uint32_t head[2] = {};
      read(at, head, 2);
      double sum = 0;
      for (std::uint32_t j = 0; j < head[1]; ++j) {
        double product = 0;
        read(at, &product, 1);
        sum += product;
      }
      y[head[0] / static_cast<std::uint32_t>(ranks_)] += sum;
    }
  });
}

std::size_t MatVec::piece_bytes_max() const {
  const std::int64_t columns = (n_ / ranks_ + 1) / chunks_ + 1;
  return static_cast<std::size_t>(n_ / ranks_ + 1) *
         (2 * sizeof(std::uint32_t) + static_cast<std::size_t>(columns) * sizeof(double));
}

void MatVec::end() {
  for (const auto& part : reduced_.all()) {
    for (std::size_t row = 0; row < y_.size(); ++row) y_[row] += (*part)[row];
  }
  reduced_.all().clear();
}

double MatVec::error() const {
  const auto rows = static_cast<std::size_t>(n_);
  std::vector<double> expected(rows, 0.0);
  std::vector<double> bounds(rows, 0.0);
  if (columns_ > 0) {
    const int n = static_cast<int>(n_);
    const int columns = static_cast<int>(columns_);
    cblas_dgemv(CblasRowMajor, CblasNoTrans, n, columns, 1.0, a_.data(), columns, x_.data(), 1, 0.0,
                expected.data(), 1);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < x_.size(); ++j) {
        bounds[i] += std::abs(a_[i * x_.size() + j] * x_[j]);
      }
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, expected.data(), static_cast<int>(n_), MPI_DOUBLE, MPI_SUM, comm_);
  MPI_Allreduce(MPI_IN_PLACE, bounds.data(), static_cast<int>(n_), MPI_DOUBLE, MPI_SUM, comm_);
  double largest = 0;
  for (std::size_t row = 0; row < y_.size(); ++row) {
    const std::size_t i = row * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(rank_);
    const double error =
        std::abs(y_[row] - expected[i]) / (static_cast<double>(n_) * 0x1p-52 * bounds[i]);
    if (!(error <= largest)) largest = std::isnan(error) ? INFINITY : error;
  }
  MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_DOUBLE, MPI_MAX, comm_);
  return largest;
}

}  // namespace mapreduce
