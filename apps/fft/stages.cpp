// SPDX-License-Identifier: BSD-3-Clause
#include "stages.hpp"

#include <algorithm>

namespace fft {

namespace {

constexpr MPI_Aint point_bytes = sizeof(Complex);

Range overlap(const Range& one, const Range& other) noexcept {
  const std::int64_t first = std::max(one.first, other.first);
  return {first, std::max(first, std::min(one.last, other.last))};
}

Transposition transposition(MPI_Comm comm, std::int64_t n, std::int64_t planes) {
  Transposition result;
  result.comm = comm;
  MPI_Comm_size(comm, &result.ranks);
  MPI_Comm_rank(comm, &result.rank);
  result.n = n;
  result.planes = planes;
  result.rows = result.columns = n / result.ranks;
  return result;
}

// Cut by rows of the source, which lie `planes` to a row one after the other; by columns of the
// target; by planes of a source, or of a target, whose planes have `lines` lines.
std::vector<Part> cut_rows(const Transposition& t, int parts) {
  std::vector<Part> result;
  for (const Range& rows : cut(t.rows, parts)) {
    result.push_back({{{0, t.planes}, rows, {0, t.columns}},
                      {rows.first * t.planes, rows.last * t.planes}});
  }
  return result;
}
std::vector<Part> cut_columns(const Transposition& t, int parts) {
  std::vector<Part> result;
  for (const Range& columns : cut(t.columns, parts)) {
    result.push_back({{{0, t.planes}, {0, t.rows}, columns}, columns});
  }
  return result;
}
std::vector<Part> cut_planes(const Transposition& t, int parts, std::int64_t lines) {
  std::vector<Part> result;
  for (const Range& planes : cut(t.planes, parts)) {
    result.push_back({{planes, {0, t.rows}, {0, t.columns}},
                      {planes.first * lines, planes.last * lines}});
  }
  return result;
}

Range share(int rank, std::int64_t count) noexcept {
  return {rank * count, (rank + 1) * count};
}

void commit_resized(MPI_Datatype& type, std::int64_t points) {
  MPI_Datatype resized = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(type, 0, points * point_bytes, &resized);
  MPI_Type_free(&type);
  MPI_Type_commit(&resized);
  type = resized;
}

struct Repeat {
  std::int64_t count;
  std::int64_t stride;  // in points
};

// Repeats a type, which it frees.
void repeat(MPI_Datatype& type, const Repeat& repeat) {
  MPI_Datatype many = MPI_DATATYPE_NULL;
  MPI_Type_create_hvector(static_cast<int>(repeat.count), 1, repeat.stride * point_bytes, type,
                          &many);
  MPI_Type_free(&type);
  type = many;
}

Types make_types(const Transposition& t, const Box& box) {
  Types types;
  MPI_Type_vector(static_cast<int>(box.rows.size()), 1, static_cast<int>(t.row_stride),
                  MPI_C_DOUBLE_COMPLEX, &types.send);
  repeat(types.send, {box.columns.size(), 1});
  repeat(types.send, {box.planes.size(), t.plane_stride});
  commit_resized(types.send, t.columns);
  MPI_Type_contiguous(static_cast<int>(box.rows.size()), MPI_C_DOUBLE_COMPLEX, &types.receive);
  repeat(types.receive, {box.columns.size(), t.n});
  repeat(types.receive, {box.planes.size(), t.columns * t.n});
  commit_resized(types.receive, t.rows);
  return types;
}

}  // namespace

Box intersection(const Box& one, const Box& other) noexcept {
  return {overlap(one.planes, other.planes), overlap(one.rows, other.rows),
          overlap(one.columns, other.columns)};
}

Pipeline::Pipeline(const tiled::Team& team, const int dims, const std::int64_t n, const Cuts& cuts,
                   const bool back)
    : n_(n) {
  if (dims == 2) {
    make_2d(team, cuts);
  } else {
    make_3d(team, cuts, back);
  }
}

Pipeline::~Pipeline() {
  for (auto& [shape, types] : types_) {
    MPI_Type_free(&types.send);
    MPI_Type_free(&types.receive);
  }
}

// Both layouts are alike, with x and y exchanged, so that it is its own way back.
void Pipeline::make_2d(const tiled::Team& team, const Cuts& cuts) {
  Transposition t = transposition(team.all(), n_, 1);
  t.row_stride = n_;
  stages_.push_back({t, cut_rows(t, cuts.chunks), cut_columns(t, cuts.parts)});
  const Range mine = share(t.rank, t.rows);
  input_ = {{Range{0, n_}, mine, Range{0, 1}}, {2, 1, 0}};
  output_ = {{mine, Range{0, n_}, Range{0, 1}}, {2, 0, 1}};
}

// [z][y][x] to [z][x][y], by ranks that share z, and to [x][y][z], by ranks that share x.
void Pipeline::make_3d(const tiled::Team& team, const Cuts& cuts, const bool back) {
  MPI_Comm along_y = back ? team.my_column() : team.my_row();
  MPI_Comm along_z = back ? team.my_row() : team.my_column();
  Transposition first = transposition(along_y, n_, 1);
  Transposition second = transposition(along_z, n_, first.columns);
  first.planes = second.rows;
  first.plane_stride = first.rows * n_;
  first.row_stride = n_;
  second.plane_stride = n_;
  second.row_stride = first.columns * n_;
  stages_.push_back({first, cut_planes(first, cuts.parts, first.rows),
                     cut_planes(first, cuts.parts, first.columns)});
  stages_.push_back({second, cut_rows(second, cuts.parts),
                     cut_planes(second, cuts.parts, second.columns)});
  const Range by_first = share(first.rank, first.rows);
  const Range by_second = share(second.rank, second.rows);
  input_ = {{Range{0, n_}, by_first, by_second}, {2, 1, 0}};
  output_ = {{by_first, by_second, Range{0, n_}}, {0, 1, 2}};
}

Layout Pipeline::dealt_input() const noexcept {
  const Transposition& t = stages_.front().transposition;
  Layout layout = input_;
  layout.axes[1] = {t.rank, t.rank + t.rows};
  layout.strides[1] = t.ranks;
  return layout;
}

const std::vector<Part>& Pipeline::parts(const int step) const noexcept {
  return step == 0 ? stages_.front().chunks : stages_[static_cast<std::size_t>(step - 1)].groups;
}

Types Pipeline::types(const Transposition& transposition, const Box& box) {
  const std::array shape{transposition.plane_stride, transposition.row_stride,
                         transposition.columns,      box.planes.size(),
                         box.rows.size(),            box.columns.size()};
  const auto found = types_.find(shape);
  if (found != types_.end()) return found->second;
  return types_.emplace(shape, make_types(transposition, box)).first->second;
}

}  // namespace fft
