// SPDX-License-Identifier: BSD-3-Clause
#include "spectrum.hpp"

#include <algorithm>
#include <cmath>

#include "../tiled/team.hpp"
#include "picture.hpp"

namespace fft {
namespace {

double brightness(const Complex& value) noexcept { return std::log1p(std::abs(value)); }

}  // namespace

void write_spectrum(const std::string& path, const Layout& layout, const std::int64_t n,
                    const Complex* const spectrum) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double most = 0;
  for (std::int64_t i = 0; i < layout.points(); ++i) {
    most = std::max(most, brightness(spectrum[i]));
  }
  MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  std::vector<std::uint8_t> mine(static_cast<std::size_t>(layout.points()));
  for (std::size_t i = 0; i < mine.size(); ++i) {
    mine[i] = most > 0 ? static_cast<std::uint8_t>(255 * brightness(spectrum[i]) / most) : 0;
  }
  std::vector<std::uint8_t> columns;  // [x][y], of all ranks
  if (rank == 0) columns.resize(static_cast<std::size_t>(n * n));
  const auto count = static_cast<int>(mine.size());
  MPI_Gather(mine.data(), count, MPI_UINT8_T, columns.data(), count, MPI_UINT8_T, 0,
             MPI_COMM_WORLD);
  std::string wrong;
  if (rank == 0) {
    const auto side = static_cast<int>(n);
    Picture picture{side, side, std::vector<std::uint8_t>(columns.size())};
    for (std::int64_t x = 0; x < n; ++x) {
      for (std::int64_t y = 0; y < n; ++y) {
        picture.pixels[static_cast<std::size_t>((y + n / 2) % n * n + (x + n / 2) % n)] =
            columns[static_cast<std::size_t>(x * n + y)];
      }
    }
    try {
      write_picture(path, picture);
    } catch (const PictureError& error) {
      wrong = std::string("--spectrum ") + error.what();
    }
  }
  tiled::fail_together(MPI_COMM_WORLD, wrong);
}

}  // namespace fft
