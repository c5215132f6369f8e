// SPDX-License-Identifier: BSD-3-Clause
// ScaLAPACK's pdpotrf on the random matrix of apps/tiled: the same entries, the same DGEMM rate
// before and after each run, the same residual. Prints one JSON object for each run.
// Nothing of imbrex is in this program: MPI is called as ScaLAPACK calls it.
// Usage: mpirun -n RANKS pdpotrf N BLOCK ROWSxCOLUMNS RUNS
#include <cblas.h>
#include <fmt/format.h>
#include <mpi.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "kernels.hpp"
#include "source.hpp"

extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
void Cblacs_gridexit(int context);
int numroc_(const int* n, const int* block, const int* process, const int* source,
            const int* processes);
void descinit_(int* descriptor, const int* m, const int* n, const int* mb, const int* nb,
               const int* row_source, const int* column_source, const int* context,
               const int* leading, int* info);
void pdpotrf_(const char* uplo, const int* n, double* a, const int* ia, const int* ja,
              const int* descriptor, int* info);
}

namespace {

using tiled::GemmMeter;
using tiled::RandomSource;

constexpr int rate_size = 1024;  // as apps/tiled
constexpr double rate_s = 0.25;
constexpr int probes = 16;

// This rank's part of the matrix, as ScaLAPACK wants it: one column-major array.
struct Local {
  int n, block;
  int grid_rows, grid_columns, row, column;
  int rows, columns;
  std::vector<double> entries;

  [[nodiscard]] std::int64_t global_row(int i) const noexcept {
    return (std::int64_t{i / block} * grid_rows + row) * block + i % block;
  }
  [[nodiscard]] std::int64_t global_column(int j) const noexcept {
    return (std::int64_t{j / block} * grid_columns + column) * block + j % block;
  }
  [[nodiscard]] double* at(int j) noexcept {
    return entries.data() + static_cast<std::ptrdiff_t>(j) * rows;
  }
};

void fill(Local& local, const RandomSource& source) {
  for (int j = 0; j < local.columns; ++j) {
    const std::int64_t column = local.global_column(j);
    for (int i = 0; i < local.rows; ++i) {
      local.at(j)[i] = source.entry(local.global_row(i), column);
    }
  }
}

double sum_over_ranks(double mine) {
  double sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

double measure_rate(GemmMeter& meter) {
  MPI_Barrier(MPI_COMM_WORLD);
  return sum_over_ranks(meter.measure(MPI_Wtime() + rate_s, &MPI_Wtime));
}

// The residual of apps/tiled: Frobenius norms, the numerator from `probes` vectors of random signs.
double residual(Local& factor, const RandomSource& source) {
  const RandomSource random(0, 20210901, 0);
  const auto n = static_cast<std::size_t>(factor.n);
  double a_squares = 0;
  double r_squares = 0;
  for (int probe = 0; probe < probes; ++probe) {
    std::vector<double> x(n), z(n, 0.0), y(n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = random.entry(static_cast<std::int64_t>(i), -probe - 1) < 0 ? -1.0 : 1.0;
    }
    const auto each = [&](auto&& use) {
      for (int j = 0; j < factor.columns; ++j) {
        const auto c = static_cast<std::size_t>(factor.global_column(j));
        for (int i = 0; i < factor.rows; ++i) {
          use(static_cast<std::size_t>(factor.global_row(i)), c, factor.at(j)[i]);
        }
      }
    };
    each([&](std::size_t r, std::size_t c, double l) {
      if (r >= c) z[c] += l * x[r];
    });
    MPI_Allreduce(MPI_IN_PLACE, z.data(), factor.n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    double squares = 0;
    each([&](std::size_t r, std::size_t c, double l) {
      const double a = source.entry(static_cast<std::int64_t>(r), static_cast<std::int64_t>(c));
      squares += a * a;
      y[r] += a * x[c];
      if (r >= c) y[r] -= l * z[c];
    });
    MPI_Allreduce(MPI_IN_PLACE, y.data(), factor.n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    a_squares = sum_over_ranks(squares);
    for (const double entry : y) r_squares += entry * entry / probes;
  }
  return std::sqrt(r_squares / a_squares) / (static_cast<double>(n) * 0x1p-53);
}

struct Arguments {
  int n = 0, block = 0, grid_rows = 0, grid_columns = 0, runs = 0;
};

bool read(int argc, char** argv, Arguments& arguments) {
  if (argc != 5) return false;
  arguments.n = std::atoi(argv[1]);
  arguments.block = std::atoi(argv[2]);
  arguments.runs = std::atoi(argv[4]);
  char rest = 0;
  const int found =
      std::sscanf(argv[3], "%dx%d%c", &arguments.grid_rows, &arguments.grid_columns, &rest);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return found == 2 && arguments.n > 0 && arguments.block > 0 && arguments.runs > 0 &&
         arguments.grid_rows > 0 && arguments.grid_rows * arguments.grid_columns == ranks;
}

void run(const Arguments& arguments, int rank) {
  int context = 0;
  Cblacs_get(-1, 0, &context);
  Cblacs_gridinit(&context, "Row", arguments.grid_rows, arguments.grid_columns);
  Local local{};
  local.n = arguments.n;
  local.block = arguments.block;
  Cblacs_gridinfo(context, &local.grid_rows, &local.grid_columns, &local.row, &local.column);
  const int zero = 0;
  const int one = 1;
  local.rows = numroc_(&local.n, &local.block, &local.row, &zero, &local.grid_rows);
  local.columns = numroc_(&local.n, &local.block, &local.column, &zero, &local.grid_columns);
  local.entries.resize(static_cast<std::size_t>(local.rows) * local.columns);
  int descriptor[9];
  int info = 0;
  const int leading = local.rows > 0 ? local.rows : 1;
  descinit_(descriptor, &local.n, &local.n, &local.block, &local.block, &zero, &zero, &context,
            &leading, &info);

  const RandomSource source(local.n, 1, 0);
  GemmMeter meter(rate_size);
  for (int i = 0; i < arguments.runs; ++i) {
    fill(local, source);
    const double before = measure_rate(meter);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    pdpotrf_("L", &local.n, local.entries.data(), &one, &one, descriptor, &info);
    const double mine = MPI_Wtime() - start;
    double seconds = 0;
    MPI_Allreduce(&mine, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const double rate = 0.5 * (before + measure_rate(meter));
    const double wrong = residual(local, source);
    const double n = local.n;
    const double gflops = 1e-9 * (n * n * n / 3 + n * n / 2 + n / 6) / seconds;
    if (rank != 0) continue;
    fmt::print("{{\"system\": \"ScaLAPACK\", \"n\": {}, \"block\": {}, \"seconds\": {}, "
               "\"gflops\": {}, \"dgemm_gflops\": {}, \"share\": {}, \"residual\": {}, "
               "\"info\": {}}}\n", local.n, local.block, seconds, gflops, rate, gflops / rate,
               wrong, info);
    std::fflush(stdout);
  }
  Cblacs_gridexit(context);
}

}  // namespace

int main(int argc, char** argv) {
  tiled::use_one_blas_thread();
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Arguments arguments;
  const bool well = read(argc, argv, arguments);
  if (well) {
    run(arguments, rank);
  } else if (rank == 0) {
    std::fputs("usage: mpirun -n RANKS pdpotrf N BLOCK ROWSxCOLUMNS RUNS\n", stderr);
  }
  MPI_Finalize();
  return well ? 0 : 1;
}
