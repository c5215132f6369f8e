// SPDX-License-Identifier: BSD-3-Clause
// The imbrex variant, after Chatterjee et al., section IV.C: a task for each outer tile, which
// waits for three distributed futures, the row above, the column to the left and the corner, and
// puts its own; in it a task for each inner tile. Ranks exchange nothing else, and no task waits
// for a diagonal.
#include <imbrex/future_space.hpp>
#include <imbrex/imbrex.hpp>

#include <array>
#include <utility>
#include <vector>

#include "variants.hpp"

namespace smith_waterman {

using imbrex::at;  // what tiles hand on is named by where it stands
namespace {

using Cells = std::vector<Score>;

class TaskGraph {
 public:
  TaskGraph(const Problem& problem, MPI_Comm comm)
      : problem_(problem),
        tiling_(problem.tiling),
        edges_(comm, {.home = [this](std::uint64_t guid) { return home(guid); },
                      .size = [this](std::uint64_t guid) { return bytes(guid); },
                      .readers = [](std::uint64_t) { return std::size_t{1}; },
                      .name = "edges of tiles"}) {
    MPI_Comm_rank(comm, &rank_);
  }

  // Suspends.
  Score run() {
    imbrex::finish([this] {
      for (int diagonal = 0; diagonal < tiling_.diagonals(); ++diagonal) {
        for (int i = tiling_.first_of(diagonal); i <= tiling_.last_of(diagonal); ++i) {
          if (tiling_.home(i, diagonal - i) == rank_) create(i, diagonal - i);
        }
      }
    });
    edges_.close();
    return last_;
  }

 private:
  using Around = std::array<imbrex::Future<Cells>, parts>;  // empty where the matrix ends

  [[nodiscard]] std::uint64_t guid(int i, int j, Part part) const {
    return (static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(tiling_.across()) +
            static_cast<std::uint64_t>(j)) * parts + part;
  }
  [[nodiscard]] std::pair<int, int> tile_of(std::uint64_t guid) const {
    const auto across = static_cast<std::uint64_t>(tiling_.across());
    return {static_cast<int>(guid / parts / across), static_cast<int>(guid / parts % across)};
  }
  [[nodiscard]] int home(std::uint64_t guid) const {
    const auto [i, j] = tile_of(guid);
    return tiling_.home(i, j);
  }
  [[nodiscard]] std::size_t bytes(std::uint64_t guid) const {
    const auto [i, j] = tile_of(guid);
    const std::int64_t cells = tiling_.cells(i, j, static_cast<Part>(guid % parts));
    return static_cast<std::size_t>(cells) * sizeof(Score);
  }

  void create(int i, int j) {
    Around around;
    auto task = imbrex::task("outer tile");
    for (const auto& [part, down, right] : edges) {
      if (i < down || j < right) continue;
      around[part] = edges_[guid(i - down, j - right, part)];
      (void)task.in(around[part]);
    }
    task.launch([this, i, j, around = std::move(around)]() mutable { compute(i, j, around); });
  }

  // Suspends.
  void compute(int i, int j, Around& around) {
    OuterTile tile(problem_, i, j);
    if (around[last_row].valid()) tile.row = around[last_row].get();
    if (around[last_column].valid()) tile.column = around[last_column].get();
    if (around[last_cell].valid()) tile.corner = around[last_cell].get().front();
    around = {};  // no other task reads them
    tile.begin();
    compute_inner(tile);
    const bool has_below = i + 1 < tiling_.down();
    const bool has_right = j + 1 < tiling_.across();
    if (!has_below && !has_right) last_ = tile.row.back();
    if (has_below && has_right) edges_.set(guid(i, j, last_cell), Cells{tile.row.back()});
    if (has_right) edges_.set(guid(i, j, last_column), std::move(tile.column));
    if (has_below) edges_.set(guid(i, j, last_row), std::move(tile.row));
  }

  // A tile takes the cells above it and to its left, and leaves its own there: in program order, so
  // what may run at once follows from the accesses.
  static void compute_inner(OuterTile& tile) {
    if (tile.down() * tile.across() == 1) return tile.compute(0, 0);
    imbrex::finish([&tile] {
      for (int i = 0; i < tile.down(); ++i) {
        for (int j = 0; j < tile.across(); ++j) {
          imbrex::task("tile").inout(at(tile.above(j)), at(tile.left_of(i))).launch([&tile, i, j] {
            tile.compute(i, j);
          });
        }
      }
    });
  }

  const Problem& problem_;
  const Tiling& tiling_;
  int rank_ = 0;
  Score last_ = 0;  // written by one task at most, read when all have ended
  imbrex::FutureSpace<Cells> edges_;
};

}  // namespace

Score run_tasks(const Problem& problem, MPI_Comm comm) { return TaskGraph(problem, comm).run(); }

}  // namespace smith_waterman
