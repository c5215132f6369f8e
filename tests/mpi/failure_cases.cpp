// SPDX-License-Identifier: BSD-3-Clause
// A rank fails while tasks of the others wait for it: their calls end with the MPI's error, and
// what does not need that rank goes on. Three ranks of an MPI that reports failed processes; the
// last is killed. CMakeLists.txt says what each case must print.
#include <mpi.h>
#include <mpi-ext.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

#include "cases.hpp"
#include "imbrex/collective.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"
#include "imbrex/mpi_phaser.hpp"

namespace {

using imbrex::task;

int rank = 0;
constexpr int failing = 2;

bool failed(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  return error_class == MPIX_ERR_PROC_FAILED;
}
// A wildcard or a collective may wait for the failed process.
bool failed_perhaps(int code) {
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  return failed(code) || error_class == MPIX_ERR_PROC_FAILED_PENDING ||
         error_class == MPIX_ERR_REVOKED;
}

// Exchanges messages between the two living ranks meanwhile: true if all of them arrive.
bool exchange(int tag, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    int in = -1;
    const int code = MPI_Sendrecv(&round, 1, MPI_INT, 1 - rank, tag, &in, 1, MPI_INT, 1 - rank, tag,
                                  MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || in != round) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

int receive(int source, int tag) {
  int value = 0;
  return MPI_Recv(&value, 1, MPI_INT, source, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// Runs `wait` in a task, another exchange beside it, and one more after the error.
template <class Wait>
void beside_exchanges(Wait wait) {
  const auto goes_on = task("exchange").spawn([] { return exchange(1, 500); });
  const auto waits = task("wait").spawn(wait);
  const bool reported = waits.get();
  const bool beside = goes_on.get();
  const bool after = task("after").spawn([] { return exchange(2, 10); }).get();
  std::printf("failure %s; beside it %s, after it %s\n", reported ? "reported" : "not reported",
              beside ? "right" : "wrong", after ? "right" : "wrong");
}

void one_receive() {
  beside_exchanges([] { return failed(receive(failing, 7)); });
}

// More than IMBREX_MATCH_ABOVE, so that some are MPI's and the others imbrex's.
void many_receives() {
  beside_exchanges([] {
    std::array<imbrex::Future<int>, 40> codes;
    for (int tag = 0; tag < 40; ++tag) {
      codes[static_cast<std::size_t>(tag)] =
          task("receive").spawn([tag] { return receive(failing, 100 + tag); });
    }
    bool all = true;
    for (const auto& code : codes) all = failed(code.get()) && all;
    return all;
  });
}

void receive_from_any() {
  beside_exchanges([] { return failed_perhaps(receive(MPI_ANY_SOURCE, 7)); });
}

void waitall() {
  beside_exchanges([] {
    std::array<int, 3> values{};
    std::array<MPI_Request, 3> requests{};
    std::array<MPI_Status, 3> statuses{};
    MPI_Irecv(&values[0], 1, MPI_INT, 1 - rank, 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&values[1], 1, MPI_INT, failing, 8, MPI_COMM_WORLD, &requests[1]);
    const int out = 5;
    MPI_Isend(&out, 1, MPI_INT, 1 - rank, 8, MPI_COMM_WORLD, &requests[2]);
    const int code = MPI_Waitall(3, requests.data(), statuses.data());
    return code == MPI_ERR_IN_STATUS && failed(statuses[1].MPI_ERROR) && values[0] == 5 &&
           statuses[0].MPI_ERROR == MPI_SUCCESS && statuses[2].MPI_ERROR == MPI_SUCCESS;
  });
}

void collective() {
  beside_exchanges([] {
    int one = 1;
    int sum = 0;
    return failed_perhaps(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
  });
}

// A phaser of all three ranks; main is registered.
std::optional<imbrex::MpiPhaser> step;

void phaser() {
  step->signal();
  beside_exchanges([] {
    try {
      step->passed(0).get();
      return false;
    } catch (const imbrex::MpiError& error) {
      return failed_perhaps(error.code());
    }
  });
  try {
    step->wait();
    std::printf("who waits is not told\n");
  } catch (const imbrex::MpiError&) {
  }
}

// A collective of all three ranks, whose last never sends.
std::optional<imbrex::Collective> exchanged;
std::array<int, 3> exchanged_out{};
std::array<int, 3> exchanged_in{-1, -1, -1};

void partial() {
  beside_exchanges([] {
    for (int to = 0; to < 3; ++to) exchanged->send(to);
    exchanged->from(1 - rank).get();
    const auto fails = [](const imbrex::Future<void>& part) {
      try {
        part.get();
        return false;
      } catch (const imbrex::MpiError& error) {
        return failed(error.code());
      }
    };
    const bool reported = fails(exchanged->from(failing));
    const bool arrived = exchanged_in[static_cast<std::size_t>(1 - rank)] == 7;
    return fails(exchanged->all()) && reported && arrived;
  });
}

const imbrex::test::Cases cases{
    {"one_receive", one_receive}, {"many_receives", many_receives},
    {"receive_from_any", receive_from_any}, {"waitall", waitall}, {"collective", collective},
    {"phaser", phaser}, {"partial", partial},
};

}  // namespace

int main(int argc, char** argv) {
  const auto& run = imbrex::test::chosen(cases, argc, argv).second;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  step.emplace(MPI_COMM_WORLD);
  exchanged_out.fill(7);
  exchanged.emplace(imbrex::alltoall({exchanged_out.data(), 1, MPI_INT},
                                     {exchanged_in.data(), 1, MPI_INT}, MPI_COMM_WORLD,
                                     {.hold = true}));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == failing) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::raise(SIGKILL);
  }
  run();
  std::fflush(stdout);
  // The survivors end without MPI_Finalize, which would wait for the dead.
  exchange(3, 1);
  std::_Exit(0);
}
