// SPDX-License-Identifier: BSD-3-Clause
// The tasks of apps/tiled/cholesky/tasks.cpp, with its messages (apps/tiled/exchange.cpp). The
// order of operations and the readers of a tile are the application's own code.
#include <algorithm>
#include <vector>

#include "simulate/programs/programs.hpp"
#include "tiled/cholesky/order.hpp"

namespace imbrex::simulate {

namespace {

enum Kind : std::uint16_t { potrf_kind, trsm_kind, syrk_kind, gemm_kind, send_kind, receive_kind,
                            free_kind };

// Creates the tasks of one rank in one step: the visitor of in_step().
class Creator {
 public:
  Creator(const tiled::Layout& layout, const CholeskySetup& setup, const int rank, Batch& batch)
      : layout_(layout), setup_(setup), rank_(rank), batch_(batch) {}

  void potrf(const int k) {
    if (is_mine(k, k)) add(potrf_kind).inout(handle(k, k));
  }
  void trsm(const int i, const int k) {
    if (is_mine(i, k)) add(trsm_kind).in(operand(k, k)).inout(handle(i, k));
  }
  void syrk(const int j, const int k) {
    if (is_mine(j, j)) add(syrk_kind).in(operand(j, k)).inout(handle(j, j));
  }
  void gemm(const int i, const int j, const int k) {
    if (!is_mine(i, j)) return;
    add(gemm_kind).in(operand(i, k)).in(operand(j, k)).inout(handle(i, j));
  }
  void factored(const int i, const int k) {
    const std::vector<int> readers = cholesky::readers(layout_, i, k);
    if (is_mine(i, k)) {
      for (const int rank : readers) {
        Builder(batch_, message(send_kind, Role::send, i, k, rank)).in(handle(i, k));
      }
    } else if (std::ranges::binary_search(readers, rank_)) {
      received_.push_back(i);
      Builder(batch_, message(receive_kind, Role::receive, i, k, layout_.owner(i, k)))
          .out(operand(i, k));
    }
  }
  void step_done(const int k) {
    for (const int i : received_) add(free_kind).inout(operand(i, k));
  }

 private:
  [[nodiscard]] bool is_mine(const int i, const int j) const noexcept {
    return layout_.owner(i, j) == rank_;
  }
  // Tiles of the matrix have even numbers, slots for received ones odd ones.
  [[nodiscard]] std::uint64_t handle(const int i, const int j) const noexcept {
    return 2 * static_cast<std::uint64_t>(layout_.position(i, j)) + 2;
  }
  [[nodiscard]] std::uint64_t operand(const int i, const int k) const noexcept {
    if (is_mine(i, k)) return handle(i, k);
    const int step = setup_.lookahead == 0 ? k : k % setup_.lookahead;
    return 2 * (static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(layout_.tiles()) +
                static_cast<std::uint64_t>(i)) + 1;
  }
  Builder add(const Kind kind) { return Builder(batch_, {.kernel = kind}); }
  [[nodiscard]] TaskPlan message(const Kind kind, const Role role, const int i, const int k,
                                 const int peer) const {
    return {.kernel = kind,
            .role = role,
            .priority = role == Role::send && setup_.marks ? 1 : 0,
            .peer = peer,
            .tag = static_cast<int>(layout_.position(i, k)),
            .bytes = std::int64_t{layout_.extent(i)} * layout_.extent(k) * 8};
  }

  const tiled::Layout& layout_;
  const CholeskySetup& setup_;
  const int rank_;
  Batch& batch_;
  std::vector<int> received_;  // rows of the tiles of this step
};

class Cholesky final : public Program {
 public:
  Cholesky(const CholeskySetup& setup, const DurationOf& duration_of)
      : setup_(checked(setup)),
        layout_{.n = setup.n, .tile = setup.tile, .grid = {setup.rows, setup.columns}},
        steps_(static_cast<std::size_t>(setup.rows * setup.columns), 0) {
    for (const char* const name : {"potrf", "trsm", "syrk", "gemm"}) {
      kernels_.push_back({name, duration_of(name)});
    }
    for (const char* const name : {"send", "receive", "free"}) kernels_.push_back({name, 0});
  }
  const std::vector<Kernel>& kernels() const override { return kernels_; }
  bool next(const int rank, Batch& batch) override {
    int& step = steps_[static_cast<std::size_t>(rank)];
    if (step == layout_.tiles()) return false;
    Creator creator(layout_, setup_, rank, batch);
    cholesky::in_step(layout_.tiles(), step, creator);
    return ++step < layout_.tiles();
  }

 private:
  [[nodiscard]] static const CholeskySetup& checked(const CholeskySetup& setup) {
    const auto tiles = static_cast<double>((setup.n - 1) / setup.tile + 1);
    check_messages(tiles * tiles);
    return setup;
  }

  const CholeskySetup setup_;
  const tiled::Layout layout_;
  std::vector<Kernel> kernels_;
  std::vector<int> steps_;  // of each rank: the next
};

}  // namespace

std::unique_ptr<Program> make_cholesky(const CholeskySetup& setup, const DurationOf& duration_of) {
  return std::make_unique<Cholesky>(setup, duration_of);
}

}  // namespace imbrex::simulate
