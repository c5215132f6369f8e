// SPDX-License-Identifier: BSD-3-Clause
#include "setup.hpp"

#include <fmt/format.h>
#include <imbrex/detail/observation.hpp>
#include <imbrex/mpi.hpp>
#include <unistd.h>

#include <cstdio>
#include <new>

#include "kernels.hpp"

namespace tiled {

int run_program(const char* const name, int argc, char** argv, int (*const run)(int, char**)) {
  const auto start = [](int& count, char**& arguments) {
    use_one_blas_thread();
    imbrex::detail::want_times();  // they are part of what is reported
    MPI_Init(&count, &arguments);
  };
  return apps::run_program(name, argc, argv, start, run);
}

void check_layout(const Team& team, const Layout& layout, const int matrices) {
  if (layout.tile > layout.n) {
    throw InputError(fmt::format("--tile {}: larger than the matrix, which has {} rows",
                                 layout.tile, layout.n));
  }
  if (layout.tile > 32768) {
    throw InputError(fmt::format("--tile {}: at most 32768, so that a tile fits into one message",
                                 layout.tile));
  }
  void* value = nullptr;
  int found = 0;
  MPI_Comm_get_attr(team.all(), MPI_TAG_UB, &value, &found);
  const std::int64_t tags = found != 0 ? *static_cast<int*>(value) : 32767;
  const std::int64_t tiles = (layout.n + layout.tile - 1) / layout.tile;
  if (tiles > 65535 || matrices * layout.position(static_cast<int>(tiles), 0) > tags) {
    throw InputError(fmt::format("{} rows in tiles of {} are {} x {} tiles, more than this MPI has "
                                 "tags for ({}); take larger tiles by --tile", layout.n,
                                 layout.tile, tiles, tiles, tags));
  }
  check_memory(team.all(),
               matrices * static_cast<double>(TiledMatrix::bytes(layout, team.rank())),
               fmt::format("{} rows need", layout.n), "fewer rows");
}

void check_memory(const MPI_Comm all, const double mine, const std::string& what,
                  const std::string& other) {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  double needed = 0;
  MPI_Allreduce(&mine, &needed, 1, MPI_DOUBLE, MPI_SUM, node);
  MPI_Comm_free(&node);
  const double present = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  constexpr double gib = 1024.0 * 1024 * 1024;
  fail_together(all, needed <= 0.9 * present
                         ? ""
                         : fmt::format("{} {:.1f} GiB on one node, which has {:.1f} GiB; take {}, "
                                       "or more nodes", what, needed / gib, present / gib, other));
}

std::unique_ptr<TiledMatrix> allocate(const Team& team, const Layout& layout) {
  std::unique_ptr<TiledMatrix> matrix;
  std::string wrong;
  try {
    matrix = std::make_unique<TiledMatrix>(layout, team.rank());
  } catch (const std::bad_alloc&) {
    wrong = fmt::format("rank {} cannot allocate its {:.1f} MiB of the matrix", team.rank(),
                        static_cast<double>(TiledMatrix::bytes(layout, team.rank())) / (1 << 20));
  }
  fail_together(team.all(), wrong);
  return matrix;
}

}  // namespace tiled
