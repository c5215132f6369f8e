// SPDX-License-Identifier: BSD-3-Clause
// A loop over data with owners that is planned once: each rank has a part of a ring of metal, and
// reads the ends of its neighbours' parts. These travel in each iteration without a new insertion.
#include "imbrex/data.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

#include "imbrex/imbrex.hpp"

using Values = imbrex::Data<double>;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool right = true;
  {
    imbrex::Space space(MPI_COMM_WORLD);
    std::vector<Values> parts, ends;  // the ends of a part: its first and last element
    for (int rank = 0; rank < space.size(); ++rank) {
      parts.push_back(space.data<double>(rank, 100));
      ends.push_back(space.data<double>(rank, 2));
    }
    const auto heat = space.data<double>(0, 1);
    space.iterate(1000, [&](std::int64_t) {
      for (int rank = 0; rank < space.size(); ++rank) {
        const auto neighbour = [&](const int step) {
          return ends[static_cast<std::size_t>((rank + step) % space.size())];
        };
        const auto& part = parts[static_cast<std::size_t>(rank)];
        // Both neighbours have written their ends in the iteration before.
        space.task("heat").in(neighbour(space.size() - 1), neighbour(1)).inout(part).launch(
            [rank](const std::int64_t i, imbrex::View<const double> left,
                   imbrex::View<const double> after, imbrex::View<double> x) {
              double before = left[1];
              for (std::size_t k = 0; k < x.size(); ++k) {
                const double next = k + 1 < x.size() ? x[k + 1] : after[0];
                const double now = x[k];
                x[k] += (before - 2 * now + next) / 4;
                before = now;
              }
              if (rank == 0 && i < 100) x[0] += 1;  // a flame, in the first 100 iterations
            });
      }
      for (std::size_t rank = 0; rank < parts.size(); ++rank) {
        space.task("ends").in(parts[rank]).out(ends[rank]).launch(
            [](imbrex::View<const double> x, imbrex::View<double> to) {
              to[0] = x[0];
              to[1] = x[x.size() - 1];
            });
      }
    });
    for (int rank = 0; rank < space.size(); ++rank) {
      space.task("heat of all").in(parts[static_cast<std::size_t>(rank)])
          .reduce(heat, imbrex::op::sum).on(rank).launch(
              [](imbrex::View<const double> x, imbrex::View<double> sum) {
                for (const double element : x) sum[0] += element;
              });
    }
    space.flush(heat);
    space.finish();
    if (space.rank() == 0) {
      right = std::abs(heat.view()[0] - 100) < 1e-6;
      std::printf("%.3f of 100 units of heat, from %d insertions\n", heat.view()[0],
                  static_cast<int>(space.counters().inserted));
    }
  }
  MPI_Finalize();
  return right ? 0 : 1;
}
