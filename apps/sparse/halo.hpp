// SPDX-License-Identifier: BSD-3-Clause
// The exchange of the layer around a brick: in a loop that waits for all of it, or one message at a
// time, for tasks that block. And sums over ranks, in the same ways.
#pragma once

#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "brick.hpp"

namespace sparse {

// A wait in the way of TAMPI (Sala et al.): a task that waits for a request suspends, and the
// workers test each request in turn, after tasks and while they have nothing else to do. Thread
// safety: any task.
class TestEach {
 public:
  // Suspends the running task until the request is complete.
  void wait(MPI_Request request);
  // Tests all requests once, at the ends of tasks; if another worker does so, it returns at once.
  void poll();
  // Calls `spawn` and returns when all its tasks have ended; meanwhile a task of its own polls, and
  // gives way in between. Suspends.
  void poll_during(const std::function<void()>& spawn);

  [[nodiscard]] std::int64_t tests() const noexcept {
    return tests_.load(std::memory_order_relaxed);
  }

 private:
  void poll_until(const std::atomic<bool>& stop);

  struct Waiting {
    MPI_Request request;
    imbrex::Promise<void>* event;  // of a task that waits
  };
  std::mutex lock_;  // guards what follows; held over MPI_Test, which never suspends
  std::vector<Waiting> waiting_;
  std::atomic<std::int64_t> tests_ = 0;  // relaxed: a statistic
};

// Thread safety: send() and receive() of different neighbours may run at once.
class Halo {
 public:
  // `communicator` stays the caller's; messages have tag 0.
  Halo(const Brick& brick, MPI_Comm communicator);

  // All of it, by the MPI itself and not through imbrex: waiting blocks the thread, and so a core.
  // Returns the seconds in MPI. REQUIRES: MPI_THREAD_MULTIPLE, if tasks call MPI meanwhile.
  double exchange(std::vector<double>& vector);
  // One neighbour's message, packed before or unpacked after. Plain MPI_Send and MPI_Recv, or
  // requests for which `tests`, if it is not null, waits. They suspend in a task.
  // REQUIRES: calls for the same neighbour and direction run one after the other.
  void send(const std::vector<double>& vector, int neighbour, TestEach* tests);
  void receive(std::vector<double>& vector, int neighbour, TestEach* tests);

  // The bytes that one exchange sends.
  [[nodiscard]] std::int64_t bytes_sent() const noexcept;

 private:
  void pack(const std::vector<double>& vector, std::size_t neighbour);
  void unpack(std::vector<double>& vector, std::size_t neighbour) const;

  const Brick& brick_;
  const MPI_Comm communicator_;
  std::vector<std::vector<double>> out_;  // by neighbour
  std::vector<std::vector<double>> in_;
};

// Returns the sum of `mine` over all ranks. Collective; suspends in a task.
[[nodiscard]] double sum_over_ranks(double mine, MPI_Comm communicator, TestEach* tests);
// Returns the sum of `mine` over all ranks. Collective; blocks the thread, as Halo::exchange()
// does.
[[nodiscard]] double sum_blocking(double mine, MPI_Comm communicator);

}  // namespace sparse
