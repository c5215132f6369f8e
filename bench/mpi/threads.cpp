// SPDX-License-Identifier: BSD-3-Clause
// messages.hpp by plain threads that call the MPI; nothing of imbrex is linked.
//
//   mpirun -n 2 message_threads <threads>
#include <thread>
#include <vector>

#include "messages.hpp"

int main(int argc, char** argv) {
  const int count = messages::count_from(argc, argv);
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  require_equal("thread level", level, MPI_THREAD_MULTIPLE);
  messages::run("threads", count, [count](auto body) {
    std::vector<std::thread> threads;
    for (int index = 0; index < count; ++index) threads.emplace_back(body, index);
    for (std::thread& thread : threads) thread.join();
  });
  MPI_Finalize();
}
