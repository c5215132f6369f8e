// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a communicator agree on the order in which collectives in a scope of
// imbrex::order_collectives() start. docs/design/ordered.md has the protocol and why it is correct.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "mpi/check/ranks/begun_collective.hpp"
#include "mpi/collectives/order/order_scope.hpp"
#include "mpi/engine/engine.hpp"

namespace imbrex::mpi::order {

class Order;
struct WaitingStart;

// The turn of a collective that is about to start, from the constructor, which waits for it, to
// end(), when the collective has been started, or has failed to start. Outside of all scopes it has
// no effect.
//
// Thread safety: only the task that makes it uses it.
class Turn {
 public:
  // Suspends.
  explicit Turn(const Call& call) {
    if (scopes_open.load(std::memory_order_relaxed) != 0) [[unlikely]] take(call);
  }
  ~Turn() {
    if (is_taken()) [[unlikely]] give_back();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // True if the call is in a scope.
  [[nodiscard]] bool is_taken() const noexcept { return start_ != nullptr || scope_ != nullptr; }
  // The ordering that gave it its turn.
  [[nodiscard]] check::Ordering ordering() const;
  // Not MPI_SUCCESS: the call must not start the collective, and must return this code. The error
  // handler has been called.
  [[nodiscard]] int code() const noexcept { return code_; }
  // Returns MPI_SUCCESS, or the error code that the call must return.
  [[nodiscard]] int end() {
    if (is_taken()) [[unlikely]] end_taken();
    return code_;
  }

 private:
  void take(const Call& call);
  void take_by_key(const Call& call, std::uint64_t key);
  void end_taken();
  void give_back() noexcept;

  WaitingStart* start_ = nullptr;         // ordered by a key
  detail::OrderScope* scope_ = nullptr;   // ordered by an access
  Call call_{};
  int code_ = MPI_SUCCESS;
};

// The starts that wait for their turn, for reports: a line each. Takes no lock of the engine.
[[nodiscard]] std::vector<std::string> describe_waiting();

// Called before `comm` is freed. Not MPI_SUCCESS if a start waits there for its turn: it has then
// reported that and called the error handler, and `call` must return the code.
[[nodiscard]] int refuse_to_free(const char* call, MPI_Comm comm);

// In MPI_Finalize: frees the duplicates.
void end_all_orders() noexcept;

}  // namespace imbrex::mpi::order
