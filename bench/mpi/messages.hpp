// SPDX-License-Identifier: BSD-3-Clause
// The multithreaded tests of Thakur and Gropp (Parallel Computing 35, 2009) as the HCMPI paper uses
// them: several threads, or tasks, of one rank exchange messages with as many of another. What is
// the same for threads.cpp and tasks.cpp; knows no runtime. Blocking MPI calls only.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../measure.h"

namespace messages {

struct Test {
  std::string name;
  int bytes;
  long messages;   // of each pair of threads
  bool answered;   // each message, else only the last
};

// The list of the paper: bandwidth of 8 MiB, rate of empty messages, latency of 0 to 1,024 bytes.
inline std::vector<Test> all_tests() {
  std::vector<Test> tests = {{"bandwidth", 8 << 20, 20, false}, {"rate", 0, 20000, false}};
  for (const int bytes : {0, 8, 64, 256, 1024}) {
    tests.push_back({"latency_" + std::to_string(bytes), bytes, 1000, true});
  }
  return tests;
}

// What thread or task number `index` of `rank` does.
inline void exchange(const Test& test, long messages, int rank, int index, char* buffer) {
  const int peer = 1 - rank;
  const auto send = [&](int bytes) {
    MPI_Send(buffer, bytes, MPI_BYTE, peer, index, MPI_COMM_WORLD);
  };
  const auto receive = [&](int bytes) {
    MPI_Status status;
    MPI_Recv(buffer, bytes, MPI_BYTE, peer, index, MPI_COMM_WORLD, &status);
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    require_equal("bytes received", count, bytes);
  };
  for (long message = 0; message < messages; ++message) {
    const bool answer = test.answered || message + 1 == messages;
    if (rank == 0) {
      send(test.bytes);
      if (answer) receive(test.answered ? test.bytes : 0);
    } else {
      receive(test.bytes);
      if (answer) send(test.answered ? test.bytes : 0);
    }
  }
}

// Nanoseconds per message. `together(body)` calls body(0) to body(count - 1), each in a thread or
// task of its own, and waits for all.
template <class Together>
double measure(const Test& test, long messages, int count, Together together) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<std::vector<char>> buffers(static_cast<std::size_t>(count));
  for (auto& buffer : buffers) buffer.assign(static_cast<std::size_t>(test.bytes) + 1, 'x');
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now_ns();
  together([&](int index) {
    exchange(test, messages, rank, index, buffers[static_cast<std::size_t>(index)].data());
  });
  const double ns = now_ns() - start;
  MPI_Barrier(MPI_COMM_WORLD);
  // Each pair has its own latency; bandwidth and rate are those of all together.
  return test.answered ? ns / static_cast<double>(2 * messages)
                       : ns / static_cast<double>(messages * count);
}

// As many messages as take half a second, by a trial, and not more than the test has. The same on
// both ranks.
template <class Together>
long messages_that_fit(const Test& test, int count, Together together) {
  const long trial = test.messages / 20 + 1;
  const double ns = measure(test, trial, count, together) *
                    static_cast<double>(test.answered ? 2 : count);
  long fit = std::clamp(static_cast<long>(5e8 / ns), trial, test.messages);
  MPI_Bcast(&fit, 1, MPI_LONG, 0, MPI_COMM_WORLD);
  return fit;
}

// main() after MPI_Init: `count` threads or tasks in each of two ranks. Prints one line for each
// test.
template <class Together>
void run(const char* system, int count, Together together) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  require_equal("ranks (mpirun -n 2)", ranks, 2);
  for (const Test& test : all_tests()) {
    const long messages = messages_that_fit(test, count, together);
    const double ns = measure(test, messages, count, together);
    if (rank != 0) continue;
    std::printf("{\"benchmark\": \"message_%s\", \"system\": \"%s\", \"workers\": %d, "
                "\"ns\": %.3f, \"operations\": %ld}\n",
                test.name.c_str(), system, count, ns, messages * count);
    std::fflush(stdout);
  }
}

inline int count_from(int argc, char** argv) {
  const int count = argc == 2 ? std::atoi(argv[1]) : 0;
  if (count >= 1) return count;
  std::fprintf(stderr, "usage: mpirun -n 2 %s <threads or tasks of each rank>\n", argv[0]);
  std::exit(2);
}

}  // namespace messages
