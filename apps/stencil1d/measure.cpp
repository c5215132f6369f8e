// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "../overlap/exchange.hpp"

namespace stencil1d {

namespace {
constexpr int pieces = 50;
}

std::string measure_progress(MPI_Comm comm, const double computation_us, const int rounds) {
  using overlap::Way;
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  if (ranks % 2 != 0) {
    throw std::invalid_argument(fmt::format(
        "--measure-progress is for pairs of ranks, and there are {}: take an even number", ranks));
  }
  MPI_Comm pair = MPI_COMM_NULL;
  MPI_Comm_split(comm, rank / 2, rank, &pair);
  const overlap::Work work;
  std::string table = fmt::format("{:>10} {:>10} {:>10} {:>10} {:>10}   us; computation {:.0f}\n",
                                  "bytes", "IW", "ICW", "ITCW", "tasks", computation_us);
  for (int bytes = 8; bytes <= 4 << 20; bytes *= 8) {
    const overlap::Setting setting{pair, bytes, computation_us, computation_us / pieces};
    table += fmt::format("{:>10}", bytes);
    for (const Way way : {Way::iw, Way::icw, Way::tests, Way::tasks}) {
      double sum = 0;
      (void)overlap::measure(way, setting, work);  // warms up
      for (int round = 0; round < rounds; ++round) sum += overlap::measure(way, setting, work);
      table += fmt::format(" {:>10.1f}", sum / rounds);
    }
    table += '\n';
  }
  MPI_Comm_free(&pair);
  return rank == 0 ? table : "";
}

}  // namespace stencil1d
