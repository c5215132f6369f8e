// SPDX-License-Identifier: BSD-3-Clause
// How programs start MPI and TAMPI, one case for each run: the levels that they are told, and what
// is refused. Ends with 1 and a message if something is wrong.
#include <TAMPI.h>

#include <cstdio>
#include <cstdlib>

#include "../cases.hpp"
#include "imbrex/imbrex.hpp"

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not true: %s\n", what);
  std::_Exit(1);
}

int property(int which) {
  int value = -1;
  require(TAMPI_Property_get(which, &value) == MPI_SUCCESS, "TAMPI_Property_get succeeds");
  return value;
}

void expect_level(int required, int expected) {
  int provided = -1;
  MPI_Init_thread(nullptr, nullptr, required, &provided);
  int level = -1;
  MPI_Query_thread(&level);
  require(provided == expected && level == expected, "the level is what was asked for");
  require(property(TAMPI_PROPERTY_BLOCKING_MODE) == (expected == MPI_TASK_MULTIPLE ? 1 : 0),
          "the blocking mode is enabled with MPI_TASK_MULTIPLE");
  require(property(TAMPI_PROPERTY_NONBLOCKING_MODE) == 1, "the non-blocking mode is enabled");
  MPI_Finalize();
  require(property(TAMPI_PROPERTY_NONBLOCKING_MODE) == 0, "it ends with MPI_Finalize");
}

// A message to the other rank by TAMPI's calls in main. True if it was bound, so that MPI_Wait has
// nothing to do.
bool binds() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int other = 1 - rank;
  int value = -1;
  MPI_Request requests[2];
  MPI_Status statuses[2];
  TAMPI_Irecv(&value, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &requests[0], &statuses[0]);
  const bool bound = requests[0] == MPI_REQUEST_NULL;
  TAMPI_Isend(&rank, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &requests[1]);
  TAMPI_Wait(&requests[0], &statuses[0]);
  TAMPI_Waitall(1, &requests[1], &statuses[1]);
  require(value == other && statuses[0].MPI_SOURCE == other, "the message is there");
  return bound;
}

void starts_itself() {
  require(property(TAMPI_PROPERTY_AUTO_INIT) == 1, "MPI_Init starts TAMPI by default");
  MPI_Init(nullptr, nullptr);
  require(binds(), "requests are bound");
  MPI_Finalize();
}

void started_by_the_program() {
  require(TAMPI_Property_set(TAMPI_PROPERTY_AUTO_INIT, 0) == MPI_SUCCESS, "AUTO_INIT is set");
  require(property(TAMPI_PROPERTY_AUTO_INIT) == 0, "AUTO_INIT is 0");
  int provided = -1;
  MPI_Init_thread(nullptr, nullptr, MPI_TASK_MULTIPLE, &provided);
  require(provided == MPI_THREAD_MULTIPLE, "MPI_Init_thread gives what MPI has");
  require(property(TAMPI_PROPERTY_NONBLOCKING_MODE) == 0, "TAMPI has not begun");
  require(!binds(), "requests are the program's before TAMPI_Init");

  require(TAMPI_Init(MPI_TASK_MULTIPLE, &provided) == MPI_SUCCESS, "TAMPI_Init succeeds");
  int level = -1;
  MPI_Query_thread(&level);
  require(provided == MPI_TASK_MULTIPLE && level == provided, "TAMPI_Init gives the level");
  require(property(TAMPI_PROPERTY_BLOCKING_MODE) == 1, "the blocking mode is enabled");
  require(binds(), "requests are bound after TAMPI_Init");

  require(TAMPI_Finalize() == MPI_SUCCESS, "TAMPI_Finalize succeeds");
  require(property(TAMPI_PROPERTY_NONBLOCKING_MODE) == 0, "TAMPI has ended");
  require(!binds(), "requests are the program's after TAMPI_Finalize");
  MPI_Finalize();
}

void started_too_early() {
  int provided = -1;
  require(TAMPI_Init(MPI_TASK_MULTIPLE, &provided) == MPI_ERR_OTHER, "TAMPI_Init is refused");
  require(TAMPI_Finalize() == MPI_ERR_OTHER, "TAMPI_Finalize is refused");
}

void iwait_before_init() {
  MPI_Request request{};
  imbrex::finish([&] {
    imbrex::task("early").launch([&] {
      require(TAMPI_Iwait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS, "TAMPI_Iwait is refused");
    });
  });
}

const imbrex::test::Cases cases{
    {"single", [] { expect_level(MPI_THREAD_SINGLE, MPI_THREAD_SINGLE); }},
    {"funneled", [] { expect_level(MPI_THREAD_FUNNELED, MPI_THREAD_FUNNELED); }},
    {"multiple", [] { expect_level(MPI_THREAD_MULTIPLE, MPI_THREAD_MULTIPLE); }},
    {"tasks", [] { expect_level(MPI_TASK_MULTIPLE, MPI_TASK_MULTIPLE); }},
    {"starts_itself", starts_itself},
    {"started_by_the_program", started_by_the_program},
    {"started_too_early", started_too_early},
    {"iwait_before_init", iwait_before_init},
};

}  // namespace

int main(int argc, char** argv) {
  const auto& run = imbrex::test::chosen(cases, argc, argv).second;
  run();
}
