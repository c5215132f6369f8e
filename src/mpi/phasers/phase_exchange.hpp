// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a phaser meet in one phase, and combine the values of their accumulators: by
// messages of this library on the phaser's communicator, in rounds. An MPI_Ibarrier or an
// MPI_Iallreduce costs several times as much, since it first makes a schedule.
//
// Without accumulators a round is one of the dissemination barrier (Hensgen, Finkel and Manber,
// 1988): in round k each rank sends to the rank that is 2^k further. With accumulators it is one of
// recursive doubling: two ranks exchange their values, and both combine them, the lower rank's
// first, so that all get the same to the last bit. If the number of ranks is no power of two, some
// ranks give their values to the next rank before, and get the result from it at the end.
//
// Messages of one phase cannot be taken for those of another: in a phase a rank sends at most one
// message of each tag to each other rank, and MPI keeps their order.
// Thread safety: one phase at a time; the owner of the phase makes each call (RankPhaser).
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
  // All ranks must have the same value.
  [[nodiscard]] std::uint64_t signature() const noexcept;
  [[nodiscard]] std::size_t rounds() const noexcept { return rounds_; }

  // Collects the values of this rank: before the first round.
  void collect(std::uint64_t phase) noexcept;
  void bring_nothing() noexcept;
  // Starts a round; returns MPI's code.
  [[nodiscard]] int start(std::size_t round, MPI_Comm comm) noexcept;
  // Tests once whether the round is complete; the received values are then combined.
  [[nodiscard]] Outcome ask(std::size_t round, int& done) noexcept;
  // Publishes the values of all ranks: after the last round.
  void publish(std::uint64_t phase, bool over) noexcept;
  void fail(std::uint64_t phase, const std::exception_ptr& error) noexcept;
  // A round has failed, or will never be complete.
  void abandon() noexcept;

 private:
  struct Part {
    detail::AccumulatorBase* accumulator;
    std::size_t at;  // offset in the message
  };
  // The partners of a round; -1: none.
  struct Partners {
    int to = -1;
    int from = -1;
    bool combines = false;  // combines the received values with the present ones; otherwise they
                            // replace them
  };
  [[nodiscard]] Partners partners(std::size_t round) const noexcept;
  void put_together(const Partners& with) noexcept;

  const int rank_;
  const int size_;
  std::vector<Part> parts_;
  std::size_t bytes_ = 0;
  std::size_t rounds_ = 0;
  int folded_ = 0;  // number of ranks without a part of their own in recursive doubling
  std::unique_ptr<std::byte[]> mine_;  // finally the values of all ranks
  std::unique_ptr<std::byte[]> theirs_;
  MPI_Request sent_ = MPI_REQUEST_NULL;
  MPI_Request received_ = MPI_REQUEST_NULL;
};

}  // namespace imbrex::mpi::phasers
