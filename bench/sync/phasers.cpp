// SPDX-License-Identifier: BSD-3-Clause
// The same of imbrex: a task for each worker of each rank, on one phaser.
//
//   mpirun -n N sync_phasers <name to report>
#include "epcc.h"
#include "imbrex/accumulator.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi_phaser.hpp"
#include "imbrex/runtime.hpp"

namespace {

int workers = 1;

// Runs `part(i)` by as many tasks as there are workers, on one phaser; how long that took from the
// end of their first phase on, in seconds.
template <class Make>
double timed(const imbrex::Fusion fusion, const Make make) {
  double begin = 0;
  imbrex::finish([&] {
    const imbrex::MpiPhaser step(MPI_COMM_WORLD, imbrex::signal_wait, {.fusion = fusion});
    const auto part = make(step);
    for (int i = 0; i < workers; ++i) {
      imbrex::task("part").phased(step).launch([&begin, i, part] {
        imbrex::Phaser::next_all();
        if (i == 0) begin = MPI_Wtime();
        part();
      });
    }
  });
  return MPI_Wtime() - begin;
}

double barrier(const imbrex::Fusion fusion, const int count) {
  return timed(fusion, [count](const imbrex::Phaser&) {
    return [count] {
      for (int i = 0; i < count; ++i) {
        delay();
        imbrex::Phaser::next_all();
      }
    };
  });
}
double strict(const int count) { return barrier(imbrex::Fusion::strict, count); }
double fuzzy(const int count) { return barrier(imbrex::Fusion::fuzzy, count); }

double reduction(const int count) {
  return timed(imbrex::Fusion::strict, [count](const imbrex::Phaser& step) {
    const imbrex::Accumulator<int> sum(step, imbrex::op::sum);
    return [count, sum] {
      for (int i = 0; i < count; ++i) {
        delay();
        sum.put(1);
        imbrex::Phaser::next_all();
        (void)sum.get();
      }
    };
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: sync_phasers <name to report>\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  workers = imbrex::worker_count();
  epcc_measure("strict", argv[1], workers, strict);
  epcc_measure("fuzzy", argv[1], workers, fuzzy);
  epcc_measure("reduction", argv[1], workers, reduction);
  MPI_Finalize();
}
