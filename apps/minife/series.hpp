// SPDX-License-Identifier: BSD-3-Clause
// Steady conduction in the unit cube by its Fourier series. Knows no mesh.
#pragma once

namespace minife {

// The temperature where the face x = 1 is held at 1 and the other five at 0, without a source; the
// sum of terms * terms products of sines. In a corner of the hot face it converges slowly.
[[nodiscard]] double temperature(double x, double y, double z, int terms) noexcept;

}  // namespace minife
