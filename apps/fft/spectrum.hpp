// SPDX-License-Identifier: BSD-3-Clause
// The picture of a spectrum of a field in two dimensions.
#pragma once

#include <string>

#include "stages.hpp"

namespace fft {

// log(1 + |X|) over its largest, with frequency 0 in the middle, as n x n shades of grey.
// Collective; the first rank writes. Throws tiled::InputError on all ranks if it cannot.
// REQUIRES: `layout` is [x][y], with an equal share of x on each rank; n is 32768 at most.
void write_spectrum(const std::string& path, const Layout& layout, std::int64_t n,
                    const Complex* spectrum);

}  // namespace fft
