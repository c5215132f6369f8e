// SPDX-License-Identifier: BSD-3-Clause
// The Cholesky factorisation of apps/tiled on StarPU-MPI: the same matrix, tiles, distribution,
// kernels (computed, or slept) and order of insertion; every rank inserts all tasks. Prints one
// JSON object for each run. Nothing of imbrex is in this program.
// Usage: mpirun -n RANKS starpu_cholesky N TILE ROWSxCOLUMNS RUNS PANEL_PRIORITY [A,B,C,D]
// A to D are microseconds for which potrf, trsm, syrk and gemm sleep on a whole tile; without them
// they compute.
#include <fmt/format.h>
#include <mpi.h>
#include <starpu_mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tiled/kernels.hpp"
#include "tiled/matrix.hpp"
#include "tiled/sleep.hpp"
#include "tiled/source.hpp"

namespace {

using tiled::ConstTile;
using tiled::Layout;
using tiled::Tile;
using tiled::TiledMatrix;

constexpr int probes = 16;  // as apps/tiled
enum Kernel : int { potrf, trsm, syrk, gemm };

// Data of the run that the codelets see.
double sleep_s[4];  // on a whole tile
bool sleeps = false;
double whole = 0;  // the work of a whole tile
int potrf_failed = 0;

bool slept(Kernel kernel, double m, double n, double k) {
  if (sleeps) tiled::sleep_precisely(sleep_s[kernel] * (m * n * k / whole));
  return sleeps;
}

Tile tile_in(void* buffer) {
  return {reinterpret_cast<double*>(STARPU_MATRIX_GET_PTR(buffer)),
          static_cast<int>(STARPU_MATRIX_GET_NX(buffer)),
          static_cast<int>(STARPU_MATRIX_GET_NY(buffer))};
}
ConstTile const_tile_in(void* buffer) {
  const Tile tile = tile_in(buffer);
  return {tile.data, tile.rows, tile.columns};
}

void run_potrf(void* buffers[], void*) {
  const Tile a = tile_in(buffers[0]);
  if (!slept(potrf, a.rows, a.rows, a.rows) && tiled::potrf(a) != 0) potrf_failed = 1;
}
void run_trsm(void* buffers[], void*) {
  const Tile a = tile_in(buffers[1]);
  if (!slept(trsm, a.rows, a.columns, a.columns)) tiled::trsm(const_tile_in(buffers[0]), a);
}
void run_syrk(void* buffers[], void*) {
  const ConstTile a = const_tile_in(buffers[0]);
  const Tile c = tile_in(buffers[1]);
  if (!slept(syrk, c.rows, c.rows, a.columns)) tiled::syrk(a, c);
}
void run_gemm(void* buffers[], void*) {
  const ConstTile a = const_tile_in(buffers[0]);
  const Tile c = tile_in(buffers[2]);
  if (!slept(gemm, c.rows, c.columns, a.columns)) tiled::gemm(a, const_tile_in(buffers[1]), c);
}

starpu_codelet codelet(const char* name, starpu_cpu_func_t function,
                       std::initializer_list<starpu_data_access_mode> modes) {
  starpu_codelet made{};
  made.cpu_funcs[0] = function;
  made.nbuffers = static_cast<int>(modes.size());
  std::copy(modes.begin(), modes.end(), made.modes);
  made.name = name;
  return made;
}

void require_success(int code, const char* call) {
  if (code == 0) return;
  std::fprintf(stderr, "starpu_cholesky: %s returned %d\n", call, code);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void fill(TiledMatrix& matrix, const tiled::RandomSource& source) {
  const Layout& layout = matrix.layout();
  for (int i = 0; i < layout.tiles(); ++i) {
    for (int j = 0; j <= i; ++j) {
      if (!matrix.is_mine(i, j)) continue;
      source.fill({layout.first(i), layout.first(j), layout.extent(i), layout.extent(j)},
                  matrix.handle(i, j));
      const std::ptrdiff_t rows = layout.extent(i);
      for (std::ptrdiff_t c = 1; i == j && c < rows; ++c) {
        std::fill_n(matrix.handle(i, j) + c * rows, c, 0.0);
      }
    }
  }
}

void insert_all(const Layout& layout, const std::vector<starpu_data_handle_t>& handles,
                int panel_priority) {
  static starpu_codelet of_potrf = codelet("potrf", run_potrf, {STARPU_RW});
  static starpu_codelet of_trsm = codelet("trsm", run_trsm, {STARPU_R, STARPU_RW});
  static starpu_codelet of_syrk = codelet("syrk", run_syrk, {STARPU_R, STARPU_RW});
  static starpu_codelet of_gemm = codelet("gemm", run_gemm, {STARPU_R, STARPU_R, STARPU_RW});
  const int tiles = layout.tiles();
  const auto at = [&](int i, int j) {
    return handles[static_cast<std::size_t>(layout.position(i, j))];
  };
  for (int k = 0; k < tiles; ++k) {
    require_success(starpu_mpi_task_insert(MPI_COMM_WORLD, &of_potrf, STARPU_RW, at(k, k),
                                           STARPU_PRIORITY, panel_priority, 0), "insert potrf");
    for (int i = k + 1; i < tiles; ++i) {
      require_success(starpu_mpi_task_insert(MPI_COMM_WORLD, &of_trsm, STARPU_R, at(k, k),
                                             STARPU_RW, at(i, k), STARPU_PRIORITY, panel_priority,
                                             0), "insert trsm");
    }
    for (int j = k + 1; j < tiles; ++j) {
      require_success(starpu_mpi_task_insert(MPI_COMM_WORLD, &of_syrk, STARPU_R, at(j, k),
                                             STARPU_RW, at(j, j), 0), "insert syrk");
      for (int i = j + 1; i < tiles; ++i) {
        require_success(starpu_mpi_task_insert(MPI_COMM_WORLD, &of_gemm, STARPU_R, at(i, k),
                                               STARPU_R, at(j, k), STARPU_RW, at(i, j), 0),
                        "insert gemm");
      }
    }
    // The tiles of this column are final and others have read them, so their copies may go.
    for (int i = k; i < tiles; ++i) starpu_mpi_cache_flush(MPI_COMM_WORLD, at(i, k));
  }
}

// Seconds of this rank.
double factor(TiledMatrix& matrix, int panel_priority) {
  const Layout& layout = matrix.layout();
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<starpu_data_handle_t> handles(
      static_cast<std::size_t>(layout.position(layout.tiles(), 0)));
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < layout.tiles(); ++i) {
    for (int j = 0; j <= i; ++j) {
      starpu_data_handle_t& handle = handles[static_cast<std::size_t>(layout.position(i, j))];
      const auto rows = static_cast<std::uint32_t>(layout.extent(i));
      const bool mine = matrix.is_mine(i, j);
      starpu_matrix_data_register(&handle, mine ? STARPU_MAIN_RAM : -1,
                                  reinterpret_cast<std::uintptr_t>(mine ? matrix.handle(i, j)
                                                                        : nullptr),
                                  rows, rows, static_cast<std::uint32_t>(layout.extent(j)),
                                  sizeof(double));
      starpu_mpi_data_register(handle, layout.position(i, j), layout.owner(i, j));
    }
  }
  insert_all(layout, handles, panel_priority);
  require_success(starpu_task_wait_for_all(), "starpu_task_wait_for_all");
  require_success(starpu_mpi_wait_for_all(MPI_COMM_WORLD), "starpu_mpi_wait_for_all");
  const double seconds = MPI_Wtime() - start;
  MPI_Barrier(MPI_COMM_WORLD);
  for (const starpu_data_handle_t handle : handles) starpu_data_unregister(handle);
  return seconds;
}

// The residual of apps/tiled: Frobenius norms, the numerator from vectors of random signs.
double residual(const TiledMatrix& matrix, const tiled::RandomSource& source) {
  const Layout& layout = matrix.layout();
  const auto n = static_cast<std::size_t>(layout.n);
  const tiled::RandomSource random(0, 20210901, 0);
  std::vector<double> x(n * probes), z(n * probes, 0.0), y(n * probes, 0.0);
  for (int probe = 0; probe < probes; ++probe) {
    for (std::size_t i = 0; i < n; ++i) {
      const bool negative = random.entry(static_cast<std::int64_t>(i), -probe - 1) < 0;
      x[static_cast<std::size_t>(probe) * n + i] = negative ? -1.0 : 1.0;
    }
  }
  const auto rows_of = [&](std::vector<double>& all, int i) {
    return tiled::Vectors{all.data() + layout.first(i), probes, layout.n};
  };
  const auto each = [&](auto&& use) {
    for (int i = 0; i < layout.tiles(); ++i) {
      for (int j = 0; j <= i; ++j) {
        if (matrix.is_mine(i, j)) use(i, j, ConstTile{matrix.tile(i, j), layout.extent(i),
                                                      layout.extent(j)});
      }
    }
  };
  each([&](int i, int j, ConstTile l) {
    tiled::add_transposed(1.0, l, rows_of(x, i), rows_of(z, j));
  });
  const int count = static_cast<int>(n) * probes;
  MPI_Allreduce(MPI_IN_PLACE, z.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  double squares[2] = {0, 0};  // of A, and of the difference
  std::vector<double> entries;
  each([&](int i, int j, ConstTile l) {
    entries.resize(static_cast<std::size_t>(l.rows) * static_cast<std::size_t>(l.columns));
    source.fill({layout.first(i), layout.first(j), l.rows, l.columns}, entries.data());
    const ConstTile a{entries.data(), l.rows, l.columns};
    tiled::add_product(1.0, a, rows_of(x, j), rows_of(y, i));
    if (i != j) tiled::add_transposed(1.0, a, rows_of(x, i), rows_of(y, j));
    for (const double entry : entries) squares[0] += (i == j ? 1 : 2) * entry * entry;
    tiled::add_product(-1.0, l, rows_of(z, j), rows_of(y, i));
  });
  MPI_Allreduce(MPI_IN_PLACE, y.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, squares, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (const double entry : y) squares[1] += entry * entry / probes;
  return std::sqrt(squares[1] / squares[0]) / (static_cast<double>(n) * 0x1p-53);
}

struct Arguments {
  Layout layout{};
  int runs = 0;
  int panel_priority = 0;
};

bool read(int argc, char** argv, Arguments& arguments) {
  if (argc != 6 && argc != 7) return false;
  Layout& layout = arguments.layout;
  layout.n = std::atoll(argv[1]);
  layout.tile = std::atoi(argv[2]);
  arguments.runs = std::atoi(argv[4]);
  arguments.panel_priority = std::atoi(argv[5]);
  char rest = 0;
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int found = std::sscanf(argv[3], "%dx%d%c", &layout.grid.rows, &layout.grid.columns, &rest);
  if (found != 2 || layout.n < 1 || layout.tile < 1 || arguments.runs < 1 ||
      layout.grid.rows < 1 || layout.grid.rows * layout.grid.columns != ranks) {
    return false;
  }
  whole = std::pow(layout.tile, 3);
  if (argc == 6) return true;
  sleeps = true;
  double us[4];
  if (std::sscanf(argv[6], "%lf,%lf,%lf,%lf%c", &us[0], &us[1], &us[2], &us[3], &rest) != 4) {
    return false;
  }
  std::transform(us, us + 4, sleep_s, [](double time) { return 1e-6 * time; });
  return true;
}

void run(const Arguments& arguments, int rank) {
  const Layout& layout = arguments.layout;
  TiledMatrix matrix(layout, rank);
  const tiled::RandomSource source(layout.n, 1, 0);
  for (int i = 0; i < arguments.runs; ++i) {
    fill(matrix, source);
    const double mine = factor(matrix, arguments.panel_priority);
    double seconds = 0;
    MPI_Allreduce(&mine, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &potrf_failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    const double wrong = sleeps ? 0 : residual(matrix, source);
    const auto n = static_cast<double>(layout.n);
    if (rank != 0) continue;
    fmt::print("{{\"system\": \"StarPU\", \"n\": {}, \"tile\": {}, \"seconds\": {}, "
               "\"gflops\": {}, \"residual\": {}, \"failed\": {}}}\n", layout.n, layout.tile,
               seconds, 1e-9 * (n * n * n / 3 + n * n / 2 + n / 6) / seconds, wrong, potrf_failed);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  tiled::use_one_blas_thread();
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Arguments arguments;
  const bool well = read(argc, argv, arguments);
  if (well) {
    require_success(starpu_mpi_init_conf(&argc, &argv, 0, MPI_COMM_WORLD, nullptr),
                    "starpu_mpi_init_conf");
    run(arguments, rank);
    starpu_mpi_shutdown();
  } else if (rank == 0) {
    std::fputs("usage: mpirun -n RANKS starpu_cholesky N TILE ROWSxCOLUMNS RUNS PANEL_PRIORITY "
               "[POTRF_US,TRSM_US,SYRK_US,GEMM_US]\n", stderr);
  }
  MPI_Finalize();
  return well ? 0 : 1;
}
