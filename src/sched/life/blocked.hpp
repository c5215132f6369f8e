// SPDX-License-Identifier: BSD-3-Clause
// Workers whose threads are blocked by the code of a task, in a lock say: all that they hold waits
// with them, and nobody else can see it, since the thread that would look may be the one. So a
// thread of its own looks now and then, and says so once for each time. Where one worker runs at a
// time, that thread also lets others have their turns while the one whose turn it is sleeps. And it
// ends the program (IMBREX_STALL=abort) where a report has said that no task goes on, and no thread
// does so either.
//
// Thread safety: begin() and end() by whoever starts and stops the runtime.
#pragma once

#include <cstdint>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

namespace imbrex::sched {

struct RuntimeState;
struct Worker;

// As detail::standstill(); `runtime` may be null.
[[nodiscard]] std::string standstill(RuntimeState* runtime, std::uint64_t waiting_task);

class BlockedWatch {
 public:
  // Starts the thread that looks. If the system has no thread left, nobody looks.
  void begin(RuntimeState& runtime) noexcept;
  void end() noexcept;

 private:
  // The state in which a worker was seen last.
  struct Seen {
    const void* task = nullptr;
    std::uint64_t begun = 0;      // there
    std::uint64_t all_begun = 0;  // by all workers, at `since`
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
    std::uint64_t begun = 0;  // there
    int looks = 0;            // in a row at which it slept
  };
  Turn turn_;
  std::string halt_;  // what all threads did at the last look, if no task went on
};

}  // namespace imbrex::sched
