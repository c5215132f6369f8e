// SPDX-License-Identifier: BSD-3-Clause
// Processes that were not there at the start: spawn, accept and connect, join. Methodology: this
// program starts itself once more as a child, which answers and ends. An MPI that cannot do it here
// says so by an error, and the test is skipped.
#include <sys/socket.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <string>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

class Processes : public testing::Test {
 protected:
  Processes() {
    MPI_Comm_set_errhandler(ring_.comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  }
  ~Processes() override { MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL); }

  const Ring ring_;
};

// Exchanges ranks with the other group, each with the one of its own rank, from a task.
void greet(MPI_Comm other, int rank, const Ring& ring) {
  int theirs = -1;
  MPI_Sendrecv(&ring.rank, 1, MPI_INT, rank, 8, &theirs, 1, MPI_INT, rank, 8, other,
               MPI_STATUS_IGNORE);
  EXPECT_EQ(theirs, rank);
}

TEST_F(Processes, accept_and_connect_in_two_tasks_of_one_worker) {
  if (ring_.size != 1) GTEST_SKIP() << "one process connects to itself";
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const int opened = MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  if (opened != MPI_SUCCESS) GTEST_SKIP() << "this MPI opens no port here";
}

TEST_F(Processes, accept_and_connect) {
  if (ring_.size < 2) GTEST_SKIP() << "needs two ranks";
  MPI_Comm half;
  MPI_Comm_split(ring_.comm, ring_.rank % 2, 0, &half);
  char port[MPI_MAX_PORT_NAME] = "";
  if (ring_.rank == 0) MPI_Open_port(MPI_INFO_NULL, port);
  MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, ring_.comm);
  const int code = task("meet").spawn([&] {
    MPI_Comm other = MPI_COMM_NULL;
    const int met = ring_.rank % 2 == 0 ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &other)
                                        : MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &other);
    if (met != MPI_SUCCESS) return met;
    int size = 0;
    MPI_Comm_remote_size(other, &size);
    EXPECT_EQ(size, ring_.size / 2);
    int rank = -1;
    MPI_Comm_rank(half, &rank);
    int theirs = -1;
    MPI_Sendrecv(&ring_.rank, 1, MPI_INT, rank, 8, &theirs, 1, MPI_INT, rank, 8, other,
                 MPI_STATUS_IGNORE);
    EXPECT_EQ(theirs, ring_.rank % 2 == 0 ? ring_.rank + 1 : ring_.rank - 1);
    return MPI_Comm_disconnect(&other);
  }).get();
  if (ring_.rank == 0) MPI_Close_port(port);
  MPI_Comm_free(&half);
  EXPECT_EQ(code, MPI_SUCCESS);
}

}  // namespace
}  // namespace imbrex::test
