// SPDX-License-Identifier: BSD-3-Clause
// Receives that fail after their communicator has been freed: engine_fuzz met this by chance. Two
// fail in one round, so that for the second imbrex itself owes the call of an error handler, and
// the handle by which it would ask for it means nothing any more.
#include <cstdlib>
#include <vector>

#include "fake_mpi.hpp"
#include "fuzz/expect.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"

namespace {

using imbrex::test::expect;

void run() {
  using namespace imbrex;
  MPI_Init(nullptr, nullptr);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  constexpr int count = 3;
  std::vector<int> values(count, -1);
  std::vector<MPI_Request> requests(count);
  for (int i = 0; i < count; ++i) {
    MPI_Irecv(&values[static_cast<std::size_t>(i)], 1, MPI_INT, 1, i, comm,
              &requests[static_cast<std::size_t>(i)]);
    fake_mpi::send({.comm = comm,
                    .source = 1,
                    .tag = i,
                    .bytes = std::vector<std::byte>(sizeof(int)),
                    .error = i < 2 ? static_cast<int>(MPI_ERR_OTHER) : MPI_SUCCESS});
    expect(fake_mpi::arrive(comm, 1), "the message arrives");
  }
  MPI_Comm_free(&comm);
  std::vector<MPI_Status> statuses(count);
  expect(MPI_Waitall(count, requests.data(), statuses.data()) == MPI_ERR_IN_STATUS, "the code");
  expect(statuses[0].MPI_ERROR == MPI_ERR_OTHER, "the first fails");
  expect(statuses[1].MPI_ERROR == MPI_ERR_OTHER, "the second fails");
  expect(statuses[2].MPI_ERROR == MPI_SUCCESS && values[2] == 0, "the third does not");
  MPI_Finalize();
  expect(fake_mpi::breaches().empty(), "MPI's rules are kept");
}

}  // namespace

int main() {
  setenv("IMBREX_MATCH_ABOVE", "0", 1);   // imbrex matches the messages,
  setenv("IMBREX_PROGRESS", "poll", 1);   // and no call polls for them before Waitall does
  setenv("IMBREX_WORKERS", "1", 1);
  imbrex::fake_mpi::reset({});
  run();
  return imbrex::test::failures == 0 ? 0 : 1;
}
