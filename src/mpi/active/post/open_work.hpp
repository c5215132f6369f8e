// SPDX-License-Identifier: BSD-3-Clause
// The work that this rank has begun and must end before MPI_Finalize does, and whether code here
// expects messages: in both cases a thread polls.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace imbrex::mpi::active {

// Thread safety: any thread.
// Invariants:
//   (1) a kind of work is counted before other threads can end it, so none() is never true too
//       early.
//   (2) end() releases the writes of the work to the thread that finds none().
class OpenWork {
 public:
  // Each kind is counted in its own bits of one word, so that one load tells whether all are zero.
  enum class Kind : std::uint64_t {
    kept = 1,                          // handlers that were set, whose kept messages wait
    listed = std::uint64_t{1} << 4,    // peers for which messages wait here
    packet = std::uint64_t{1} << 24,   // packets in flight from here
    transfer = std::uint64_t{1} << 44  // transfers whose function is still to be called
  };

  // Work that needs polls until it ends.
  void begin(Kind kind) noexcept;
  void end(Kind kind) noexcept;
  // Work that the engine counts by itself for now: it needs polls once want_polls() is called.
  void count(const Kind kind) noexcept {
    open_.fetch_add(static_cast<std::uint64_t>(kind), std::memory_order_relaxed);
  }
  void uncount(const Kind kind) noexcept {
    open_.fetch_sub(static_cast<std::uint64_t>(kind), std::memory_order_relaxed);
  }
  [[nodiscard]] bool none() const noexcept {
    return open_.load(std::memory_order_acquire) == 0;  // pairs with end()
  }
  // Appends a line for a report, if there is work: MPI_Finalize waits for it.
  void describe(std::string& text) const;

  void expect() noexcept;
  void expect_no_more() noexcept;
  // MPI_Finalize: expectations do not count any more.
  void end_expecting() noexcept;

 private:
  std::atomic<std::uint64_t> open_{0};  // any thread
  std::atomic<int> expecting_{0};       // any thread; far below 0 after end_expecting()
};

}  // namespace imbrex::mpi::active
