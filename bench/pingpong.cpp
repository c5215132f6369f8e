// SPDX-License-Identifier: BSD-3-Clause
// 8 bytes between two ranks: `raw` by the MPI itself (PMPI, outside of any task), `task` by plain
// MPI calls in a task when nothing else is ready, `busy` by the same while another task is always
// ready. One process measures all three in turn, so that they share its thread level and its state.
//
//   mpirun -n 2 pingpong <workers> [round trips]
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <cstdint>
#include <string>

#include "measure.h"

namespace {

struct Direct {
  static int send(const void* data, int peer) {
    return PMPI_Send(data, 8, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
  }
  static int receive(void* data, int peer) {
    return PMPI_Recv(data, 8, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
};
struct Intercepted {
  static int send(const void* data, int peer) {
    return MPI_Send(data, 8, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
  }
  static int receive(void* data, int peer) {
    return MPI_Recv(data, 8, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
};

// What the other task does in `busy`: it counts its turns. One worker, so no race.
struct Turns {
  long taken = 0;
  bool stop = false;
};

struct Exchange {
  double ns = 0;       // one way
  long overlapped = 0; // receives in which the other task had a turn
};

// Rank 0 sends a number, rank 1 sends back its successor.
template <class Calls>
Exchange exchange(int rank, long round_trips, const Turns& turns) {
  Exchange result;
  std::int64_t number = 0;
  const volatile long& taken = turns.taken;
  const auto receive = [&](int peer) {
    const long before = taken;
    Calls::receive(&number, peer);
    if (taken != before) ++result.overlapped;
  };
  const double start = now_ns();
  for (long i = 0; i < round_trips; ++i) {
    if (rank == 0) {
      Calls::send(&number, 1);
      receive(1);
    } else {
      receive(0);
      ++number;
      Calls::send(&number, 0);
    }
  }
  result.ns = (now_ns() - start) / static_cast<double>(2 * round_trips);
  require_equal("round trips that came back", number, round_trips);
  return result;
}

struct Measured {
  Exchange exchange;
  long suspensions;
  long turns;
};

Measured measure(const std::string& mode, int rank, long round_trips) {
  Turns turns;
  Exchange measured;
  MPI_Barrier(MPI_COMM_WORLD);
  const auto before = imbrex::statistics().suspensions;
  if (mode == "raw") {
    measured = exchange<Direct>(rank, round_trips, turns);
  } else {
    imbrex::finish([&] {
      if (mode == "busy") {
        imbrex::task("busy").launch([&] {
          while (!turns.stop) {
            ++turns.taken;
            imbrex::yield();
          }
        });
      }
      imbrex::task("pingpong").launch([&] {
        measured = exchange<Intercepted>(rank, round_trips, turns);
        turns.stop = true;
      });
    });
  }
  const auto suspensions = imbrex::statistics().suspensions - before;
  return {measured, static_cast<long>(suspensions), turns.taken};
}

// "Open MPI v4.1.4, package: ..." becomes "Open MPI 4.1.4".
std::string mpi_name() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string name(text, static_cast<std::size_t>(length));
  name = name.substr(0, name.find_first_of(",\n"));
  if (const auto v = name.find(" v"); v != std::string::npos) name.erase(v + 1, 1);
  for (char& letter : name) {
    if (letter == '"' || letter == '\\' || letter == '\t') letter = ' ';
  }
  return name;
}

void print(const std::string& mode, int workers, long round_trips, const Measured& measured) {
  const std::string benchmark = mode == "busy" ? "pingpong_busy" : "pingpong";
  const std::string system = mode == "raw" ? mpi_name() : "imbrex";
  std::printf("{\"benchmark\": \"%s\", \"system\": \"%s\", \"workers\": %d, \"ns\": %.3f, "
              "\"operations\": %ld, \"suspensions\": %ld, \"overlapped\": %ld, \"turns\": %ld}\n",
              benchmark.c_str(), system.c_str(), workers, measured.exchange.ns, 2 * round_trips,
              measured.suspensions, measured.exchange.overlapped, measured.turns);
}

}  // namespace

int main(int argc, char** argv) {
  const int workers = argc > 1 ? std::atoi(argv[1]) : 1;
  const long round_trips = argc > 2 ? std::atol(argv[2]) : 20000;
  // As an option of the environment, because MPI_Init starts the runtime.
  setenv("IMBREX_WORKERS", std::to_string(workers).c_str(), 1);
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  require_equal("ranks (mpirun -n 2)", ranks, 2);
  require_equal("workers", imbrex::worker_count(), workers);

  for (const std::string mode : {"raw", "task", "busy"}) {
    (void)measure(mode, rank, round_trips / 10 + 1);  // warms the connection and the stacks
    const Measured measured = measure(mode, rank, round_trips);
    if (mode == "busy" && (measured.suspensions == 0 || measured.exchange.overlapped == 0)) {
      fail("receives in which the other task ran", measured.exchange.overlapped, round_trips);
    }
    if (rank == 0) print(mode, workers, round_trips, measured);
  }
  MPI_Finalize();
}
