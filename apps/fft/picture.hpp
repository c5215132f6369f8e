// SPDX-License-Identifier: BSD-3-Clause
// Pictures in shades of grey, as PNG files. Knows nothing of MPI or transforms.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace fft {

// Says which file, and why it cannot be read or written.
class PictureError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;  // by rows, 0 is black

  // 0 outside.
  [[nodiscard]] double at(std::int64_t x, std::int64_t y) const noexcept {
    if (x >= width || y >= height) return 0;
    return pixels[static_cast<std::size_t>(y * width + x)];
  }
};

// Colours become grey, as libpng does it; transparency lies over black. Both throw PictureError.
[[nodiscard]] Picture read_picture(const std::string& path);
void write_picture(const std::string& path, const Picture& picture);

}  // namespace fft
