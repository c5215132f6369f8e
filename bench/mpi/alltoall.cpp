// SPDX-License-Identifier: BSD-3-Clause
// MPI_Alltoall alone: the library's, and block by block under IMBREX_PARTIAL=on, by turns in the
// same run: from a barrier until it is over on the last rank. A line for each size of a block:
// medians in ms, the median of the ratios of neighbours in time, and how many of the calls on rank
// 0 went block by block (none must, below 1 KiB). A rank for each link: tools/netlab --per-rank.
//
//   mpirun -n 4 alltoall_alone [rounds] [bytes of a block ...]
#include <imbrex/mpi.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "../measure.h"
#include "raw_mpi.hpp"

namespace {

struct Buffers {
  std::vector<char> out;
  std::vector<char> in;
  int bytes = 0;  // of a block
};

void by_library(Buffers& it) {
  RAW_MPI(Alltoall)(it.out.data(), it.bytes, MPI_BYTE, it.in.data(), it.bytes, MPI_BYTE,
                    MPI_COMM_WORLD);
}
void by_imbrex(Buffers& it) {
  MPI_Alltoall(it.out.data(), it.bytes, MPI_BYTE, it.in.data(), it.bytes, MPI_BYTE,
               MPI_COMM_WORLD);
}

// On all ranks: of the slowest.
double measure_ns(void (*const exchange)(Buffers&), Buffers& buffers) {
  RAW_MPI(Barrier)(MPI_COMM_WORLD);
  const double start = now_ns();
  exchange(buffers);
  const double own = now_ns() - start;
  double slowest = 0;
  RAW_MPI(Allreduce)(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure_size(const int bytes, const int rounds) {
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::size_t all = static_cast<std::size_t>(bytes) * static_cast<std::size_t>(ranks);
  Buffers buffers{std::vector<char>(all, static_cast<char>(rank)), std::vector<char>(all), bytes};
  by_library(buffers);  // not counted: connections, and the duplicate of the communicator
  by_imbrex(buffers);
  const unsigned long long before = imbrex_decomposed_calls();
  std::vector<double> library;
  std::vector<double> ours;
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    library.push_back(measure_ns(by_library, buffers));
    ours.push_back(measure_ns(by_imbrex, buffers));
    ratios.push_back(ours.back() / library.back());
  }
  for (int from = 0; from < ranks; ++from) {
    const auto first = static_cast<std::size_t>(from) * static_cast<std::size_t>(bytes);
    require_equal("what arrived from a rank", buffers.in[first], from);
  }
  if (rank != 0) return;
  std::printf("{\"benchmark\": \"alltoall_alone\", \"ranks\": %d, \"bytes\": %d, \"rounds\": %d, "
              "\"library_ms\": %.4g, \"imbrex_ms\": %.4g, \"ratio\": %.4g, \"decomposed\": %llu}\n",
              ranks, bytes, rounds, median(library) * 1e-6, median(ours) * 1e-6, median(ratios),
              imbrex_decomposed_calls() - before);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  setenv("IMBREX_WORKERS", "1", 0);
  setenv("IMBREX_PARTIAL", "on", 0);
  MPI_Init(&argc, &argv);
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 21;
  if (rounds < 1) fail("rounds", rounds, 1);
  std::vector<int> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {64, 1023, 1024, 16384, 262144, 2097152};
  for (const int bytes : sizes) measure_size(bytes, rounds);
  MPI_Finalize();
}
