// SPDX-License-Identifier: BSD-3-Clause
// The backend of a phaser that spans ranks: the collectives that end its phases, and how ranks
// learn that a rank has left. tests/models/mpi_phaser.pml is its model.
//
// The collectives of a phase, one after the other, on Channel::phases:
//   1. in the first phase, MPI_Iallreduce of the kinds of the accumulators, which must agree;
//   2. if ranks may leave, MPI_Iallreduce of the number of ranks that have not left;
//   3. if there are accumulators, or neither of these, an exchange (phase_exchange.hpp).
//
// A rank takes part in phase after phase. In the last phase, where all its signallers leave, it
// takes part only if a task has signalled it, or there are accumulators.
//
// Ranks that may not leave: a rank without signallers ("left") tells its number of phases, in a
// round: an MPI_Iallreduce on Channel::farewells. It joins one round after the other, until all
// ranks have left. A rank that has waited long for a phase ("late") joins a round, too, without
// having left. A round therefore ends when every rank has left or is late; and since "left" is for
// ever, the result of a round stays true. If a rank has left after q phases, a rank that waits for
// phase p >= q waits in vain: its tasks throw. When all have left, the ranks with one phase less
// make up for it, so that no collective stays open, and the communicators may serve another phaser.
//
// Ranks that may leave: a rank that has left takes part in all further phases, and contributes only
// that fact, until no rank is left in a phase; all ranks learn that in the same phase.
//
// Threads:
//   (1) a phase is begun once, by the thread that finds its number in `begun_`, under the lock.
//   (2) the data of its collectives belong to the thread that began it, then to the thread that the
//       engine tells of each completion.
//   (3) a phase ends by two halves: its collectives, and the last signal here; the thread that
//       brings the second half ends it.
//   (4) rounds belong to the engine, under whose lock they are tested.
#pragma once

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/phasers.hpp"
#include "imbrex/mpi_phaser.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/phasers/phase_exchange.hpp"
#include "mpi/phasers/phaser_communicators.hpp"

namespace imbrex::mpi::phasers {

class RankPhaser final : public detail::PhaserBackend {
 public:
  RankPhaser(const MpiPhaserOptions& options, std::string its_name);
  ~RankPhaser() override;

  // From now on there are other ranks. Until then, and without this call, this rank is alone.
  void begin(detail::PhaserState& phaser, Channel channel) noexcept;

  void look() noexcept override { engine().poll(); }
  void first_signal(std::uint64_t phase, detail::AccumulatorBase* accumulators) noexcept override;
  [[nodiscard]] bool last_signal(detail::PhaserState& phaser, std::uint64_t phase,
                                 detail::AccumulatorBase* accumulators,
                                 detail::PhaseFollows follows) noexcept override;
  void closed() noexcept override;

  // In MPI_Finalize: this rank leaves every phaser that it has not left. Returns when all ranks
  // have left all, so that no collective is open.
  static void leave_all() noexcept;

 private:
  struct PhaserOperation : Operation {
    RankPhaser* owner;
  };
  // The values that ranks exchange, and the minimum of each. Signed: for a minimum MPICH 4 takes
  // unsigned numbers for signed ones (docs/design/mpi-facts.md).
  struct Farewell {
    std::int64_t who = INT64_MAX;        // of a rank that has left: its number of phases, and the
                                         // rank
    std::int64_t left = 0;               // 1: has left
    std::int64_t not_begun = INT64_MAX;  // the negated number of begun phases
    std::int64_t healthy = 1;            // no collective has failed
  };

  // Phases.
  [[nodiscard]] bool claim(std::uint64_t phase, int halves) noexcept;
  // False if this rank is the only one: there are then no collectives, and no rounds.
  [[nodiscard]] bool has_others() const noexcept { return channel_->size > 1; }
  void prepare(detail::AccumulatorBase* accumulators);
  void start_phase(std::uint64_t phase, bool alive) noexcept;
  [[nodiscard]] std::size_t collectives() const noexcept;  // before the exchange
  [[nodiscard]] std::size_t steps() const noexcept;        // collectives, and rounds of the
                                                           // exchange
  [[nodiscard]] bool run() noexcept;
  [[nodiscard]] int start_step() noexcept;
  [[nodiscard]] Outcome ask_step(int& done) noexcept;
  void abandon_step() noexcept;
  void take_step() noexcept;
  [[nodiscard]] bool bring_half() noexcept;
  void complete_phase() noexcept;
  void end_phase() noexcept;
  void collectives_ended() noexcept;

  // The end.
  void leave() noexcept;
  void run_empty_phases() noexcept;
  void finish() noexcept;
  void look_who_left() noexcept;
  [[nodiscard]] bool round_has_ended() noexcept;

  static bool ask_collective(Operation& self);
  static void collective_ended(Operation& self) noexcept;
  static bool ask_rounds(Operation& self);
  static void rounds_ended(Operation& self) noexcept;
  static void gave_up(Operation& self) noexcept;

  const std::string name_;
  const bool fuzzy_;
  const bool may_leave_;
  // Written by begin().
  std::optional<Channel> channel_;
  detail::PhaserState* phaser_ = nullptr;

  base::SpinLock lock_;
  std::uint64_t begun_ IMBREX_GUARDED_BY(lock_) = 0;      // number of phases that this rank takes
                                                          // part in
  bool under_way_ IMBREX_GUARDED_BY(lock_) = false;       // the collectives of a phase are in
                                                          // flight
  bool all_left_ IMBREX_GUARDED_BY(lock_) = false;

  // For the phase whose collectives are in flight: (2).
  std::optional<Exchange> exchange_;  // by prepare()
  std::uint64_t phase_ = 0;
  std::size_t step_ = 0;
  std::atomic<int> halves_{0};        // (3)
  std::exception_ptr error_ = nullptr;
  bool over_ = false;                 // no signaller is left here
  bool abandoned_ = false;            // the step in flight
  std::atomic<bool> broken_{false};   // a collective has failed here
  std::uint64_t signature_[2] = {};   // of the accumulators, and its complement
  std::uint64_t signatures_[2] = {};  // the bitwise "and" of all ranks'
  std::int64_t mine_alive_ = 0;
  std::int64_t alive_ = 0;            // number of ranks
  PhaserOperation collective_;

  // (4)
  MPI_Request round_ = MPI_REQUEST_NULL;
  Farewell mine_;                     // written before `left_`
  Farewell sent_;                     // MPI reads and writes these two while a round is open
  Farewell received_;
  Farewell least_;                    // of the last round
  unsigned asked_ = 0;
  std::chrono::milliseconds patience_{0};
  std::chrono::steady_clock::time_point late_at_;
  bool rounds_failed_ = false;
  bool given_up_ = false;             // the phase ends with an error, its collectives go on
  std::exception_ptr left_behind_ = nullptr;
  PhaserOperation giving_up_;
  PhaserOperation farewell_;
  std::atomic<bool> left_{false};     // this rank has left, and cannot be late any more
};

}  // namespace imbrex::mpi::phasers
