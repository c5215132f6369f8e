// SPDX-License-Identifier: BSD-3-Clause
// One hexahedron with eight nodes and trilinear shape functions: its matrix and its load for steady
// conduction, by Gauss quadrature in 2 x 2 x 2 points. Knows no mesh.
#pragma once

#include <array>

namespace minife {

// Node i stands at (i & 1, i >> 1 & 1, i >> 2) of the reference cube, which is mapped to `nodes`.
inline constexpr int element_nodes = 8;
using ElementNodes = std::array<std::array<double, 3>, element_nodes>;
using ElementVector = std::array<double, element_nodes>;
using ElementMatrix = std::array<ElementVector, element_nodes>;

struct Element {
  ElementMatrix matrix;  // integrals of grad(i) . grad(j); the conductivity is 1
  ElementVector load;    // integrals of i, for a source of 1
};

// REQUIRES: the map from the reference cube keeps its orientation.
[[nodiscard]] Element integrate(const ElementNodes& nodes) noexcept;

}  // namespace minife
