// SPDX-License-Identifier: BSD-3-Clause
// What waiting costs. `cpu`: rank 1 waits in a task for a message that rank 0 sends after half a
// second; the processor time that it takes meanwhile. `ring`: all ranks compute for 100 us and pass
// 1 KiB round a ring, again and again, with blocking MPI (raw_mpi.hpp) and with one task for each
// rank, by turns; with more ranks than cores, who waits must make room.
//
//   mpirun -n 2 waiting cpu <workers>
//   mpirun -n 4 waiting ring <workers>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "../measure.h"
#include "raw_mpi.hpp"

namespace {

struct Place {
  int rank = 0;
  int ranks = 1;
};

double cpu_ns() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return 1e9 * static_cast<double>(time.tv_sec) + 1e3 * static_cast<double>(time.tv_usec);
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

void measure_cpu(const Place& place, int workers) {
  require_equal("ranks (mpirun -n 2)", place.ranks, 2);
  int value = 0;
  double share = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  imbrex::task("wait").spawn([&] {
    if (place.rank == 0) {
      usleep(500'000);
      value = 42;
      MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
      return;
    }
    const double cpu = cpu_ns();
    const double start = now_ns();
    MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    share = (cpu_ns() - cpu) / (now_ns() - start);
  }).wait();
  require_equal("value", value, 42);
  if (place.rank == 1) {
    std::printf("{\"benchmark\": \"waiting_cpu\", \"system\": \"imbrex\", \"workers\": %d, "
                "\"cores\": %.3f}\n", workers, share);
  }
}

// A trial finds how many turns take 100 us; all later calls do as many.
long compute(long turns) {
  volatile long sum = 0;
  for (long i = 0; i < turns; ++i) sum = sum + i;
  return sum;
}
long turns_of_100_us() {
  long turns = 1000;
  double ns = 0;
  while (ns < 1e6) {
    turns *= 2;
    const double start = now_ns();
    compute(turns);
    ns = now_ns() - start;
  }
  return static_cast<long>(static_cast<double>(turns) * 1e5 / ns);
}

using Exchange = int(const void*, int, MPI_Datatype, int, int, void*, int, MPI_Datatype, int, int,
                     MPI_Comm, MPI_Status*);

void go_round(const Place& place, Exchange* exchange, long rounds, long turns) {
  const int next = (place.rank + 1) % place.ranks;
  const int previous = (place.rank + place.ranks - 1) % place.ranks;
  std::vector<char> out(1024, 'x');
  std::vector<char> in(1024);
  for (long round = 0; round < rounds; ++round) {
    compute(turns);
    exchange(out.data(), 1024, MPI_BYTE, next, 1, in.data(), 1024, MPI_BYTE, previous, 1,
             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  require_equal("a byte that came round", in.back(), 'x');
}

template <class F>
double timed(F run) {
  RAW_MPI(Barrier)(MPI_COMM_WORLD);
  const double start = now_ns();
  run();
  RAW_MPI(Barrier)(MPI_COMM_WORLD);
  return now_ns() - start;
}

void measure_ring(const Place& place, int workers) {
  constexpr int slices = 15;
  constexpr long rounds = 200;
  long turns = turns_of_100_us();
  MPI_Allreduce(MPI_IN_PLACE, &turns, 1, MPI_LONG, MPI_MIN, MPI_COMM_WORLD);
  std::vector<double> blocking;
  std::vector<double> tasks;
  for (int slice = 0; slice < slices; ++slice) {
    blocking.push_back(timed([&] { go_round(place, RAW_MPI(Sendrecv), rounds, turns); }));
    tasks.push_back(timed([&] {
      imbrex::task("ring").spawn([&] { go_round(place, &MPI_Sendrecv, rounds, turns); }).wait();
    }));
  }
  if (place.rank != 0) return;
  const auto print = [&](const char* system, std::vector<double>& ns) {
    std::sort(ns.begin(), ns.end());
    std::printf("{\"benchmark\": \"waiting_ring_%d\", \"system\": \"%s\", \"workers\": %d, "
                "\"ns\": %.0f, \"least_ns\": %.0f, \"operations\": %ld}\n",
                place.ranks, system, workers, ns[slices / 2] / rounds, ns[0] / rounds, rounds);
  };
  print("blocking", blocking);
  print("imbrex", tasks);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[1] : "";
  const int workers = argc == 3 ? std::atoi(argv[2]) : 0;
  if ((what != "cpu" && what != "ring") || workers < 1) {
    std::fprintf(stderr, "usage: %s cpu|ring <workers>\n", argv[0]);
    return 2;
  }
  setenv("IMBREX_WORKERS", std::to_string(workers).c_str(), 1);
  MPI_Init(&argc, &argv);
  Place place;
  MPI_Comm_rank(MPI_COMM_WORLD, &place.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &place.ranks);
  if (what == "cpu") {
    measure_cpu(place, workers);
  } else {
    measure_ring(place, workers);
  }
  MPI_Finalize();
}
