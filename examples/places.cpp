// SPDX-License-Identifier: BSD-3-Clause
// Blocks that stay where they are computed: the tasks of one place write a block first, so its
// memory lies near to that place's workers, and the same place's tasks compute it later.
#include <imbrex/imbrex.hpp>

#include <cstdio>
#include <memory>
#include <vector>

constexpr std::size_t block_size = 100'000;
constexpr int steps = 5;

// Memory that no thread has touched yet: the system places each page where it is first written.
struct Block {
  std::unique_ptr<double[]> values{new double[block_size]};
  double sum = 0;
};

int main() {
  const int places = imbrex::place_count();
  std::vector<Block> blocks(static_cast<std::size_t>(4 * places));
  for (int i = 0; i < places; ++i) {
    const imbrex::Place here = imbrex::place(i);
    std::printf("place %d: %s, %d workers\n", i, here.name().c_str(), here.worker_count());
  }
  const auto place_of = [places](const std::size_t block) {
    return imbrex::place(static_cast<int>(block) % places);
  };

  imbrex::finish([&] {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      imbrex::task("first touch").at(place_of(b)).out(blocks[b]).launch([&block = blocks[b]] {
        for (std::size_t i = 0; i < block_size; ++i) block.values[i] = 1;
      });
    }
    for (int step = 0; step < steps; ++step) {
      for (std::size_t b = 0; b < blocks.size(); ++b) {
        imbrex::task("compute").at(place_of(b)).inout(blocks[b]).launch([&block = blocks[b]] {
          for (std::size_t i = 0; i < block_size; ++i) block.sum += block.values[i];
        });
      }
    }
  });

  double sum = 0;
  for (const Block& block : blocks) sum += block.sum;
  const double expected = static_cast<double>(blocks.size() * block_size * steps);
  std::printf("%zu blocks at %d places: sum %.0f\n", blocks.size(), places, sum);
  return sum == expected ? 0 : 1;
}
