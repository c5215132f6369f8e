// SPDX-License-Identifier: BSD-3-Clause
// The fork-join version, as Chatterjee et al. compare with: threads compute the tiles of an
// anti-diagonal, then one of them exchanges what the next diagonal needs, then all ranks wait for
// each other. Compiled with OpenMP where there is one.
#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "variants.hpp"
#ifdef _OPENMP
#include <omp.h>
#endif

namespace smith_waterman {
namespace {

enum Tag { to_the_right, down };

class ForkJoin {
 public:
  ForkJoin(const Problem& problem, MPI_Comm comm)
      : problem_(problem), tiling_(problem.tiling), comm_(comm) {
    MPI_Comm_rank(comm, &rank_);
  }

  Score run() {
    begin_diagonal(0);
    Score last = 0;
    for (int diagonal = 0; diagonal < tiling_.diagonals(); ++diagonal) {
      compute();
      if (diagonal + 1 == tiling_.diagonals()) {
        if (!tiles_.empty()) last = tiles_.begin()->second->row.back();
        break;
      }
      exchange(diagonal);
      MPI_Barrier(comm_);
    }
    return last;
  }

 private:
  using Tiles = std::map<int, std::unique_ptr<OuterTile>>;  // of a diagonal, by their row

  [[nodiscard]] bool is_mine(int i, int j) const { return tiling_.home(i, j) == rank_; }

  void begin_diagonal(int diagonal) {
    tiles_.clear();
    for (int i = tiling_.first_of(diagonal); i <= tiling_.last_of(diagonal); ++i) {
      if (!is_mine(i, diagonal - i)) continue;
      tiles_.emplace(i, std::make_unique<OuterTile>(problem_, i, diagonal - i));
    }
  }

  // The inner diagonals of all tiles of this rank in step, so that threads have the more to share.
  void compute() {
    std::vector<OuterTile*> tiles;
    int inner_diagonals = 0;
    int down_max = 1;
    for (const auto& [i, tile] : tiles_) {
      // The next row's message has, beside the row, the last cell of the column to the left.
      corners_below_[i] = tile->column.back();
      tile->begin();
      tiles.push_back(tile.get());
      inner_diagonals = std::max(inner_diagonals, tile->down() + tile->across() - 1);
      down_max = std::max(down_max, tile->down());
    }
    const int count = static_cast<int>(tiles.size());
#pragma omp parallel default(none) shared(tiles, inner_diagonals, down_max, count)
    for (int inner = 0; inner < inner_diagonals; ++inner) {
#pragma omp for schedule(dynamic)
      for (int k = 0; k < count * down_max; ++k) {
        OuterTile& tile = *tiles[static_cast<std::size_t>(k / down_max)];
        const int i = k % down_max;
        if (i < tile.down() && inner >= i && inner - i < tile.across()) tile.compute(i, inner - i);
      }
    }
  }

  // Columns go to the right; rows go down, with the corner of the tile below in front. Between two
  // ranks both sides go through tiles in the same order, so that no message needs its own tag.
  void exchange(int diagonal) {
    Tiles before = std::move(tiles_);
    begin_diagonal(diagonal + 1);
    std::vector<MPI_Request> requests;
    std::map<int, std::vector<Score>> rows_in;
    for (const auto& [i, tile] : tiles_) {
      const int j = diagonal + 1 - i;
      if (j > 0) receive(tile->column, tiling_.home(i, j - 1), to_the_right, requests);
      if (i == 0) continue;
      std::vector<Score>& row = rows_in[i];
      row.resize(tile->row.size() + 1);
      receive(row, tiling_.home(i - 1, j), down, requests);
    }
    std::map<int, std::vector<Score>> rows_out;
    for (const auto& [i, tile] : before) {
      const int j = diagonal - i;
      if (j + 1 < tiling_.across()) {
        send(tile->column, tiling_.home(i, j + 1), to_the_right, requests);
      }
      if (i + 1 == tiling_.down()) continue;
      std::vector<Score>& row = rows_out[i];
      row.reserve(tile->row.size() + 1);
      row.push_back(corners_below_[i]);
      row.insert(row.end(), tile->row.begin(), tile->row.end());
      send(row, tiling_.home(i + 1, j), down, requests);
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    corners_below_.clear();
    for (const auto& [i, row] : rows_in) {
      OuterTile& tile = *tiles_.at(i);
      if (i < diagonal + 1) tile.corner = row.front();  // else it is on the matrix's edge
      std::copy(row.begin() + 1, row.end(), tile.row.begin());
    }
  }

  void receive(std::vector<Score>& to, int from, Tag tag, std::vector<MPI_Request>& requests) {
    requests.emplace_back();
    MPI_Irecv(to.data(), static_cast<int>(to.size()), MPI_INT32_T, from, tag, comm_,
              &requests.back());
  }
  void send(const std::vector<Score>& from, int to, Tag tag, std::vector<MPI_Request>& requests) {
    requests.emplace_back();
    MPI_Isend(from.data(), static_cast<int>(from.size()), MPI_INT32_T, to, tag, comm_,
              &requests.back());
  }

  const Problem& problem_;
  const Tiling& tiling_;
  const MPI_Comm comm_;
  int rank_ = 0;
  Tiles tiles_;
  std::map<int, Score> corners_below_;  // of the tiles below this diagonal's, by their row
};

}  // namespace

Score run_fork_join(const Problem& problem, MPI_Comm comm) {
  return ForkJoin(problem, comm).run();
}

int fork_join_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return 1;
#endif
}

}  // namespace smith_waterman
