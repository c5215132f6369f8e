// SPDX-License-Identifier: BSD-3-Clause
// The multithreaded tests of Thakur and Gropp (Parallel Computing 35, 2009) as the HCMPI paper uses
// them: several threads, or tasks, of one rank exchange messages with as many of another. This
// header is shared by threads.cpp, tasks.cpp and hcmpi.cpp, and knows no runtime. Blocking MPI
// calls only.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../measure.h"

namespace messages {

struct Test {
  std::string name;
  int bytes;
  long batch;      // messages of each pair of threads between two looks at the clock
  bool answered;   // each message, else only the last of a batch
};

// The list of the paper: bandwidth of 8 MiB, rate of empty messages, latency of 0 to 1,024 bytes.
inline std::vector<Test> all_tests() {
  std::vector<Test> tests = {{"bandwidth", 8 << 20, 20, false}, {"rate", 0, 1000, false}};
  for (const int bytes : {0, 8, 64, 256, 1024}) {
    tests.push_back({"latency_" + std::to_string(bytes), bytes, 100, true});
  }
  return tests;
}

// The calls; receive() returns how many bytes have come.
struct OfMpi {
  static void send(const char* buffer, const int bytes, const int peer, const int tag) {
    MPI_Send(buffer, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
  }
  static int receive(char* buffer, const int bytes, const int peer, const int tag) {
    MPI_Status status;
    MPI_Recv(buffer, bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &status);
    int count = -1;
    MPI_Get_count(&status, MPI_BYTE, &count);
    return count;
  }
};

// Exchanges the messages of thread or task number `index` of `rank` until `end_ns`. All pairs go on
// for an equal time: a thread that is done early would leave its processor to the others, and they
// would not be measured beside it.
template <class Calls>
long exchange(const Test& test, double end_ns, int rank, int index, char* buffer) {
  const int peer = 1 - rank;
  const auto send = [&](int bytes) { Calls::send(buffer, bytes, peer, index); };
  const auto receive = [&](int bytes) {
    require_equal("bytes received", Calls::receive(buffer, bytes, peer, index), bytes);
  };
  long messages = 0;
  for (char goes_on = 1; goes_on != 0;) {
    for (long message = 0; message < test.batch; ++message) {
      const bool answer = test.answered || message + 1 == test.batch;
      if (rank == 0) {
        send(test.bytes);
        if (answer) receive(test.answered ? test.bytes : 0);
      } else {
        receive(test.bytes);
        if (answer) send(test.answered ? test.bytes : 0);
      }
    }
    messages += test.batch;
    buffer[0] = static_cast<char>(now_ns() < end_ns);
    rank == 0 ? send(1) : receive(1);
    goes_on = buffer[0];
  }
  return messages;
}

struct Measured {
  double ns;  // per message
  long messages;
};

// `together(body)` calls body(0) to body(count - 1), each in a thread or task of its own, and waits
// for all.
template <class Calls, class Together>
Measured measure(const Test& test, double duration_ns, int count, Together together) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<std::vector<char>> buffers(static_cast<std::size_t>(count));
  for (auto& buffer : buffers) buffer.assign(static_cast<std::size_t>(test.bytes) + 1, 'x');
  std::atomic<long> messages{0};
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = now_ns();
  together([&](int index) {
    char* const buffer = buffers[static_cast<std::size_t>(index)].data();
    messages += exchange<Calls>(test, start + duration_ns, rank, index, buffer);
  });
  const double ns = now_ns() - start;
  MPI_Barrier(MPI_COMM_WORLD);
  // Each pair has its own latency; bandwidth and rate are those of all together.
  const double each = ns / static_cast<double>(messages);
  return {test.answered ? each * count / 2 : each, messages};
}

// main() after MPI_Init: `count` threads or tasks in each of two ranks. Prints one line for each
// test.
template <class Calls = OfMpi, class Together>
void run(const char* system, int count, Together together) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  require_equal("ranks (mpirun -n 2)", ranks, 2);
  for (const Test& test : all_tests()) {
    measure<Calls>(test, 1e7, count, together);  // memory is touched, threads are awake
    const Measured found = measure<Calls>(test, 2.5e8, count, together);
    if (rank != 0) continue;
    std::printf("{\"benchmark\": \"message_%s\", \"system\": \"%s\", \"workers\": %d, "
                "\"ns\": %.3f, \"operations\": %ld}\n",
                test.name.c_str(), system, count, found.ns, found.messages);
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
