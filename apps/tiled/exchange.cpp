// SPDX-License-Identifier: BSD-3-Clause
#include "exchange.hpp"

#include <fmt/format.h>
#include <imbrex/imbrex.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace tiled {

using imbrex::at;  // tiles are named by their handles, which are pointers

Broadcasts sum_over_ranks(const Team& team, const Broadcasts& mine) {
  const std::int64_t counts[] = {mine.versions, mine.to_several, mine.full, mine.root_copies,
                                 mine.relay_copies};
  std::int64_t sum[5];
  MPI_Allreduce(counts, sum, 5, MPI_INT64_T, MPI_SUM, team.all());
  return {sum[0], sum[1], sum[2], sum[3], sum[4]};
}

std::string describe(const Broadcasts& broadcasts) {
  if (broadcasts.versions == 0) return "";
  return fmt::format("{} tiles went to other ranks, {} to several, {} of these by one list of all; "
                     "{} copies were sent by the owner, {} passed on",
                     broadcasts.versions, broadcasts.to_several, broadcasts.full,
                     broadcasts.root_copies, broadcasts.relay_copies);
}

void add_to(nlohmann::json& record, const Broadcasts& broadcasts) {
  record["versions_sent"] = broadcasts.versions;
  record["broadcasts"] = broadcasts.to_several;
  record["broadcasts_full"] = broadcasts.full;
  record["copies_from_root"] = broadcasts.root_copies;
  record["copies_from_relay"] = broadcasts.relay_copies;
}

double* TilePool::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    all_.push_back(allocate_doubles(doubles_));
    free_.push_back(all_.back().get());
  }
  double* const tile = free_.back();
  free_.pop_back();
  return tile;
}

void TilePool::give(double* tile) {
  const std::lock_guard lock(mutex_);
  free_.push_back(tile);
}

Exchange::Exchange(const Team& team, TiledMatrix& matrix, const ExchangeOptions& options)
    : team_(team),
      matrix_(matrix),
      layout_(matrix.layout()),
      lookahead_(std::min(options.lookahead, layout_.tiles())),
      send_(options.send_priority),
      receive_(options.receive_priority),
      step_of_(options.step_of),
      first_tag_(options.first_tag),
      slots_(static_cast<std::size_t>(lookahead_) * 2 * layout_.tiles(), nullptr),
      pool_(static_cast<std::size_t>(layout_.tile) * layout_.tile) {}

void Exchange::pass_on(int i, int j, const std::vector<int>& readers) {
  if (matrix_.is_mine(i, j)) {
    for (const int rank : readers) create_send(i, j, rank);
  } else if (receives(i, j, readers)) {
    create_receive(i, j);
  }
}

void Exchange::release(int i, int j, const std::vector<int>& readers) {
  if (!receives(i, j, readers)) return;
  double*& slot = operand(i, j);
  imbrex::task("free").inout(at(&slot)).launch([this, &slot] { pool_.give(slot); });
}

double*& Exchange::operand(int i, int j) {
  if (matrix_.is_mine(i, j)) return matrix_.handle(i, j);
  const bool of_column = step_of_ == StepOf::column || (step_of_ == StepOf::smaller && i >= j);
  const int step = (of_column ? j : i) % lookahead_;
  const int place = of_column ? i : layout_.tiles() + j;
  return slots_[static_cast<std::size_t>(step) * 2 * layout_.tiles() + place];
}

void Exchange::create_send(int i, int j, int to) {
  double*& a = matrix_.handle(i, j);
  bytes_sent_ += count(i, j) * std::int64_t{sizeof(double)};
  imbrex::task("send").in(at(&a)).priority(send_).launch([this, &a, i, j, to] {
    const double poison = std::numeric_limits<double>::quiet_NaN();
    if (has_failed()) {
      MPI_Send(&poison, 1, MPI_DOUBLE, to, tag(i, j), team_.all());
    } else {
      MPI_Send(a, count(i, j), MPI_DOUBLE, to, tag(i, j), team_.all());
    }
  });
}

void Exchange::create_receive(int i, int j) {
  double*& slot = operand(i, j);
  bytes_received_ += count(i, j) * std::int64_t{sizeof(double)};
  imbrex::task("receive").out(at(&slot)).priority(receive_).launch([this, &slot, i, j] {
    slot = pool_.take();
    MPI_Recv(slot, count(i, j), MPI_DOUBLE, layout_.owner(i, j), tag(i, j), team_.all(),
             MPI_STATUS_IGNORE);
    if (std::isnan(slot[0])) fail();
  });
}

bool Exchange::receives(int i, int j, const std::vector<int>& readers) const {
  return !matrix_.is_mine(i, j) && std::binary_search(readers.begin(), readers.end(), team_.rank());
}

int Exchange::count(int i, int j) const noexcept { return layout_.extent(i) * layout_.extent(j); }

// Unique: a rank gets a tile once at most.
int Exchange::tag(int i, int j) const noexcept {
  return first_tag_ + static_cast<int>(layout_.position(i, j));
}

}  // namespace tiled
