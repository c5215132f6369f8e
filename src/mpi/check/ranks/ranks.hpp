// SPDX-License-Identifier: BSD-3-Clause
// Whether the ranks begin the collectives of each communicator in one order (IMBREX_CHECK): each
// says what it begins to the first rank of the communicator, which compares. Nobody waits for that.
// docs/design/ordered.md has the protocol.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "imbrex/detail/observation.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/check/ranks/begun_collective.hpp"
#include "mpi/engine/engine.hpp"

namespace imbrex::mpi::check {

// Collective over MPI_COMM_WORLD.
void start_comparing();
// In MPI_Finalize, after the last task: the same. Returns when all that was said has been compared.
void end_comparing();

// Sends and receives what is there. Never waits, never suspends.
void poll_letters() noexcept;
inline void poll_ranks() noexcept {
  if (switches.compares_ranks) [[unlikely]] poll_letters();
}

// The program frees `comm`. MPICH lets go of what belongs to it only later.
void end_communicator(MPI_Comm comm);

class Known;

// A collective of a call, as it is compared. Made before the call does anything on the
// communicator; it is open from begin() until this ends, or what it was moved to.
//
// Thread safety: one thread at a time.
class Compared {
 public:
  Compared() = default;
  explicit Compared(MPI_Comm comm) {
    if (switches.compares_ranks) [[unlikely]] find(comm);
  }
  ~Compared() {
    if (comm_ != nullptr) [[unlikely]] end();
  }
  Compared(Compared&& other) noexcept
      : comm_(std::move(other.comm_)), number_(std::exchange(other.number_, 0)) {}
  Compared& operator=(Compared&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(number_, other.number_);
    return *this;
  }
  Compared(const Compared&) = delete;
  Compared& operator=(const Compared&) = delete;

  // False if nobody compares it: then begin() is not to be called.
  [[nodiscard]] bool is_wanted() const noexcept { return comm_ != nullptr; }
  // MPI has begun it, in `task`.
  void begin(const Call& call, const detail::TaskLabel& task, Alike alike, Ordering ordering);

 private:
  void find(MPI_Comm comm);
  void end() noexcept;

  std::shared_ptr<Known> comm_;
  std::uint64_t number_ = 0;  // 0: not begun
};

// A call that makes a communicator of one group from another, which all its ranks call in one
// order: so they know what was made by what it was made from, and need no message.
//
// Thread safety: one thread at a time.
class Making {
 public:
  // Before the call does anything on `parent`; null: it makes none.
  explicit Making(MPI_Comm parent) {
    if (switches.compares_ranks) [[unlikely]] find(parent);
  }
  // The call begins, in the order of the collectives of the parent.
  void begin() noexcept {
    if (parent_ != nullptr) [[unlikely]] draw();
  }
  // It has made this one, or (null) none. Returns `code`, MPI's.
  int end(const int code, const MPI_Comm* created) {
    if (place_ != 0 && code == MPI_SUCCESS) [[unlikely]] tell(*created);
    return code;
  }

 private:
  void find(MPI_Comm parent);
  void draw() noexcept;
  void tell(MPI_Comm created);

  std::shared_ptr<Known> parent_;
  std::uint64_t place_ = 0;  // 0: not begun
};

// As Alike has it: what all ranks name by one text.
[[nodiscard]] std::string name_of(MPI_Op op);

}  // namespace imbrex::mpi::check
