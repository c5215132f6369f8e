// SPDX-License-Identifier: BSD-3-Clause
// Measures the arrivals of long messages that one rank sends to another all at once: for each the
// milliseconds after the earliest possible arrival. With IMBREX_SENDS=off they arrive together,
// otherwise one after the other.
//
//   tools/netlab --per-rank --rate 100mbit -- mpirun -n 2 spread [messages [bytes [rounds]]]
#include <imbrex/mpi.hpp>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

// Milliseconds from the barrier to each arrival, in order.
std::vector<double> measure(const int rank, const int messages, const int bytes) {
  const auto count = static_cast<std::size_t>(messages);
  std::vector<char> buffer(count * static_cast<std::size_t>(bytes));
  std::vector<MPI_Request> requests(count);
  std::vector<double> arrivals;
  const auto part = [&](const int i) {
    return buffer.data() + static_cast<std::ptrdiff_t>(i) * bytes;
  };
  for (int i = 0; rank == 1 && i < messages; ++i) {
    MPI_Irecv(part(i), bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, requests.data() + i);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; rank == 0 && i < messages; ++i) {
    MPI_Isend(part(i), bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD, requests.data() + i);
  }
  for (int i = 0; i < messages && rank < 2; ++i) {
    int which = 0;
    MPI_Waitany(messages, requests.data(), &which, MPI_STATUS_IGNORE);
    arrivals.push_back((MPI_Wtime() - begin) * 1e3);
  }
  return arrivals;
}

int number(const int argc, char** argv, const int place, const int standard) {
  return argc > place ? std::max(1, std::atoi(argv[place])) : standard;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int messages = number(argc, argv, 1, 16);
  const int bytes = number(argc, argv, 2, 1 << 20);
  const int rounds = number(argc, argv, 3, 3);
  for (int round = 0; round < rounds && ranks >= 2; ++round) {
    const std::vector<double> arrivals = measure(rank, messages, bytes);
    if (rank > 1) continue;
    std::printf("%d messages of %d bytes, %s, ms:", messages, bytes, rank == 0 ? "sent" : "here");
    for (const double arrival : arrivals) std::printf(" %.0f", arrival);
    std::printf("\n");
    std::fflush(stdout);
  }
  MPI_Finalize();
  return ranks >= 2 ? 0 : 1;
}
