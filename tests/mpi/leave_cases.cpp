// SPDX-License-Identifier: BSD-3-Clause
// Programs in which an exception ends an object on one rank and other ranks wait for that rank;
// CMakeLists.txt says what each must print.
#include <mpi.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "cases.hpp"
#include "imbrex/data.hpp"
#include "imbrex/future_space.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"
#include "imbrex/work_pool.hpp"

namespace {

using imbrex::Space;
using imbrex::View;

int rank = 0;
int ranks = 1;

void receive_for_ever() {
  int value = 0;
  MPI_Recv(&value, 1, MPI_INT, ranks - 1 - rank, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// A wrong call on one rank: its text is printed.
void wrong_view(const bool aborts) {
  try {
    Space space(MPI_COMM_WORLD, {.name = "field"});
    const auto data = space.data<int>(0, 1);
    space.task("set").out(data).launch([](View<int> x) { x[0] = 5; });
    space.finish();
    std::printf("%d\n", data.view()[0]);
    if (aborts) MPI_Barrier(MPI_COMM_WORLD);  // no rank that comes here reaches the end
  } catch (const imbrex::Error& error) {
    std::fprintf(stderr, "caught: %s\n", error.what());
    if (aborts) MPI_Abort(MPI_COMM_WORLD, 3);
  }
}
void aborts() { wrong_view(true); }
void goes_on() { wrong_view(false); }

// Nobody comes to the ends of the objects that the last rank has left.
void stalls() {
  try {
    Space space(MPI_COMM_WORLD, {.name = "field"});
    imbrex::FutureSpace<int> futures(MPI_COMM_WORLD, {.home = [](auto) { return 0; },
                                                      .name = "parts"});
    imbrex::WorkPool<int> pool(MPI_COMM_WORLD, {.name = "tree"});
    if (rank != ranks - 1) receive_for_ever();
    throw std::runtime_error("no input");
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "caught: %s\n", error.what());
  }
}

// A task may use what the body has: finish() waits for it, and the report has the text.
void stalls_in_finish() {
  try {
    int value = 0;
    imbrex::finish([&] {
      imbrex::task("receives").launch([&] {
        receive_for_ever();
        value = 1;
      });
      throw std::runtime_error("no input");
    });
    std::printf("%d\n", value);
  } catch (const std::runtime_error& error) {
    std::fprintf(stderr, "caught: %s\n", error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const imbrex::test::Cases cases{{"aborts", aborts},
                                  {"goes_on", goes_on},
                                  {"stalls", stalls},
                                  {"stalls_in_finish", stalls_in_finish}};
  const auto& chosen = imbrex::test::chosen(cases, argc, argv);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  chosen.second();
  MPI_Finalize();
  return 0;
}
