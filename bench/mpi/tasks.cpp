// SPDX-License-Identifier: BSD-3-Clause
// messages.hpp by tasks, on as many workers.
//
//   mpirun -n 2 message_tasks <tasks>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include "messages.hpp"

int main(int argc, char** argv) {
  const int count = messages::count_from(argc, argv);
  // An option of the environment, because MPI_Init starts the runtime.
  setenv("IMBREX_WORKERS", std::to_string(count).c_str(), 1);
  MPI_Init(&argc, &argv);
  require_equal("workers", imbrex::worker_count(), count);
  messages::run("imbrex", count, [count](auto body) {
    imbrex::finish([&] {
      for (int index = 0; index < count; ++index) {
        imbrex::task("exchange").launch([&body, index] { body(index); });
      }
    });
  });
  MPI_Finalize();
}
