// SPDX-License-Identifier: BSD-3-Clause
// The task version. Every rank runs the same sequential loop over all operations and creates those
// that concern it: as in Pereira et al. 2021, one task for each potrf, trsm, syrk and gemm, and a
// send task and a receive task for each tile and each rank that reads it. In those, plain MPI_Send
// and MPI_Recv block. What runs when follows from the accesses alone.
//
// Failure: when a potrf meets a minor that is not positive, its rank skips all further kernels, and
// its sends carry one NaN instead of a tile, from which the receivers learn it. Every message still
// has its partner, so nothing waits for ever, and the rest of the graph runs empty.
#include <imbrex/imbrex.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "factor.hpp"
#include "kernels.hpp"

namespace cholesky {
namespace {

// Memory for received tiles, all of one size.
// Thread safety: any.
class TilePool {
 public:
  explicit TilePool(std::size_t doubles) : doubles_(doubles) {}

  double* take() {
    const std::lock_guard lock(mutex_);  // never held across a suspension
    if (free_.empty()) {
      all_.push_back(allocate_doubles(doubles_));
      free_.push_back(all_.back().get());
    }
    double* const tile = free_.back();
    free_.pop_back();
    return tile;
  }
  void give(double* tile) {
    const std::lock_guard lock(mutex_);
    free_.push_back(tile);
  }
  // The most that were in use at once. Only when nothing runs any more.
  [[nodiscard]] std::size_t peak() const noexcept { return all_.size(); }

 private:
  const std::size_t doubles_;
  std::mutex mutex_;
  std::vector<Doubles> all_;   // guarded by mutex_
  std::vector<double*> free_;  // guarded by mutex_
};

class TaskGraph {
 public:
  TaskGraph(const Team& team, TiledMatrix& matrix, const TaskOptions& options)
      : team_(team),
        matrix_(matrix),
        layout_(matrix.layout()),
        tiles_(layout_.tiles()),
        lookahead_(std::min(options.lookahead, tiles_)),
        urgent_(options.priorities ? 1 : 0),
        slots_(static_cast<std::size_t>(lookahead_) * tiles_, nullptr),
        pool_(static_cast<std::size_t>(layout_.tile) * layout_.tile) {}

  void create() {
    for (int k = 0; k < tiles_; ++k) create_step(k);
  }
  [[nodiscard]] std::int64_t bad_minor() const noexcept { return bad_minor_; }
  [[nodiscard]] std::size_t tiles_peak() const noexcept { return pool_.peak(); }

 private:
  void create_step(int k) {
    create_potrf(k);
    create_messages(k, k);
    for (int i = k + 1; i < tiles_; ++i) {
      create_trsm(i, k);
      create_messages(i, k);
    }
    // Column by column: what the next panel needs is created, and in program order run, first.
    for (int j = k + 1; j < tiles_; ++j) {
      create_syrk(j, k);
      for (int i = j + 1; i < tiles_; ++i) create_gemm(i, j, k);
    }
    for (int i = k; i < tiles_; ++i) create_free(i, k);
  }

  void create_potrf(int k) {
    if (!matrix_.is_mine(k, k)) return;
    double*& a = matrix_.handle(k, k);
    imbrex::task("potrf").inout(a).priority(urgent_).launch([this, &a, k] {
      if (has_failed()) return;
      const int info = potrf({a, layout_.extent(k), layout_.extent(k)});
      if (info == 0) return;
      bad_minor_ = layout_.first(k) + info;
      failed_.store(true, std::memory_order_release);
    });
  }

  void create_trsm(int i, int k) {
    if (!matrix_.is_mine(i, k)) return;
    double*& diagonal = operand(k, k);
    double*& a = matrix_.handle(i, k);
    imbrex::task("trsm").in(diagonal).inout(a).priority(urgent_).launch(
        [this, &diagonal, &a, i, k] {
          if (!has_failed()) trsm(tile(diagonal, k, k), mutable_tile(a, i, k));
        });
  }

  void create_syrk(int j, int k) {
    if (!matrix_.is_mine(j, j)) return;
    double*& a = operand(j, k);
    double*& c = matrix_.handle(j, j);
    imbrex::task("syrk").in(a).inout(c).launch([this, &a, &c, j, k] {
      if (!has_failed()) syrk(tile(a, j, k), mutable_tile(c, j, j));
    });
  }

