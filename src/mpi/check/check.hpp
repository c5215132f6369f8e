// SPDX-License-Identifier: BSD-3-Clause
// What IMBREX_CHECK=1 looks for: buffers that overlap while both operations are under way, requests
// that two tasks wait for, collectives on one communicator in no order. A finding is printed, and
// the program goes on as it would; only the second wait for a request is refused.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "engine.hpp"

namespace imbrex::mpi::check {

// Written by MPI_Init only, before any task calls MPI.
extern bool enabled;
[[nodiscard]] inline bool on() noexcept { return enabled; }
void start();

struct Use;

// The memory of a call, whose count and type say how much of it.
struct Buffer {
  const void* address;  // null: unknown
  bool writes;          // the call receives
};

// While it lives the call is under way, and uses its buffer.
class Guard {
 public:
  Guard(const Call& call, const Buffer& buffer) {
    if (on()) [[unlikely]] use_ = begin(call, buffer);
  }
  ~Guard() {
    if (use_ != nullptr) [[unlikely]] end(*use_);
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  [[nodiscard]] static Use* begin(const Call& call, const Buffer& buffer);
  static void end(Use& use) noexcept;
  Use* use_ = nullptr;
};

// The same from the call that returns `request` until it is known to have completed.
void begin_request(MPI_Request request, const Call& call, const Buffer& buffer);
void end_request(MPI_Request request) noexcept;

// While it lives the caller waits for these requests. `Look::always`: for one that suspends, where
// it costs little beside the suspension; of other waits only under IMBREX_CHECK.
enum class Look : std::uint8_t { if_asked, always };
class Waiting {
 public:
  Waiting(const char* call, int count, const MPI_Request requests[], Look look = Look::if_asked) {
    if (look == Look::always || on()) begin(call, count, requests);
  }
  ~Waiting() {
    if (!requests_.empty()) [[unlikely]] end();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  // Not MPI_SUCCESS if another task waits for one of them: then the call must return this. It has
  // been said, and the error handler called.
  [[nodiscard]] int code() const noexcept { return code_; }

  // By who finds the requests complete, before the caller goes on: MPI may give their handles to
  // others from then on.
  void set_over() noexcept { over_.store(true, std::memory_order_release); }
  [[nodiscard]] bool over() const noexcept {
    return over_.load(std::memory_order_acquire);  // pairs with set_over()
  }

 private:
  void begin(const char* call, int count, const MPI_Request requests[]);
  void end() noexcept;
  std::atomic<bool> over_{false};
  std::vector<MPI_Request> requests_;  // those that this one has entered
  int code_ = MPI_SUCCESS;
};

// The code of a Waiting for one request that another task waits for; else MPI_SUCCESS. To be asked
// before MPI is: if the request is complete, MPI would end it for the wrong one.
[[nodiscard]] int second_wait(const char* call, MPI_Request request);

}  // namespace imbrex::mpi::check
