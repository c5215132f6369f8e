// SPDX-License-Identifier: BSD-3-Clause
// The tasks of apps/smith_waterman/tasks.cpp: an outer tile waits for three futures of other tiles,
// creates a task for each of its inner tiles, waits for them and sets its own futures. The tiling,
// the owners of tiles and their edges are the application's own code. The library carries values
// between ranks: a rank asks for all values at the beginning, so only the values are messages here.
#include <vector>

#include "simulate/programs/programs.hpp"
#include "smith_waterman/tiles/tiling.hpp"

namespace imbrex::simulate {

namespace {

using smith_waterman::Distribution;
using smith_waterman::Edge;
using smith_waterman::edges;
using smith_waterman::Extent;
using smith_waterman::Part;
using smith_waterman::parts;
using smith_waterman::Tiling;

enum Kind : std::uint16_t { outer_kind, inner_kind, send_kind, receive_kind };

class Wavefront final : public Program {
 public:
  Wavefront(const WavefrontSetup& setup, const DurationOf& duration_of)
      : tiling_{.whole = {setup.rows, setup.columns},
                .outer = {setup.outer_rows, setup.outer_columns},
                .inner = {setup.inner_rows, setup.inner_columns},
                .ranks = setup.ranks,
                .distribution = setup.cyclic ? Distribution::cyclic : Distribution::block},
        cell_ns_(static_cast<double>(duration_of("tile")) /
                 static_cast<double>(setup.inner_rows * setup.inner_columns)),
        diagonals_(static_cast<std::size_t>(setup.ranks), 0) {
    const auto tiles = [](const std::int64_t cells, const std::int64_t outer) {
      return static_cast<double>((cells + outer - 1) / outer);
    };
    check_messages(static_cast<double>(parts) * tiles(setup.rows, setup.outer_rows) *
                   tiles(setup.columns, setup.outer_columns));
  }
  const std::vector<Kernel>& kernels() const override { return kernels_; }
  bool next(const int rank, Batch& batch) override {
    int& diagonal = diagonals_[static_cast<std::size_t>(rank)];
    for (int i = tiling_.first_of(diagonal); i <= tiling_.last_of(diagonal); ++i) {
      if (tiling_.home(i, diagonal - i) == rank) add_outer(rank, i, diagonal - i, batch);
    }
    return ++diagonal < tiling_.diagonals();
  }
  void expand(int, const TaskPlan& plan, Batch& batch) override {
    const auto number = static_cast<int>(plan.creates - 1);
    const Extent extent = tiling_.extent(number / tiling_.across(), number % tiling_.across());
    const int down = Tiling::pieces(extent.rows, tiling_.inner.rows);
    const int across = Tiling::pieces(extent.columns, tiling_.inner.columns);
    for (int i = 0; i < down; ++i) {
      const auto rows = static_cast<double>(Tiling::part(extent.rows, tiling_.inner.rows, i));
      for (int j = 0; j < across; ++j) {
        const auto columns =
            static_cast<double>(Tiling::part(extent.columns, tiling_.inner.columns, j));
        Builder(batch, {.kernel = inner_kind, .duration = time_of(rows * columns * cell_ns_)})
            .inout(2 * static_cast<std::uint64_t>(j) + 1)
            .inout(2 * static_cast<std::uint64_t>(i) + 2);
      }
    }
  }

 private:
  // What a tile leaves, and the copy of what another rank's tile leaves.
  [[nodiscard]] std::uint64_t datum(const int i, const int j, const int part) const noexcept {
    return static_cast<std::uint64_t>(number(i, j)) * (parts + 1) + 1 +
           static_cast<std::uint64_t>(part);
  }
  [[nodiscard]] int number(const int i, const int j) const noexcept {
    return i * tiling_.across() + j;
  }
  [[nodiscard]] TaskPlan message(const Role role, const int peer, const int i, const int j,
                                 const Part part) const {
    return {.kernel = role == Role::send ? send_kind : receive_kind,
            .role = role,
            .by_library = true,
            .peer = peer,
            .tag = number(i, j) * parts + part,
            .bytes = tiling_.cells(i, j, part) * 4};
  }
  // `read` gets what the tile (i, j) of `rank` reads of the tile (row, column).
  void add_receive(const int rank, const int row, const int column, const Part part, Batch& batch,
                   std::vector<std::uint64_t>& read) const {
    if (row < 0 || column < 0) return;
    const int home = tiling_.home(row, column);
    if (home == rank) {
      read.push_back(datum(row, column, parts));
      return;
    }
    Builder(batch, message(Role::receive, home, row, column, part)).out(datum(row, column, part));
    read.push_back(datum(row, column, part));
  }
  void add_send(const int rank, const int i, const int j, const Edge& edge, Batch& batch) const {
    if (i + edge.down >= tiling_.down() || j + edge.right >= tiling_.across()) return;
    const int to = tiling_.home(i + edge.down, j + edge.right);
    if (to == rank) return;
    Builder(batch, message(Role::send, to, i, j, edge.part)).in(datum(i, j, parts));
  }
  void add_outer(const int rank, const int i, const int j, Batch& batch) const {
    std::vector<std::uint64_t> read;
    for (const auto& [part, down, right] : edges) {
      add_receive(rank, i - down, j - right, part, batch, read);
    }
    Builder task(batch, {.kernel = outer_kind,
                         .creates = static_cast<std::uint32_t>(number(i, j)) + 1});
    for (const std::uint64_t other : read) task.in(other);
    task.out(datum(i, j, parts));
    for (const Edge& edge : edges) add_send(rank, i, j, edge, batch);
  }

  const Tiling tiling_;
  const double cell_ns_;
  std::vector<Kernel> kernels_{{"outer tile", 0}, {"tile", 0}, {"send", 0}, {"receive", 0}};
  std::vector<int> diagonals_;  // of each rank: the next
};

}  // namespace

std::unique_ptr<Program> make_wavefront(const WavefrontSetup& setup,
                                        const DurationOf& duration_of) {
  return std::make_unique<Wavefront>(setup, duration_of);
}

}  // namespace imbrex::simulate
