// SPDX-License-Identifier: BSD-3-Clause
// A merge sort whose tasks name the parts of the array that they change, as ranges. Ranges of
// different levels overlap without being equal. A merge follows the two tasks whose parts it
// merges, and no level waits for a whole level below.
#include <imbrex/imbrex.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <vector>

namespace {

constexpr std::size_t count = 10000;
constexpr std::size_t block = 300;

void sort(std::vector<int>& numbers) {
  const auto part = [&numbers](const std::size_t from, const std::size_t length) {
    return imbrex::range(&numbers[from], std::min(length, count - from));
  };
  for (std::size_t from = 0; from < count; from += block) {
    imbrex::task("sort").inout(part(from, block)).launch([&numbers, from] {
      const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(from);
      std::sort(begin, begin + static_cast<std::ptrdiff_t>(std::min(block, count - from)));
    });
  }
  for (std::size_t half = block; half < count; half *= 2) {
    for (std::size_t from = 0; from + half < count; from += 2 * half) {
      imbrex::task("merge").inout(part(from, 2 * half)).launch([&numbers, from, half] {
        const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(from);
        const std::size_t length = std::min(2 * half, count - from);
        std::inplace_merge(begin, begin + static_cast<std::ptrdiff_t>(half),
                           begin + static_cast<std::ptrdiff_t>(length));
      });
    }
  }
}

}  // namespace

int main() {
  std::vector<int> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<int>(i * 7919 % count);
  bool sorted = false;
  imbrex::finish([&] {
    sort(numbers);
    imbrex::task("check").in(imbrex::range(numbers)).launch([&] {
      sorted = std::ranges::is_sorted(numbers);
    });
  });

  // An error in one part reaches only tasks whose ranges overlap it.
  auto broken = imbrex::task("load").out(imbrex::range(&numbers[100], 100)).spawn([] {
    throw std::runtime_error("no such part");
  });
  auto apart = imbrex::task("use").in(imbrex::range(&numbers[0], 100)).spawn([] {});
  auto overlaps = imbrex::task("use").in(imbrex::range(&numbers[150], 100)).spawn([] {});
  apart.get();
  bool refused = false;
  try {
    overlaps.get();
  } catch (const imbrex::DependencyFailed&) {
    refused = true;
  }
  std::printf("sorted: %d, refused: %d\n", sorted, refused);
  return sorted && refused ? 0 : 1;
}
