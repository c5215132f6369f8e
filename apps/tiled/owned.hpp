// SPDX-License-Identifier: BSD-3-Clause
// The tiles of a matrix as data with owners, for tasks that every rank inserts; the runtime finds
// the messages. Beside exchange.hpp, where a program creates them.
//
// Failure: a task whose kernel fails throws. Tasks that need its tile do not run, on any rank.
#pragma once

#include <imbrex/data.hpp>
#include <imbrex/imbrex.hpp>

#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "exchange.hpp"
#include "kernels.hpp"
#include "matrix.hpp"
#include "team.hpp"

namespace tiled {

// Thrown by a kernel that cannot continue because of a leading minor.
class BadMinor : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Every tile of a matrix as a datum, on every rank; the values are those of the matrix.
// Thread safety: as of its space.
class OwnedTiles {
 public:
  // REQUIRES: `matrix` outlives the space.
  OwnedTiles(imbrex::Space& space, TiledMatrix& matrix);

  [[nodiscard]] const imbrex::Data<double>& operator()(int i, int j) const {
    return data_[static_cast<std::size_t>(layout_.position(i, j))];
  }

 private:
  const Layout& layout_;
  std::vector<imbrex::Data<double>> data_;
};

[[nodiscard]] inline ConstTile tile_of(const imbrex::View<const double>& view) noexcept {
  return {view.data(), static_cast<int>(view.rows()), static_cast<int>(view.columns())};
}
[[nodiscard]] inline Tile tile_of(const imbrex::View<double>& view) noexcept {
  return {view.data(), static_cast<int>(view.rows()), static_cast<int>(view.columns())};
}

// The way in which a loop inserts: all tasks on every rank, or the tasks that concern the rank.
class Inserter {
 public:
  explicit Inserter(const bool trim) noexcept : trim_(trim) {}

  template <class Builder, class Body>
  void operator()(Builder&& builder, Body&& body) const {
    if (trim_ && !builder.concerns()) return;
    std::forward<Builder>(builder).launch(std::forward<Body>(body));
  }

 private:
  bool trim_;
};

// Waits for all that is inserted. Collective. Returns, the same on every rank, the largest `minor`
// of any rank, as its tasks have left it. Throws what they have thrown, unless a minor explains it.
[[nodiscard]] std::int64_t finish_inserted(const Team& team, imbrex::Space& space,
                                           const std::int64_t& minor);

// Returns the memory that this rank used, in tiles of `layout`.
[[nodiscard]] TaskUse use_of(const imbrex::Space& space, const Layout& layout);

}  // namespace tiled
