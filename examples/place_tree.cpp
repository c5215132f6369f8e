// SPDX-License-Identifier: BSD-3-Clause
// A sum over the tree of places: each place hands its part of the numbers to its children, by how
// many workers they have, and a place without children computes its part. Try
//   IMBREX_PLACES=tree HWLOC_SYNTHETIC="pack:2 l3:2 core:2 pu:1" IMBREX_WORKERS=8 ./place_tree
#include <imbrex/imbrex.hpp>

#include <cstddef>
#include <cstdio>
#include <numeric>
#include <span>
#include <string>
#include <vector>

using Numbers = std::span<const double>;

std::string name_of(const imbrex::Place& place) {
  return std::string(static_cast<std::size_t>(2 * place.level()), ' ') + place.name();
}

// Runs at `here`. Waits for its tasks, so it is called in a task.
double sum(const imbrex::Place here, const Numbers numbers) {
  std::vector<imbrex::Place> children;
  int workers = 0;
  for (const imbrex::Place& child : here.children()) {
    if (child.worker_count() == 0) continue;  // a device, in a file of places
    children.push_back(child);
    workers += child.worker_count();
  }
  if (children.empty()) {
    std::printf("%s: worker %d adds %zu numbers\n", name_of(here).c_str(),
                imbrex::current_worker(), numbers.size());
    return std::accumulate(numbers.begin(), numbers.end(), 0.0);
  }
  std::printf("%s: hands out %zu numbers\n", name_of(here).c_str(), numbers.size());
  std::vector<imbrex::Future<double>> parts;
  std::size_t begin = 0;
  int given = 0;
  for (const imbrex::Place& child : children) {
    given += child.worker_count();
    const std::size_t end =
        numbers.size() * static_cast<std::size_t>(given) / static_cast<std::size_t>(workers);
    const Numbers part = numbers.subspan(begin, end - begin);
    const auto body = [child, part] { return sum(child, part); };
    parts.push_back(imbrex::task("sum").at(child).spawn(body));
    begin = end;
  }
  double all = 0;
  for (const auto& part : parts) all += part.get();
  return all;
}

int main() {
  const std::vector<double> numbers(1'000'000, 1.0);
  const double all = sum(imbrex::Place(), numbers);
  std::printf("the sum is %.0f\n", all);
  return all == 1'000'000 ? 0 : 1;
}
