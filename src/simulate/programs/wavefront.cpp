// SPDX-License-Identifier: BSD-3-Clause
// The tasks of apps/smith_waterman/tasks.cpp: an outer tile waits for three futures of other tiles,
// creates a task for each of its inner tiles, waits for them and sets its own futures. The tiling
// and the owners of tiles are the application's own code. The library carries values between ranks:
// a rank asks for all values at the beginning, so only the values are messages here.
#include <vector>

#include "simulate/programs/programs.hpp"
#include "smith_waterman/tiles/tiling.hpp"

namespace imbrex::simulate {

namespace {

using detail::AccessKind;
using smith_waterman::Distribution;
using smith_waterman::Extent;
using smith_waterman::Tiling;

enum Kind : std::uint16_t { outer_kind, inner_kind, send_kind, receive_kind };
enum Part : int { last_row, last_column, last_cell, parts };

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
        batch.add({.kernel = inner_kind, .duration = time_of(rows * columns * cell_ns_)});
        batch.access(2 * static_cast<std::uint64_t>(j) + 1, AccessKind::inout);
        batch.access(2 * static_cast<std::uint64_t>(i) + 2, AccessKind::inout);
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
  [[nodiscard]] std::int64_t bytes(const int i, const int j, const Part part) const noexcept {
    const Extent extent = tiling_.extent(i, j);
    const std::int64_t cells = part == last_row      ? extent.columns
                               : part == last_column ? extent.rows
                                                     : 1;
    return cells * 4;
  }
  [[nodiscard]] TaskPlan message(const Role role, const int peer, const int i, const int j,
                                 const Part part) const {
    return {.kernel = role == Role::send ? send_kind : receive_kind,
            .role = role,
            .by_library = true,
            .peer = peer,
            .tag = number(i, j) * parts + part,
            .bytes = bytes(i, j, part)};
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
    batch.add(message(Role::receive, home, row, column, part));
    batch.access(datum(row, column, part), AccessKind::out);
    read.push_back(datum(row, column, part));
  }
  void add_send(const int rank, const int i, const int j, const int to_row, const int to_column,
                const Part part, Batch& batch) const {
    if (to_row >= tiling_.down() || to_column >= tiling_.across()) return;
    const int to = tiling_.home(to_row, to_column);
    if (to == rank) return;
    batch.add(message(Role::send, to, i, j, part));
    batch.access(datum(i, j, parts), AccessKind::in);
  }
  void add_outer(const int rank, const int i, const int j, Batch& batch) const {
    std::vector<std::uint64_t> read;
    add_receive(rank, i - 1, j, last_row, batch, read);
    add_receive(rank, i, j - 1, last_column, batch, read);
    add_receive(rank, i - 1, j - 1, last_cell, batch, read);
    batch.add({.kernel = outer_kind, .creates = static_cast<std::uint32_t>(number(i, j)) + 1});
    for (const std::uint64_t other : read) batch.access(other, AccessKind::in);
    batch.access(datum(i, j, parts), AccessKind::out);
    add_send(rank, i, j, i + 1, j, last_row, batch);
    add_send(rank, i, j, i, j + 1, last_column, batch);
    add_send(rank, i, j, i + 1, j + 1, last_cell, batch);
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
