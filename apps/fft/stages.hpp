// SPDX-License-Identifier: BSD-3-Clause
// The geometry of a distributed transform: who has which points before and after each
// transposition, in which parts they travel, and as which types of MPI. Knows nothing of how they
// are computed.
//
// A transform is steps of lines, along one axis each, with a transposition after each step but the
// last. In 2-D a rank has rows of the field, then columns. In 3-D (Schulz, 2008; Castillo et al.,
// ICS 2019, section 4) it has pencils along x, then y, then z, in a grid of ranks.
#pragma once

#include <mpi.h>

#include <array>
#include <complex>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "../tiled/team.hpp"
#include "parts.hpp"

namespace fft {

using Complex = std::complex<double>;

// The points of the field that a rank has, in their order in memory.
struct Layout {
  std::array<Range, 3> axes;  // of x, y and z
  std::array<int, 3> order{}; // axes: the slowest first
  std::array<std::int64_t, 3> strides{1, 1, 1};  // from one point of an axis to the next

  [[nodiscard]] std::int64_t points() const noexcept {
    return axes[0].size() * axes[1].size() * axes[2].size();
  }
};

// visit(index in memory, x, y, z) for each point, in the order of memory.
template <class Visit>
void for_each_point(const Layout& layout, Visit&& visit) {
  std::array<std::int64_t, 3> at{};
  const auto [slow, middle, fast] = layout.order;
  std::int64_t index = 0;
  const auto axis = [&](int a) { return layout.axes[static_cast<std::size_t>(a)]; };
  const auto along = [&](int a, auto&& body) {
    const std::int64_t stride = layout.strides[static_cast<std::size_t>(a)];
    std::int64_t& place = at[static_cast<std::size_t>(a)];
    place = axis(a).first;
    for (std::int64_t i = 0; i < axis(a).size(); ++i, place += stride) body();
  };
  along(slow, [&] {
    along(middle, [&] { along(fast, [&] { visit(index++, at[0], at[1], at[2]); }); });
  });
}

// The data that go between two ranks, or a part of them: planes; rows, in the order of the source;
// and columns, which are lines of the target.
struct Box {
  Range planes, rows, columns;

  [[nodiscard]] std::int64_t points() const noexcept {
    return planes.size() * rows.size() * columns.size();
  }
};
[[nodiscard]] Box intersection(const Box& one, const Box& other) noexcept;

// Planes that are transposed alike. Rank s of `comm` has `rows` lines of n points of each plane,
// and gets `columns` lines, whose points s * rows and so on come from rank s.
struct Transposition {
  MPI_Comm comm = MPI_COMM_NULL;
  int ranks = 1;
  int rank = 0;
  std::int64_t n = 1;
  std::int64_t planes = 1, rows = 1, columns = 1;
  std::int64_t plane_stride = 0, row_stride = 0;  // of the source, in points; the target is dense

  [[nodiscard]] Box whole() const noexcept {
    return {{0, planes}, {0, rows}, {0, columns}};
  }
  // The position, in points, at which a box begins that goes to a rank, or comes from one.
  [[nodiscard]] std::int64_t source(int to, const Box& box) const noexcept {
    return box.planes.first * plane_stride + box.rows.first * row_stride + to * columns +
           box.columns.first;
  }
  [[nodiscard]] std::int64_t target(int from, const Box& box) const noexcept {
    return (box.planes.first * columns + box.columns.first) * n + from * rows + box.rows.first;
  }
};

// The types of a box: line by line of the target, on both sides. The extents lead from the data of
// one rank to those of the next.
struct Types {
  MPI_Datatype send = MPI_DATATYPE_NULL;
  MPI_Datatype receive = MPI_DATATYPE_NULL;
};

// Some of the lines of a step, one after the other in memory, and the box that they are, or become.
struct Part {
  Box box;
  Range lines;
};

struct Stage {
  Transposition transposition;
  std::vector<Part> chunks;  // of the source
  std::vector<Part> groups;  // of the target: the chunks of the next stage
};

struct Cuts {
  int parts = 16;   // groups of lines of a target
  int chunks = 16;  // of the rows in 2-D; in 3-D a chunk is a group of the step before
};

// Thread safety: made and destroyed by main, read by any task, except types(), which is main's.
class Pipeline {
 public:
  // REQUIRES: n is a multiple of the number of ranks in 2-D, of the grid's rows and of its columns
  // in 3-D. In 2-D the grid has one row. `back` begins as a pipeline that is not ends, and the
  // reverse. The communicators are the team's.
  Pipeline(const tiled::Team& team, int dims, std::int64_t n, const Cuts& cuts, bool back);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  [[nodiscard]] std::int64_t n() const noexcept { return n_; }
  [[nodiscard]] int steps() const noexcept { return static_cast<int>(stages_.size()) + 1; }
  [[nodiscard]] const std::vector<Stage>& stages() const noexcept { return stages_; }
  [[nodiscard]] std::int64_t points() const noexcept { return input_.points(); }
  [[nodiscard]] std::int64_t lines() const noexcept { return points() / n_; }  // of each step
  [[nodiscard]] const Layout& input() const noexcept { return input_; }
  [[nodiscard]] const Layout& output() const noexcept { return output_; }
  // The input in 2-D, if rows are dealt out to the ranks in turn, so that a block of the
  // transposition has every so many-th point of a line.
  [[nodiscard]] Layout dealt_input() const noexcept;
  // The parts of the lines of a step.
  [[nodiscard]] const std::vector<Part>& parts(int step) const noexcept;

  // The types of a box of this shape. They live as long as this object.
  [[nodiscard]] Types types(const Transposition& transposition, const Box& box);

 private:
  void make_2d(const tiled::Team& team, const Cuts& cuts);
  void make_3d(const tiled::Team& team, const Cuts& cuts, bool back);

  const std::int64_t n_;
  std::vector<Stage> stages_;
  Layout input_, output_;
  // The key: strides of the source, columns of the target, and the shape of the box.
  std::map<std::array<std::int64_t, 6>, Types> types_;
};

}  // namespace fft
