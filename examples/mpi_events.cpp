// SPDX-License-Identifier: BSD-3-Clause
// Events of a collective, without tasks: a thread that knows nothing of imbrex works on each block
// of an MPI_Alltoall as soon as the block arrives. Run with two ranks, IMBREX_WORKERS=1 and
// IMBREX_PARTIAL=on. Without IMBREX_PARTIAL MPI's own call runs, and all blocks arrive together.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "imbrex/events.h"

constexpr int n = 10'000;  // numbers of a block
std::mutex mutex;
std::condition_variable changed;
std::deque<const double*> blocks;  // under the mutex; null: no more come
double sum = 0;                    // of the thread

void use(const double* block) {
  const std::lock_guard guard(mutex);
  blocks.push_back(block);
  changed.notify_one();
}

const double* next_block() {
  std::unique_lock guard(mutex);
  changed.wait(guard, [] { return !blocks.empty(); });
  const double* const block = blocks.front();
  blocks.pop_front();
  return block;
}

void work() {
  while (const double* const block = next_block()) {
    for (int i = 0; i < n; ++i) sum += block[i];
  }
}

// The handler only says what there is to do. Several threads may be in it.
std::atomic<int> told{0};
void block_is_here(const imbrex_mpi_event* event, void*) {
  if (event->kind != IMBREX_COLLECTIVE_PARTIAL_INCOMING || event->code != MPI_SUCCESS) return;
  ++told;
  use(static_cast<const double*>(event->address));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::vector<double> out(static_cast<std::size_t>(ranks) * n, rank);
  std::vector<double> in(out.size(), -1);

  std::thread worker(work);
  imbrex_mpi_event_set_handler(block_is_here, nullptr);
  imbrex_mpi_events_begin(MPI_COMM_WORLD);
  MPI_Alltoall(out.data(), n, MPI_DOUBLE, in.data(), n, MPI_DOUBLE, MPI_COMM_WORLD);
  // When the call returns, all its blocks have been told of, or none.
  for (int from = 0; told == 0 && from < ranks; ++from) use(&in[from * n]);
  use(nullptr);
  worker.join();
  imbrex_mpi_events_end(MPI_COMM_WORLD);
  imbrex_mpi_event_set_handler(nullptr, nullptr);

  MPI_Finalize();
  const bool right = sum == 0.5 * n * ranks * (ranks - 1);
  std::printf("rank %d: %d blocks by events: %s\n", rank, told.load(), right ? "right" : "WRONG");
  return right ? 0 : 1;
}