  void create_gemm(int i, int j, int k) {
    if (!matrix_.is_mine(i, j)) return;
    double*& a = operand(i, k);
    double*& b = operand(j, k);
    double*& c = matrix_.handle(i, j);
    imbrex::task("gemm").in(a, b).inout(c).launch([this, &a, &b, &c, i, j, k] {
      if (!has_failed()) gemm(tile(a, i, k), tile(b, j, k), mutable_tile(c, i, j));
    });
  }

  // Sends tile (i, k) of the factor if it is mine, receives it if I read it.
  void create_messages(int i, int k) {
    const std::vector<int> ranks = readers(layout_, i, k);
    if (matrix_.is_mine(i, k)) {
      for (const int rank : ranks) create_send(i, k, rank);
    } else if (std::binary_search(ranks.begin(), ranks.end(), team_.rank())) {
      create_receive(i, k);
    }
  }

  void create_send(int i, int k, int to) {
    double*& a = matrix_.handle(i, k);
    imbrex::task("send").in(a).priority(urgent_).launch([this, &a, i, k, to] {
      const double poison = std::numeric_limits<double>::quiet_NaN();
      if (has_failed()) {
        MPI_Send(&poison, 1, MPI_DOUBLE, to, tag(i, k), team_.all());
      } else {
        MPI_Send(a, count(i, k), MPI_DOUBLE, to, tag(i, k), team_.all());
      }
    });
  }

  void create_receive(int i, int k) {
    double*& slot = operand(i, k);
    imbrex::task("receive").out(slot).priority(urgent_).launch([this, &slot, i, k] {
      slot = pool_.take();
      MPI_Recv(slot, count(i, k), MPI_DOUBLE, layout_.owner(i, k), tag(i, k), team_.all(),
               MPI_STATUS_IGNORE);
      if (std::isnan(slot[0])) failed_.store(true, std::memory_order_release);
    });
  }

  // After the last reader of a received tile.
  void create_free(int i, int k) {
    if (matrix_.is_mine(i, k)) return;
    const std::vector<int> ranks = readers(layout_, i, k);
    if (!std::binary_search(ranks.begin(), ranks.end(), team_.rank())) return;
    double*& slot = operand(i, k);
    imbrex::task("free").inout(slot).launch([this, &slot] { pool_.give(slot); });
  }

  // Where tile (i, k) of the factor is found: in the matrix, or, received, in a slot. The slots of
  // step k serve again in step k + lookahead: its receives wait for the last readers of step k,
  // which bounds the memory. They name the tile in dependencies.
  double*& operand(int i, int k) {
    if (matrix_.is_mine(i, k)) return matrix_.handle(i, k);
    return slots_[static_cast<std::size_t>(k % lookahead_) * tiles_ + i];
  }

  [[nodiscard]] bool has_failed() const noexcept {
    return failed_.load(std::memory_order_acquire);  // pairs with whoever found or received it
  }
  [[nodiscard]] int count(int i, int k) const noexcept {
    return layout_.extent(i) * layout_.extent(k);
  }
  // Unique: a rank gets a tile of the factor once at most.
  [[nodiscard]] static int tag(int i, int k) noexcept {
    return static_cast<int>(Layout::position(i, k));
  }
  [[nodiscard]] ConstTile tile(const double* data, int i, int j) const noexcept {
    return {data, layout_.extent(i), layout_.extent(j)};
  }
  [[nodiscard]] Tile mutable_tile(double* data, int i, int j) const noexcept {
    return {data, layout_.extent(i), layout_.extent(j)};
  }

  const Team& team_;
  TiledMatrix& matrix_;
  const Layout& layout_;
  const int tiles_;
  const int lookahead_;
  const int urgent_;
  std::vector<double*> slots_;  // written by receive tasks; ordered by dependencies
  TilePool pool_;
  std::atomic<bool> failed_{false};  // any task; once true it stays
  std::int64_t bad_minor_ = 0;       // the one potrf that fails here; read when nothing runs
};

}  // namespace

std::int64_t factor_tasks(const Team& team, TiledMatrix& matrix, const TaskOptions& options,
                          TaskMemory& memory) {
  TaskGraph graph(team, matrix, options);
  imbrex::finish([&] { graph.create(); });
  memory.tiles_peak = graph.tiles_peak();
  const std::int64_t mine = graph.bad_minor();
  std::int64_t minor = 0;  // at most one rank has one: the minors are found in order
  MPI_Allreduce(&mine, &minor, 1, MPI_INT64_T, MPI_MAX, team.all());
  return minor;
}

}  // namespace cholesky
