// SPDX-License-Identifier: BSD-3-Clause
// Each rank asks all others to count the primes of a range, and adds up the results. A task on the
// other rank counts, and an exception of that task would arrive at the caller.
#include <imbrex/imbrex.hpp>
#include <imbrex/remote.hpp>

#include <cstdio>
#include <vector>

int primes(int first, int last) {
  int count = 0;
  for (int number = first < 2 ? 2 : first; number < last; ++number) {
    bool prime = true;
    for (int i = 2; i * i <= number && prime; ++i) prime = number % i != 0;
    count += prime ? 1 : 0;
  }
  return count;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  constexpr int numbers = 10'000, parts = 20;

  int sum = 0;
  std::vector<imbrex::Future<int>> counts;
  for (int part = 0; part < parts; ++part) {
    counts.push_back(imbrex::call(part % ranks, primes, part * (numbers / parts),
                                  (part + 1) * (numbers / parts)));
  }
  for (const auto& count : counts) sum += count.get();
  std::printf("rank %d: %d primes below %d\n", rank, sum, numbers);
  MPI_Finalize();
  return sum == 1229 ? 0 : 1;
}
