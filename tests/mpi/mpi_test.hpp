// SPDX-License-Identifier: BSD-3-Clause
// What the MPI tests share. Each program is one gtest binary that mpirun starts on 1, 2 and 4
// ranks; all ranks run the same tests in the same order, so a test may use every rank.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"

namespace imbrex::test {

// A communicator of the test's own, and this rank's place in it.
struct Ring {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;

  Ring() {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
  }
  ~Ring() { MPI_Comm_free(&comm); }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  [[nodiscard]] int next() const { return (rank + 1) % size; }
  [[nodiscard]] int previous() const { return (rank + size - 1) % size; }
};

// A task that is always ready while it lives: then no thread polls in place, and waiting tasks
// suspend.
class Bustle {
 public:
  Bustle() : done_(task("bustle").spawn([this] {
    while (!stop_.load()) yield();
  })) {}
  ~Bustle() {
    stop_.store(true);
    done_.wait();
  }
  Bustle(const Bustle&) = delete;
  Bustle& operator=(const Bustle&) = delete;

 private:
  std::atomic<bool> stop_{false};
  Future<void> done_;
};

inline void sleep_ms(int duration) {
  std::this_thread::sleep_for(std::chrono::milliseconds(duration));
}

// Runs `body` on a thread that imbrex does not know, and lets tasks run meanwhile.
template <class F>
void on_unknown_thread(F&& body) {
  std::atomic<bool> done{false};
  std::thread thread([&] {
    body();
    done.store(true);
  });
  while (!done.load()) yield();
  thread.join();
}

// Returns the text of the exception that `body` throws; empty if it throws none.
template <class F>
[[nodiscard]] std::string thrown_by(F&& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

#define EXPECT_SAYS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << "it says: " << (text)

}  // namespace imbrex::test
