// SPDX-License-Identifier: BSD-3-Clause
// The tasks of apps/stencil1d/tasks.cpp, and its division of the cells (field.cpp). A test
// compares the numbers of these tasks with the numbers in a run of the application.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "imbrex/error.hpp"
#include "simulate/programs/programs.hpp"

namespace imbrex::simulate {

namespace {

using detail::AccessKind;

enum Side : int { left = 0, right = 1 };
enum Kind : std::uint16_t { sweep_kind, send_kind, receive_kind };

class Stencil final : public Program {
 public:
  explicit Stencil(const StencilSetup& setup)
      : setup_(setup), steps_(static_cast<std::size_t>(setup.ranks), 0) {
    for (int rank = 0; rank < setup.ranks; ++rank) parts_.push_back(parts_of(rank));
  }
  const std::vector<Kernel>& kernels() const override { return kernels_; }
  bool next(const int rank, Batch& batch) override {
    int& step = steps_[static_cast<std::size_t>(rank)];
    if (step == setup_.steps) return false;
    const int copy = step & 1;
    const std::vector<std::int64_t>& parts = parts_[static_cast<std::size_t>(rank)];
    const std::size_t last = parts.size() - 1;
    for (const Side side : {left, right}) {
      if (neighbour(rank, side) >= 0) add_messages(rank, step, side, batch);
    }
    add_sweep(rank, step, 0, ghosts(copy, left), cells(copy, 1), batch);
    add_sweep(rank, step, last, ghosts(copy, right), cells(copy, last - 1), batch);
    for (std::size_t core = 1; core < last; ++core) {
      add_sweep(rank, step, core, cells(copy, core - 1), cells(copy, core + 1), batch);
    }
    return ++step < setup_.steps;
  }

 private:
  // The lengths of the parts: a border, the chunks of the core, the other border.
  [[nodiscard]] std::vector<std::int64_t> parts_of(const int rank) const {
    const std::int64_t first = setup_.size * rank / setup_.ranks;
    const std::int64_t count = setup_.size * (rank + 1) / setup_.ranks - first;
    if (count < 3 * setup_.ghost) {
      throw Error(fmt::format("rank {} has {} cells, fewer than three ghost layers of {}: use "
                              "fewer ranks, or a smaller ghost", rank,
                              count, setup_.ghost));
    }
    const std::int64_t core = count - 2 * setup_.ghost;
    const std::int64_t chunks = std::clamp<std::int64_t>(setup_.chunks, 1, core / setup_.ghost);
    std::vector<std::int64_t> parts{setup_.ghost};
    for (std::int64_t i = 0; i < chunks; ++i) {
      parts.push_back(core * (i + 1) / chunks - core * i / chunks);
    }
    parts.push_back(setup_.ghost);
    return parts;
  }
  // -1: there is none.
  [[nodiscard]] int neighbour(const int rank, const Side side) const noexcept {
    const int other = rank + (side == left ? -1 : 1);
    if (setup_.is_periodic) return (other + setup_.ranks) % setup_.ranks;
    return other < setup_.ranks ? other : -1;
  }
  [[nodiscard]] static std::uint64_t ghosts(const int copy, const Side side) noexcept {
    return 1 + 2 * static_cast<std::uint64_t>(copy) + static_cast<std::uint64_t>(side);
  }
  [[nodiscard]] static std::uint64_t cells(const int copy, const std::size_t part) noexcept {
    return 5 + 2 * part + static_cast<std::uint64_t>(copy);
  }
  void add_messages(const int rank, const int step, const Side side, Batch& batch) const {
    const int copy = step & 1;
    const Side across = side == left ? right : left;
    TaskPlan plan{.kernel = receive_kind,
                  .role = Role::receive,
                  .peer = neighbour(rank, side),
                  .tag = 2 * step + side,
                  .bytes = setup_.ghost * 8};
    batch.add(plan);
    batch.access(ghosts(copy, side), AccessKind::out);
    plan.kernel = send_kind;
    plan.role = Role::send;
    plan.priority = setup_.marks ? 100 : 0;
    plan.tag = 2 * step + across;
    batch.add(plan);
    const std::size_t last = parts_[static_cast<std::size_t>(rank)].size() - 1;
    batch.access(cells(copy, side == left ? 0 : last), AccessKind::in);
  }
  void add_sweep(const int rank, const int step, const std::size_t part, const std::uint64_t before,
                 const std::uint64_t after, Batch& batch) const {
    const int copy = step & 1;
    const auto length = static_cast<double>(parts_[static_cast<std::size_t>(rank)][part]);
    batch.add({.kernel = sweep_kind, .duration = time_of(length * setup_.cell_ns)});
    batch.access(before, AccessKind::in);
    batch.access(cells(copy, part), AccessKind::in);
    batch.access(after, AccessKind::in);
    batch.access(cells(1 - copy, part), AccessKind::out);
  }

  const StencilSetup setup_;
  std::vector<Kernel> kernels_{{"sweep", 0}, {"send", 0}, {"receive", 0}};
  std::vector<std::vector<std::int64_t>> parts_;  // of each rank
  std::vector<int> steps_;                        // of each rank: the next
};

}  // namespace

std::unique_ptr<Program> make_stencil(const StencilSetup& setup) {
  return std::make_unique<Stencil>(setup);
}

}  // namespace imbrex::simulate
