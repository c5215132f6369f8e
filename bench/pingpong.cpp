// SPDX-License-Identifier: BSD-3-Clause
// A message between two ranks: `raw` by the MPI itself (raw_mpi.hpp), `task` by plain MPI calls in
// a task when nothing else is ready, `busy` (8 bytes only) by the same while another task is always
// ready. One process measures all in turn, in slices, so that they share its thread level, its
// state, and the machine's moods.
//
//   mpirun -n 2 pingpong <workers> [round trips [bytes]]
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "measure.h"
#include "raw_mpi.hpp"

namespace {

struct Direct {
  static int send(const void* data, int bytes, int peer) {
    return RAW_MPI(Send)(data, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
  }
  static int receive(void* data, int bytes, int peer) {
    return RAW_MPI(Recv)(data, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
};
struct Intercepted {
  static int send(const void* data, int bytes, int peer) {
    return MPI_Send(data, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
  }
  static int receive(void* data, int bytes, int peer) {
    return MPI_Recv(data, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
};

// One for both ways, whole numbers; the first is counted up.
using Buffer = std::vector<std::int64_t>;

// In the variant `busy`, another task counts its turns. There is one worker, so there is no race.
struct Turns {
  long taken = 0;
  bool stop = false;
};

struct Exchange {
  double ns = 0;       // one way
  long overlapped = 0; // receives in which the other task had a turn
};

struct Job {
  int rank;
  long round_trips;
  Buffer* buffer;
};

// Rank 0 sends a number, rank 1 sends back its successor.
template <class Calls>
Exchange exchange(const Job& job, const Turns& turns) {
  Exchange result;
  std::int64_t* const data = job.buffer->data();
  const int bytes = static_cast<int>(job.buffer->size() * sizeof *data);
  data[0] = 0;
  const volatile long& taken = turns.taken;
  const auto receive = [&](int peer) {
    const long before = taken;
    Calls::receive(data, bytes, peer);
    if (taken != before) ++result.overlapped;
  };
  const double start = now_ns();
  for (long i = 0; i < job.round_trips; ++i) {
    if (job.rank == 0) {
      Calls::send(data, bytes, 1);
      receive(1);
    } else {
      receive(0);
      ++data[0];
      Calls::send(data, bytes, 0);
    }
  }
  result.ns = (now_ns() - start) / static_cast<double>(2 * job.round_trips);
  require_equal("round trips that came back", data[0], job.round_trips);
  return result;
}

// The times of all slices of one mode.
struct Measured {
  std::vector<double> ns;
  long overlapped = 0;
  long suspensions = 0;
  long turns = 0;
};

void measure(const std::string& mode, const Job& job, Measured* measured) {
  Turns turns;
  Exchange slice;
  MPI_Barrier(MPI_COMM_WORLD);
  const auto before = imbrex::statistics().suspensions;
  if (mode == "raw") {
    slice = exchange<Direct>(job, turns);
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
        slice = exchange<Intercepted>(job, turns);
        turns.stop = true;
      });
    });
  }
  measured->ns.push_back(slice.ns);
  measured->overlapped += slice.overlapped;
  measured->suspensions += static_cast<long>(imbrex::statistics().suspensions - before);
  measured->turns += turns.taken;
}

// "Open MPI v4.1.4, package: ..." becomes "Open MPI 4.1.4"; "MPICH Version:      5.0.2" becomes
// "MPICH 5.0.2".
std::string mpi_name() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string name(text, static_cast<std::size_t>(length));
  name = name.substr(0, name.find_first_of(",\n"));
  if (const auto v = name.find(" v"); v != std::string::npos) name.erase(v + 1, 1);
  if (const auto v = name.find(" Version:"); v != std::string::npos) {
    name.erase(v + 1, name.find_first_of("0123456789", v) - v - 1);
  }
  for (char& letter : name) {
    if (letter == '"' || letter == '\\' || letter == '\t') letter = ' ';
  }
  return name;
}

void print(const std::string& mode, int workers, const Job& job, Measured measured) {
  const long bytes = static_cast<long>(job.buffer->size() * sizeof(std::int64_t));
  std::string benchmark("pingpong");
  if (mode == "busy") benchmark.append("_busy");
  if (bytes != 8) benchmark.append("_").append(std::to_string(bytes));
  const std::string system = mode == "raw" ? mpi_name() : "imbrex";
  std::sort(measured.ns.begin(), measured.ns.end());
  std::printf("{\"benchmark\": \"%s\", \"system\": \"%s\", \"workers\": %d, \"ns\": %.3f, "
              "\"least_ns\": %.3f, \"operations\": %ld, \"suspensions\": %ld, "
              "\"overlapped\": %ld, \"turns\": %ld}\n",
              benchmark.c_str(), system.c_str(), workers, measured.ns[measured.ns.size() / 2],
              measured.ns[0], 2 * job.round_trips * static_cast<long>(measured.ns.size()),
              measured.suspensions, measured.overlapped, measured.turns);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int slices = 100;
  const int workers = argc > 1 ? std::atoi(argv[1]) : 1;
  const long round_trips = argc > 2 ? std::atol(argv[2]) : 20000;
  const long bytes = argc > 3 ? std::atol(argv[3]) : 8;
  require_equal("bytes beyond whole numbers of 8", bytes % 8, 0);
  // An option of the environment, because MPI_Init starts the runtime.
  setenv("IMBREX_WORKERS", std::to_string(workers).c_str(), 1);
  MPI_Init(&argc, &argv);
  Buffer buffer(static_cast<std::size_t>(bytes / 8));
  Job job{0, round_trips / slices + 1, &buffer};
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  require_equal("ranks (mpirun -n 2)", ranks, 2);
  require_equal("workers", imbrex::worker_count(), workers);

  std::vector<std::string> modes = {"raw", "task"};
  if (bytes == 8) modes.push_back("busy");
  std::vector<Measured> measured(modes.size());
  for (int slice = -1; slice < slices; ++slice) {
    for (std::size_t i = 0; i < modes.size(); ++i) {
      Measured warm;  // the first slice warms the connection and the stacks
      measure(modes[i], job, slice < 0 ? &warm : &measured[i]);
    }
  }
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const bool suspended = measured[i].suspensions != 0 && measured[i].overlapped != 0;
    if (modes[i] == "busy" && !suspended) {
      fail("receives in which the other task ran", measured[i].overlapped, round_trips);
    }
    if (job.rank == 0) print(modes[i], workers, job, measured[i]);
  }
  MPI_Finalize();
}
