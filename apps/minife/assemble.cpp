// SPDX-License-Identifier: BSD-3-Clause
#include "assemble.hpp"

#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "element.hpp"

namespace minife {

using sparse::Box;
using sparse::Brick;
using sparse::Point;
using sparse::Rows;

namespace {

Point corner(const Point& element, std::size_t node) {
  return {element[0] + static_cast<int>(node & 1), element[1] + static_cast<int>(node >> 1 & 1),
          element[2] + static_cast<int>(node >> 2)};
}

bool contains(const Box& box, const Point& point) {
  for (std::size_t d = 0; d < 3; ++d) {
    if (point[d] < box.from[d] || point[d] >= box.to[d]) return false;
  }
  return true;
}

// One sub-block of the system. All coordinates are local.
class Assembly {
 public:
  Assembly(const Problem& problem, const Brick& brick, const Box& block, System& system, Rows& rows)
      : problem_(problem), brick_(brick), block_(block), load_(system.load), rows_(rows) {}

  void run() {
    rows_ = sparse::pattern_of(brick_, block_);
    Box touching;  // elements; element (x, y, z) has node (x, y, z) as its lowest
    for (std::size_t d = 0; d < 3; ++d) {
      touching.from[d] = std::max(block_.from[d] - 1, -brick_.first()[d]);
      touching.to[d] = std::min(block_.to[d], problem_.elements[d] - brick_.first()[d]);
    }
    for (int z = touching.from[2]; z < touching.to[2]; ++z) {
      for (int y = touching.from[1]; y < touching.to[1]; ++y) {
        for (int x = touching.from[0]; x < touching.to[0]; ++x) add_element({x, y, z});
      }
    }
    hold_boundary();
  }

 private:
  std::size_t place(const Point& node) const {
    return static_cast<std::size_t>(brick_.at(node[0], node[1], node[2]));
  }
  std::size_t row_of(const Point& node) const {
    const int x = block_.to[0] - block_.from[0];
    const int y = block_.to[1] - block_.from[1];
    return static_cast<std::size_t>(((node[2] - block_.from[2]) * y + node[1] - block_.from[1]) *
                                    x + node[0] - block_.from[0]);
  }

  void add_element(const Point& element) {
    ElementNodes nodes;
    for (std::size_t node = 0; node < element_nodes; ++node) {
      const Point at = corner(element, node);
      for (std::size_t d = 0; d < 3; ++d) {
        nodes[node][d] = static_cast<double>(brick_.first()[d] + at[d]) / problem_.elements[d];
      }
    }
    const Element integrals = integrate(nodes);
    for (std::size_t node = 0; node < element_nodes; ++node) {
      const Point at = corner(element, node);
      if (!contains(block_, at)) continue;
      load_[place(at)] += problem_.source * integrals.load[node];
      for (std::size_t other = 0; other < element_nodes; ++other) {
        entry(row_of(at), place(corner(element, other))) += integrals.matrix[node][other];
      }
    }
  }

  double& entry(std::size_t row, std::size_t column) {
    const auto begin = rows_.column.begin() + rows_.begin[row];
    const auto end = rows_.column.begin() + rows_.begin[row + 1];
    const auto found = std::lower_bound(begin, end, static_cast<int>(column));
    return rows_.value[static_cast<std::size_t>(found - rows_.column.begin())];
  }

  // The value at which the boundary holds a node; none if the node is free.
  std::optional<double> held(const Point& node) const {
    std::optional<double> value;
    for (std::size_t d = 0; d < 3; ++d) {
      const int global = brick_.first()[d] + node[d];
      if (global == 0 || global == problem_.elements[d]) value = 0;
    }
    if (brick_.first()[0] + node[0] == problem_.elements[0]) value = 1;
    return value;
  }

  void hold_boundary() {
    std::size_t row = 0;
    for (int z = block_.from[2]; z < block_.to[2]; ++z) {
      for (int y = block_.from[1]; y < block_.to[1]; ++y) {
        for (int x = block_.from[0]; x < block_.to[0]; ++x, ++row) hold_row({x, y, z}, row);
      }
    }
  }

  void hold_row(const Point& node, std::size_t row) {
    const auto own = held(node);
    for (int c = -1; c <= 1; ++c) {
      for (int b = -1; b <= 1; ++b) {
        for (int a = -1; a <= 1; ++a) {
          const Point other{node[0] + a, node[1] + b, node[2] + c};
          const auto value = held(other);
          if (!own && !value) continue;
          if (!in_grid(other)) continue;
          double& coefficient = entry(row, place(other));
          if (!own) load_[place(node)] -= coefficient * *value;
          coefficient = own && other == node ? 1 : 0;
        }
      }
    }
    if (own) load_[place(node)] = *own;
  }

  bool in_grid(const Point& node) const {
    for (std::size_t d = 0; d < 3; ++d) {
      const int global = brick_.first()[d] + node[d];
      if (global < 0 || global > problem_.elements[d]) return false;
    }
    return true;
  }

  const Problem& problem_;
  const Brick& brick_;
  const Box& block_;
  std::vector<double>& load_;  // this block's points of it
  Rows& rows_;
};

}  // namespace

System assemble(const Problem& problem, const Brick& brick) {
  System system;
  system.rows.resize(brick.blocks().size());
  system.load.resize(brick.size());
  imbrex::finish([&] {
    for (std::size_t block = 0; block < brick.blocks().size(); ++block) {
      imbrex::task("assemble").launch([&, block] {
        Assembly(problem, brick, brick.blocks()[block], system, system.rows[block]).run();
      });
    }
  });
  return system;
}

double value_in_the_middle(const Problem& problem, const Brick& brick,
                           const std::vector<double>& vector) {
  double mine = 0;
  for (std::size_t node = 0; node < element_nodes; ++node) {
    Point point{};
    double weight = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      // The point lies in the middle of an element, or on its first node.
      const int end = static_cast<int>(node >> d & 1);
      const bool between = problem.elements[d] % 2 != 0;
      point[d] = problem.elements[d] / 2 + end - brick.first()[d];
      weight *= between ? 0.5 : 1 - end;
    }
    if (weight == 0 || !contains(brick.owned(), point)) continue;
    mine += weight * vector[static_cast<std::size_t>(brick.at(point[0], point[1], point[2]))];
  }
  double sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

}  // namespace minife
