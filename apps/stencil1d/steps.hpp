// SPDX-License-Identifier: BSD-3-Clause
// The cells of a rank and their parts, and the tasks of a step of run_tasks(). Knows no MPI and no
// runtime. Also for `imbrex simulate`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stencil1d {

enum Side : int { left = 0, right = 1 };
[[nodiscard]] inline Side other(Side side) noexcept { return side == left ? right : left; }

// Local cells from `begin` to `end`.
struct Part {
  std::int64_t begin;
  std::int64_t end;
};

// A rank's share of the cells: a border of `ghost` cells on each side, which a step computes from
// the neighbour's cells too, and the core between them. REQUIRES: a rank has 3 * ghost cells.
struct Share {
  int rank = 0;
  int ranks = 1;
  std::int64_t size = 0;  // cells of all ranks
  std::int64_t ghost = 0;
  int chunks_most = 1;    // of the core
  bool is_periodic = true;

  [[nodiscard]] std::int64_t first() const noexcept { return size * rank / ranks; }
  [[nodiscard]] std::int64_t count() const noexcept { return size * (rank + 1) / ranks - first(); }
  // -1: there is none.
  [[nodiscard]] int neighbour(Side side) const noexcept {
    const int other = rank + (side == left ? -1 : 1);
    if (is_periodic) return (other + ranks) % ranks;
    return other < ranks ? other : -1;
  }
  [[nodiscard]] bool has(Side side) const noexcept { return neighbour(side) >= 0; }
  // Part 0 is the left border, the last one the right. Each is as long as the ghost layer or
  // longer, so that a step of it reads its neighbours and no others.
  [[nodiscard]] int chunks() const noexcept {
    return static_cast<int>(std::clamp<std::int64_t>(core() / ghost, 1, chunks_most));
  }
  [[nodiscard]] std::size_t parts() const noexcept {
    return static_cast<std::size_t>(chunks()) + 2;
  }
  [[nodiscard]] Part part(std::size_t number) const noexcept {
    if (number == 0) return {0, ghost};
    if (number + 1 == parts()) return {count() - ghost, count()};
    const auto chunk = static_cast<std::int64_t>(number);
    return {ghost + core() * (chunk - 1) / chunks(), ghost + core() * chunk / chunks()};
  }

 private:
  [[nodiscard]] std::int64_t core() const noexcept { return count() - 2 * ghost; }
};

// The tag of the message of `step` that fills a rank's ghost layer on `side`.
[[nodiscard]] inline int tag_of(int step, Side side) noexcept {
  constexpr int steps_apart = 1000;  // neighbours are never so many steps apart
  return 2 * (step % steps_apart) + side;
}

// Names what a task reads and writes: one byte for each part of each copy, and each ghost layer.
struct Names {
  explicit Names(std::size_t parts) : cells{std::vector<char>(parts), std::vector<char>(parts)} {}
  std::vector<char> cells[2];  // by copy, by part
  char ghosts[2][2] = {};      // by copy, by Side
};

// Calls `tasks` for each task of `step`, in program order: receive(step, side, written),
// send(step, side, read), and sweep(step, part, before, here, after, written), each with the names
// of its data.
template <class Tasks>
void in_step(const Share& share, const int step, Names& names, Tasks& tasks) {
  const int copy = step & 1;
  std::vector<char>& cells = names.cells[copy];
  char* const ghosts = names.ghosts[copy];
  const std::size_t last = share.parts() - 1;
  for (const Side side : {left, right}) {
    if (!share.has(side)) continue;
    tasks.receive(step, side, ghosts[side]);
    tasks.send(step, side, cells[side == left ? 0 : last]);
  }
  const auto sweep = [&](const std::size_t part, const char& before, const char& after) {
    tasks.sweep(step, part, before, cells[part], after, names.cells[1 - copy][part]);
  };
  sweep(0, ghosts[left], cells[1]);
  sweep(last, ghosts[right], cells[last - 1]);
  for (std::size_t core = 1; core < last; ++core) sweep(core, cells[core - 1], cells[core + 1]);
}

}  // namespace stencil1d
