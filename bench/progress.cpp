// SPDX-License-Identifier: BSD-3-Clause
// What each mode of progress (IMBREX_PROGRESS) is worth, between two ranks that compute:
//   fine     microseconds for 20 tasks of 50 and an exchange of 64 KiB that they hide
//   coarse   one way of a 1 MiB message, in microseconds, while all workers run tasks of 10 ms
//   idle     one way of 8 bytes, in microseconds, while nothing computes
//   waiting  per cent of processor time that an operation costs which does not complete, while
//            tasks of a few microseconds run
//
//   mpirun -n 2 progress <workers> [rounds]
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "measure.h"

namespace {

using imbrex::finish;
using imbrex::task;

int rank = 0;

void compute_us(double duration) {
  const double end = now_ns() + 1000 * duration;
  while (now_ns() < end) {
  }
}

// Works by count and not by the clock.
void work(long turns) {
  for (long turn = 0; turn < turns; ++turn) asm volatile("" ::"r"(turn));
}

// The least of a few tries, in microseconds.
template <class F>
double least_us(int rounds, F round) {
  double least = 1e12;
  for (int i = 0; i < rounds; ++i) {
    const double begin = now_ns();
    round();
    least = std::min(least, (now_ns() - begin) * 1e-3);
  }
  return least;
}

void exchange(std::vector<char>& out, std::vector<char>& in, int tag) {
  const int bytes = static_cast<int>(out.size());
  task("receive").launch([&in, bytes, tag] {
    MPI_Recv(in.data(), bytes, MPI_CHAR, 1 - rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  });
  task("send").launch([&out, bytes, tag] {
    MPI_Send(out.data(), bytes, MPI_CHAR, 1 - rank, tag, MPI_COMM_WORLD);
  });
}

double fine(int rounds) {
  std::vector<char> out(64 << 10);
  std::vector<char> in(out.size());
  return least_us(rounds, [&] {
    MPI_Barrier(MPI_COMM_WORLD);
    finish([&] {
      exchange(out, in, 1);
      for (int i = 0; i < 20; ++i) task("compute").launch([] { compute_us(50); });
    });
  });
}

// Rank 0's tasks receive while its workers compute; rank 1 does nothing but send. Both sides count
// in the time that rank 1 needs.
double coarse(int rounds) {
  std::vector<char> data(1 << 20);
  const int bytes = static_cast<int>(data.size());
  double least = 1e12;
  for (int round = 0; round < rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
      MPI_Recv(nullptr, 0, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      compute_us(1000);
      least = std::min(least, least_us(1, [&] {
        MPI_Ssend(data.data(), bytes, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
      }));
      continue;
    }
    finish([&] {
      task("receive").launch([&] {
        MPI_Recv(data.data(), bytes, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      });
      for (int i = 0; i < 20; ++i) imbrex::yield();
      for (int i = 0; i < imbrex::worker_count(); ++i) {
        task("compute").launch([i] {
          if (i == 0) MPI_Send(nullptr, 0, MPI_CHAR, 1, 3, MPI_COMM_WORLD);
          compute_us(10'000);
        });
      }
    });
  }
  MPI_Bcast(&least, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
  return least;
}

double idle(int rounds) {
  constexpr int trips = 100;
  char byte[8] = {};
  return least_us(rounds, [&] {
    for (int i = 0; i < trips; ++i) {
      if (rank == 0) MPI_Send(byte, 8, MPI_CHAR, 1, 4, MPI_COMM_WORLD);
      MPI_Recv(byte, 8, MPI_CHAR, 1 - rank, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(byte, 8, MPI_CHAR, 0, 4, MPI_COMM_WORLD);
    }
  }) / (2 * trips);
}

double processor_ns() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

// Processor time of all threads over many tasks, in turn with and without an operation: a stretch
// is long, since what a thread takes comes in short pieces.
double waiting(int rounds) {
  const auto stretch = [] {
    const double begin = processor_ns();
    finish([] {
      for (int i = 0; i < 500; ++i) task("work").launch([] { work(20'000); });
    });
    return processor_ns() - begin;
  };
  double with = 1e12;
  double without = 1e12;
  for (int round = 0; round < rounds; ++round) {
    without = std::min(without, stretch());
    MPI_Request request;
    char byte = 0;
    MPI_Irecv(&byte, 1, MPI_CHAR, 1 - rank, 5, MPI_COMM_WORLD, &request);
    auto never = imbrex::when(request);
    with = std::min(with, stretch());
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&byte, 1, MPI_CHAR, 1 - rank, 5, MPI_COMM_WORLD);
    never.wait();
  }
  return 100 * (with / without - 1);
}

}  // namespace

int main(int argc, char** argv) {
  const int workers = argc > 1 ? std::atoi(argv[1]) : 0;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 30;
  int ranks = 0;
  if (workers > 0) {
    setenv("IMBREX_WORKERS", argv[1], 1);
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  }
  if (ranks != 2 || rounds < 1) {
    std::fprintf(stderr, "usage: mpirun -n 2 progress <workers> [rounds]\n");
    return 2;
  }
  const double fine_us = fine(rounds);
  const double coarse_us = coarse(rounds);
  const double idle_us = idle(rounds);
  const double percent = waiting(rounds);
  if (rank == 0) {
    const imbrex::ProgressReport report = imbrex::progress_report();
    std::printf("{\"program\": \"progress\", \"mode\": \"%s\", \"workers\": %d, \"fine_us\": %.0f, "
                "\"coarse_us\": %.0f, \"idle_us\": %.2f, \"waiting_percent\": %.1f, "
                "\"thread_polls\": %llu, \"thread_s\": %.3f}\n",
                report.runs.c_str(), workers, fine_us, coarse_us, idle_us, percent,
                static_cast<unsigned long long>(report.polls), report.seconds);
  }
  MPI_Finalize();
}
