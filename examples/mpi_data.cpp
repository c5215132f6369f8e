// SPDX-License-Identifier: BSD-3-Clause
// Data with owners: every rank inserts the same tasks, and no rank sends anything itself. A vector
// in parts, one on each rank, is scaled by the largest of its elements.
#include "imbrex/data.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "imbrex/imbrex.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool right = true;
  {
    imbrex::Space space(MPI_COMM_WORLD);
    std::vector<imbrex::Data<double>> parts;
    for (int rank = 0; rank < space.size(); ++rank) {
      parts.push_back(space.data<double>(rank, 1000));
    }
    const auto largest = space.data<double>(0, 1);
    for (int rank = 0; rank < space.size(); ++rank) {
      const auto& part = parts[static_cast<std::size_t>(rank)];
      space.task("fill").out(part).launch([rank](imbrex::View<double> x) {
        std::fill(x.begin(), x.end(), 1.0 + rank);
      });
      // Each rank adds to elements of its own, which are combined before the first that reads them.
      space.task("largest").in(part).reduce(largest, imbrex::op::max).on(rank).launch(
          [](imbrex::View<const double> x, imbrex::View<double> max) {
            max[0] = std::max(max[0], *std::max_element(x.begin(), x.end()));
          });
    }
    for (const auto& part : parts) {  // `largest` goes to all of them by one broadcast
      space.task("scale").in(largest).inout(part).launch(
          [](imbrex::View<const double> max, imbrex::View<double> x) {
            for (double& element : x) element /= max[0];
          });
    }
    space.finish();
    const auto mine = parts[static_cast<std::size_t>(space.rank())].view();
    right = mine[0] == (1.0 + space.rank()) / space.size();
    std::printf("rank %d: elements of %.2f\n", space.rank(), mine[0]);
  }
  MPI_Finalize();
  return right ? 0 : 1;
}
