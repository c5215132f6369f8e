// SPDX-License-Identifier: BSD-3-Clause
#include "picture.hpp"

#include <png.h>

#include <cstdint>

namespace fft {
namespace {

constexpr std::int64_t pixels_max = std::int64_t{1} << 30;

// libpng's own description of a file, freed at the end.
struct Image : png_image {
  Image() : png_image{} { version = PNG_IMAGE_VERSION; }
  ~Image() { png_image_free(this); }
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  [[noreturn]] void fail(const std::string& path) const {
    throw PictureError(path + ": " + message);
  }
};

}  // namespace

Picture read_picture(const std::string& path) {
  Image image;
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0) image.fail(path);
  if (std::int64_t{image.width} * image.height > pixels_max) {
    throw PictureError(path + ": has more than 2^30 pixels");
  }
  image.format = PNG_FORMAT_GRAY;
  Picture picture{static_cast<int>(image.width), static_cast<int>(image.height), {}};
  picture.pixels.resize(static_cast<std::size_t>(image.width) * image.height);
  const png_color black{};
  if (png_image_finish_read(&image, &black, picture.pixels.data(), 0, nullptr) == 0) {
    image.fail(path);
  }
  return picture;
}

void write_picture(const std::string& path, const Picture& picture) {
  Image image;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = PNG_FORMAT_GRAY;
  if (png_image_write_to_file(&image, path.c_str(), 0, picture.pixels.data(), 0, nullptr) == 0) {
    image.fail(path);
  }
}

}  // namespace fft
