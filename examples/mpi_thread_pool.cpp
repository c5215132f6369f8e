// SPDX-License-Identifier: BSD-3-Clause
// MPI continuations without tasks: a plain pool of threads, which knows nothing of imbrex, works on
// blocks as they arrive, and otherwise makes progress. Run with two ranks and IMBREX_WORKERS=1.
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "imbrex/continue.h"

constexpr int blocks = 64, block_size = 1024;
double data[blocks][block_size];
std::atomic<int> blocks_summed;
std::atomic<double> sum;
std::mutex mutex;
std::vector<double*> ready;  // under the mutex

// The continuation only says what there is to do.
void block_arrived(int, int, const MPI_Status*, void* block) {
  const std::lock_guard guard(mutex);
  ready.push_back(static_cast<double*>(block));
}

double* take_block() {
  const std::lock_guard guard(mutex);
  double* const block = ready.empty() ? nullptr : ready.back();
  if (block != nullptr) ready.pop_back();
  return block;
}

void work() {
  while (blocks_summed < blocks) {
    if (const double* const block = take_block()) {
      for (int i = 0; i < block_size; ++i) sum += block[i];
      ++blocks_summed;
    } else {
      imbrex_progress();
    }
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::vector<double> ones(block_size, 1.0);
  for (int i = 0; i < blocks; ++i) {
    MPI_Request request;
    MPI_Irecv(data[i], block_size, MPI_DOUBLE, 1 - rank, i, MPI_COMM_WORLD, &request);
    imbrex_continue(&request, block_arrived, data[i]);
  }
  std::thread pool[] = {std::thread(work), std::thread(work)};
  for (int i = 0; i < blocks; ++i) {
    MPI_Send(ones.data(), block_size, MPI_DOUBLE, 1 - rank, i, MPI_COMM_WORLD);
  }
  for (std::thread& thread : pool) thread.join();
  MPI_Finalize();
  std::printf("rank %d: sum %.0f\n", rank, sum.load());
  return sum == blocks * block_size ? 0 : 1;
}
