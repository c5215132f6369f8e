// SPDX-License-Identifier: BSD-3-Clause
// The tasks of apps/stencil2d/run.cpp, whose data have owners: each rank inserts all tasks, runs
// those of its blocks, and the library sends edges to the ranks that read them. Blocks do not move.
// Owners, neighbours and costs are the application's own code.
#include <set>
#include <utility>
#include <vector>

#include "simulate/programs/programs.hpp"
#include "stencil2d/balance.hpp"
#include "stencil2d/field.hpp"

namespace imbrex::simulate {

namespace {

using detail::AccessKind;

enum Kind : std::uint16_t { fill_kind, step_kind, send_kind, receive_kind };

class Blocks final : public Program {
 public:
  Blocks(const BlocksSetup& setup, const DurationOf& duration_of)
      : block_ns_(duration_of("block")), ranks_(setup.ranks) {
    check_messages(static_cast<double>(setup.blocks) * setup.blocks * setup.steps);
    problem_.blocks = setup.blocks;
    problem_.side = setup.side;
    problem_.steps = setup.steps;
    problem_.hot = setup.hot;
    owners_ = stencil2d::distribute(
        stencil2d::curve(setup.blocks),
        std::vector<std::int64_t>(static_cast<std::size_t>(problem_.count()), 0), ranks_);
    steps_.assign(static_cast<std::size_t>(ranks_), -1);
  }
  const std::vector<Kernel>& kernels() const override { return kernels_; }
  bool next(const int rank, Batch& batch) override {
    int& step = steps_[static_cast<std::size_t>(rank)];
    if (step < 0) {
      for (int block = 0; block < problem_.count(); ++block) {
        if (owner(block) != rank) continue;
        Builder(batch, {.kernel = fill_kind}).out(cells(block)).out(edges(0, block));
      }
    } else {
      sent_.clear();
      for (int block = 0; block < problem_.count(); ++block) add_step(rank, block, step, batch);
    }
    return ++step < problem_.steps;
  }

 private:
  [[nodiscard]] int owner(const int block) const noexcept {
    return owners_[static_cast<std::size_t>(block)];
  }
  [[nodiscard]] static std::uint64_t cells(const int block) noexcept {
    return 5 * static_cast<std::uint64_t>(block) + 1;
  }
  [[nodiscard]] static std::uint64_t edges(const int step, const int block) noexcept {
    return 5 * static_cast<std::uint64_t>(block) + 2 + static_cast<std::uint64_t>(step & 1);
  }
  // The copy of another rank's edges.
  [[nodiscard]] static std::uint64_t copy(const int step, const int block) noexcept {
    return edges(step, block) + 2;
  }
  [[nodiscard]] Time step_ns(const int block, const int step) const {
    return time_of(static_cast<double>(block_ns_) * problem_.cost(block, step));
  }
  // What `rank` does where the task of `block` is inserted.
  void add_step(const int rank, const int block, const int step, Batch& batch) {
    const int reader = owner(block);
    std::vector<std::uint64_t> read;
    for (int side = 0; side < stencil2d::sides; ++side) {
      const int other = stencil2d::neighbour(problem_, block, side);
      if (other < 0) continue;
      const bool is_near = owner(other) == reader;
      read.push_back(is_near ? edges(step, other) : copy(step, other));
      if (is_near || (rank != reader && rank != owner(other))) continue;
      if (!sent_.emplace(other, reader).second) continue;  // a copy serves all readers of a rank
      const bool sends = rank == owner(other);
      batch.add({.kernel = sends ? send_kind : receive_kind,
                 .role = sends ? Role::send : Role::receive,
                 .by_library = true,
                 .peer = sends ? reader : owner(other),
                 .tag = step * problem_.count() + other,
                 .bytes = std::int64_t{stencil2d::sides} * problem_.side * 8});
      batch.access(sends ? edges(step, other) : copy(step, other),
                   sends ? AccessKind::in : AccessKind::out);
    }
    if (rank != reader) return;
    Builder task(batch, {.kernel = step_kind, .duration = step_ns(block, step)});
    task.inout(cells(block)).out(edges(step + 1, block));
    for (const std::uint64_t datum : read) task.in(datum);
  }

  const Time block_ns_;
  const int ranks_;
  stencil2d::Problem problem_;
  std::vector<int> owners_;
  std::vector<Kernel> kernels_{{"fill", 0}, {"step", 0}, {"send", 0}, {"receive", 0}};
  std::vector<int> steps_;               // of each rank: the next; -1: the blocks are filled
  std::set<std::pair<int, int>> sent_;   // in this step: the edges of a block to a rank
};

}  // namespace

std::unique_ptr<Program> make_blocks(const BlocksSetup& setup, const DurationOf& duration_of) {
  return std::make_unique<Blocks>(setup, duration_of);
}

}  // namespace imbrex::simulate
