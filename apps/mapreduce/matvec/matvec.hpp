// SPDX-License-Identifier: BSD-3-Clause
// y = A x as a program of map and reduce, after Castillo et al. (ICS 2019), section 4.3. Each rank
// has neighbouring columns of A. The map of some of them makes for each row the list of its
// products a_ij x_j; a row's key is its number, whose hash is the remainder by the ranks; the
// reduction adds a list up. A tuple: row and length of the list (4 bytes each), the products (8
// bytes each).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "../shuffle/program.hpp"

namespace mapreduce {

// Returns entry (i, j) of A, in [-1, 1); x_j is entry (j, n).
[[nodiscard]] double entry(std::int64_t i, std::int64_t j) noexcept;

class MatVec : public Program {
 public:
  // Fills this rank's columns, which it cuts into so many chunks.
  MatVec(std::int64_t n, MPI_Comm comm, int chunks);

  void begin() override;
  void map(Chunks chunks, Output& output) override;
  void reduce(std::span<const std::byte> tuples) override;
  [[nodiscard]] std::size_t piece_bytes_max() const override;
  void end() override;

  // Rows rank, rank + ranks, ...; after end().
  [[nodiscard]] const std::vector<double>& y() const noexcept { return y_; }
  // The largest |y_i - z_i| / (n eps (|A| |x|)_i), where z is dgemv's and eps 2^-52: at most 1, in
  // whichever order what is added. Infinite if y has a NaN. All ranks get one value. Collective.
  [[nodiscard]] double error() const;

 private:
  [[nodiscard]] std::int64_t first_column_of(int chunk) const noexcept;

  const std::int64_t n_;
  const MPI_Comm comm_;
  const int chunks_;
  int rank_ = 0;
  int ranks_ = 1;
  std::int64_t first_ = 0;    // of this rank's columns
  std::int64_t columns_ = 0;  // how many they are
  std::vector<double> a_;     // row by row
  std::vector<double> x_;
  Results<std::vector<double>> reduced_;
  std::vector<double> y_;
};

}  // namespace mapreduce
