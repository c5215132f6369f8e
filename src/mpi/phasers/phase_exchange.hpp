// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a phaser meet in one phase, and put together what their accumulators have: by
// messages of this library's own on the phaser's communicator, in rounds. An MPI_Ibarrier or an
// MPI_Iallreduce does the same at several times the cost, since it first makes a schedule.
//
// Without accumulators a round is one of the dissemination barrier (Hensgen, Finkel and Manber,
// 1988): in round k each rank sends to the one that is 2^k further. With accumulators it is one of
// recursive doubling: two ranks exchange what they have, and both put it together, the lower rank's
// first, so that all get the same to the last bit. Where the number of ranks is no power of two,
// some give theirs to the next rank before, and get the result from it at the end.
//
// Messages of one phase cannot be taken for those of another: a rank sends one of each tag to each
// other rank in a phase at most, and MPI keeps their order.
// Thread safety: one phase at a time, each call by whoever owns the phase (RankPhaser).
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "imbrex/detail/phasers.hpp"
#include "mpi/abi/completion_calls.hpp"

namespace imbrex::mpi::phasers {

class Exchange {
 public:
  Exchange(int rank, int size, detail::AccumulatorBase* accumulators);

  [[nodiscard]] bool has_accumulators() const noexcept { return !parts_.empty(); }
  [[nodiscard]] std::size_t accumulators() const noexcept { return parts_.size(); }
  // All ranks must have the same.
  [[nodiscard]] std::uint64_t signature() const noexcept;
  [[nodiscard]] std::size_t rounds() const noexcept { return rounds_; }

  // What this rank brings: before the first round.
  void collect(std::uint64_t phase) noexcept;
  void bring_nothing() noexcept;
  // Starts a round; MPI's code.
  [[nodiscard]] int start(std::size_t round, MPI_Comm comm) noexcept;
  // Asks once whether it is complete; then what has come is put together.
  [[nodiscard]] Outcome ask(std::size_t round, int& done) noexcept;
  // What all ranks have brought: behind the last round.
  void publish(std::uint64_t phase, bool over) noexcept;
  void fail(std::uint64_t phase, const std::exception_ptr& error) noexcept;
  // A round has failed, or is never to be complete.
  void abandon() noexcept;

 private:
  struct Part {
    detail::AccumulatorBase* accumulator;
    std::size_t at;  // in the message
  };
  // The partners of a round; none: -1.
  struct Partners {
    int to = -1;
    int from = -1;
    bool combines = false;  // what comes, with what is there; else it takes its place
  };
  [[nodiscard]] Partners partners(std::size_t round) const noexcept;
  void put_together(const Partners& with) noexcept;

  const int rank_;
  const int size_;
  std::vector<Part> parts_;
  std::size_t bytes_ = 0;
  std::size_t rounds_ = 0;
  int folded_ = 0;  // so many ranks have none of their own in recursive doubling
  std::unique_ptr<std::byte[]> mine_;  // and then more and more of what all have
  std::unique_ptr<std::byte[]> theirs_;
  MPI_Request sent_ = MPI_REQUEST_NULL;
  MPI_Request received_ = MPI_REQUEST_NULL;
};

}  // namespace imbrex::mpi::phasers
