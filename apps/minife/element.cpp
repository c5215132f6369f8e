// SPDX-License-Identifier: BSD-3-Clause
#include "element.hpp"

#include <cmath>

namespace minife {
namespace {

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

// Value and slope, at `t`, of the two basis functions of the interval [-1, 1]; `end` is 0 or 1.
double value(int end, double t) noexcept { return end == 0 ? (1 - t) / 2 : (1 + t) / 2; }
double slope(int end) noexcept { return end == 0 ? -0.5 : 0.5; }

std::array<int, 3> ends(int node) noexcept { return {node & 1, node >> 1 & 1, node >> 2}; }

Vector cross(const Vector& a, const Vector& b) noexcept {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
double dot(const Vector& a, const Vector& b) noexcept {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

// The values of the eight shape functions at one point.
struct Shape {
  ElementVector values;
  std::array<Vector, element_nodes> slopes;  // in the reference cube
};

Shape shape_at(const Vector& point) noexcept {
  Shape shape{};
  for (std::size_t node = 0; node < element_nodes; ++node) {
    const auto end = ends(static_cast<int>(node));
    Vector along;
    for (std::size_t d = 0; d < 3; ++d) along[d] = value(end[d], point[d]);
    shape.values[node] = along[0] * along[1] * along[2];
    shape.slopes[node] = {slope(end[0]) * along[1] * along[2], along[0] * slope(end[1]) * along[2],
                          along[0] * along[1] * slope(end[2])};
  }
  return shape;
}

// Adds what one point of the quadrature, whose weight is 1, gives.
void add_point(const Shape& shape, const ElementNodes& nodes, Element& element) noexcept {
  Matrix jacobian{};  // row d: the derivatives of coordinate d
  for (std::size_t node = 0; node < element_nodes; ++node) {
    for (std::size_t d = 0; d < 3; ++d) {
      for (std::size_t e = 0; e < 3; ++e) {
        jacobian[d][e] += nodes[node][d] * shape.slopes[node][e];
      }
    }
  }
  // The rows of the inverse's transpose, times the determinant.
  const Matrix cofactors{cross(jacobian[1], jacobian[2]), cross(jacobian[2], jacobian[0]),
                         cross(jacobian[0], jacobian[1])};
  const double volume = dot(jacobian[0], cofactors[0]);
  std::array<Vector, element_nodes> gradients;
  for (std::size_t node = 0; node < element_nodes; ++node) {
    for (std::size_t d = 0; d < 3; ++d) {
      gradients[node][d] = dot(cofactors[d], shape.slopes[node]) / volume;
    }
  }
  for (std::size_t i = 0; i < element_nodes; ++i) {
    for (std::size_t j = 0; j < element_nodes; ++j) {
      element.matrix[i][j] += volume * dot(gradients[i], gradients[j]);
    }
    element.load[i] += volume * shape.values[i];
  }
}

}  // namespace

Element integrate(const ElementNodes& nodes) noexcept {
  // The points are those of every element, so their shapes are found once.
  static const std::array<Shape, element_nodes> shapes = [] {
    const double place = 1 / std::sqrt(3.0);
    std::array<Shape, element_nodes> found;
    for (int point = 0; point < element_nodes; ++point) {
      const auto end = ends(point);
      Vector at;
      for (std::size_t d = 0; d < 3; ++d) at[d] = end[d] == 0 ? -place : place;
      found[static_cast<std::size_t>(point)] = shape_at(at);
    }
    return found;
  }();
  Element element{};
  for (const Shape& shape : shapes) add_point(shape, nodes, element);
  return element;
}

}  // namespace minife
