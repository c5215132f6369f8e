// SPDX-License-Identifier: BSD-3-Clause
// Workers whose threads are blocked by the code of a task, in a lock for example: all their tasks
// wait with them, unseen, since the blocked thread may be the one that would check. A thread of its
// own therefore checks now and then, and reports each case once. Where one worker runs at a time,
// that thread also lets other workers have their turns while the worker with the turn sleeps. It
// keeps the file of the flight recorder up to date, and ends the program (IMBREX_STALL=abort) if a
// report has said that no task goes on, and no thread goes on either.
//
// Thread safety: the thread that starts and stops the runtime calls begin() and end().
#pragma once

#include <cstdint>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

namespace imbrex::sched {

struct RuntimeState;
struct Worker;

// detail::standstill(); `runtime` may be null.
[[nodiscard]] std::string standstill(RuntimeState* runtime, std::uint64_t waiting_task);

class BlockedWatch {
 public:
  // Starts the checking thread. If the system has no thread left, there are no checks.
  void begin(RuntimeState& runtime) noexcept;
  void end() noexcept;

 private:
  // The last observed state of a worker.
  struct Seen {
    const void* task = nullptr;
    std::uint64_t begun = 0;      // tasks begun there
    std::uint64_t all_begun = 0;  // tasks begun by all workers, at `since`
    std::string call;
    std::uint64_t since = 0;      // ns
    bool reported = false;
  };
  void look(RuntimeState& runtime, Worker& worker, Seen& seen, std::uint64_t limit_ns);
  void look_at_turn(RuntimeState& runtime);
  void look_at_halt(RuntimeState& runtime);
  void run(RuntimeState& runtime);

  std::thread thread_;
  std::binary_semaphore ends_{0};
  struct Turn {
    int worker = -1;
    std::uint64_t begun = 0;  // tasks begun there
    int looks = 0;            // number of checks in a row that found it asleep
  };
  Turn turn_;
  std::string halt_;  // state of all threads at the last check, if no task went on
};

}  // namespace imbrex::sched
