// SPDX-License-Identifier: BSD-3-Clause
// The tasks of apps/stencil1d with `--variants tasks`. Its cells, its steps and the accesses of its
// tasks are the application's own code.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "imbrex/error.hpp"
#include "simulate/programs/programs.hpp"
#include "stencil1d/steps.hpp"

namespace imbrex::simulate {

namespace {

using stencil1d::Side;

enum Kind : std::uint16_t { sweep_kind, send_kind, receive_kind };

// Creates the tasks of one rank: for in_step().
struct Creator {
  const StencilSetup& setup;
  const stencil1d::Share& share;
  Batch& batch;

  void receive(const int step, const Side side, const char& written) {
    Builder(batch, message(receive_kind, Role::receive, side, tag_of(step, side))).out(written);
  }
  void send(const int step, const Side side, const char& read) {
    Builder(batch, message(send_kind, Role::send, side, tag_of(step, other(side))))
        .priority(setup.marks ? 100 : 0)
        .in(read);
  }
  void sweep(int, const std::size_t part, const char& before, const char& here, const char& after,
             const char& written) {
    const auto [begin, end] = share.part(part);
    const double ns = static_cast<double>(end - begin) * setup.cell_ns;
    Builder(batch, {.kernel = sweep_kind, .duration = time_of(ns)})
        .in(before)
        .in(here)
        .in(after)
        .out(written);
  }
  [[nodiscard]] TaskPlan message(const Kind kind, const Role role, const Side side,
                                 const int tag) const {
    return {.kernel = kind,
            .role = role,
            .peer = share.neighbour(side),
            .tag = tag,
            .bytes = setup.ghost * 8};
  }
};

class Stencil final : public Program {
 public:
  explicit Stencil(const StencilSetup& setup)
      : setup_(setup), steps_(static_cast<std::size_t>(setup.ranks), 0) {
    std::size_t parts = 0;
    for (int rank = 0; rank < setup.ranks; ++rank) {
      const stencil1d::Share share = share_of(rank);
      if (share.count() < 3 * setup.ghost) {
        throw Error(fmt::format("rank {} has {} cells, fewer than three ghost layers of {}: use "
                                "fewer ranks, or a smaller ghost", rank, share.count(),
                                setup.ghost));
      }
      parts = std::max(parts, share.parts());
    }
    names_ = stencil1d::Names(parts);
  }
  const std::vector<Kernel>& kernels() const override { return kernels_; }
  bool next(const int rank, Batch& batch) override {
    int& step = steps_[static_cast<std::size_t>(rank)];
    if (step == setup_.steps) return false;
    const stencil1d::Share share = share_of(rank);
    Creator creator{setup_, share, batch};
    in_step(share, step, names_, creator);
    return ++step < setup_.steps;
  }

 private:
  [[nodiscard]] stencil1d::Share share_of(const int rank) const noexcept {
    return {.rank = rank,
            .ranks = setup_.ranks,
            .size = setup_.size,
            .ghost = setup_.ghost,
            .chunks_most = setup_.chunks,
            .is_periodic = setup_.is_periodic};
  }

  const StencilSetup setup_;
  std::vector<Kernel> kernels_{{"sweep", 0}, {"send", 0}, {"receive", 0}};
  stencil1d::Names names_{0};  // each rank has a dependency table of its own
  std::vector<int> steps_;     // of each rank: the next
};

}  // namespace

std::unique_ptr<Program> make_stencil(const StencilSetup& setup) {
  return std::make_unique<Stencil>(setup);
}

}  // namespace imbrex::simulate
