// SPDX-License-Identifier: BSD-3-Clause
// Phasers over the ranks of a communicator (Chatterjee et al., IPDPS 2013, section II.C): a phase
// is over when the tasks of all ranks that signal have done so.
//
//   imbrex::finish([&] {
//     const imbrex::MpiPhaser step(MPI_COMM_WORLD, imbrex::signal_wait);
//     const imbrex::Accumulator<double> residual(step, imbrex::op::max);
//     for (int i = 0; i < parts; ++i) {
//       imbrex::task("part").phased(step).launch([=] {
//         do { residual.put(relax(i)); step.next(); } while (residual.get() > enough);
//       });
//     }
//   });
//
// All rules of imbrex/phaser.hpp and imbrex/accumulator.hpp hold, in each process for its own
// tasks. Further rules:
//
// - Ranks meet by messages of imbrex's own, which carry the values of the accumulators. Tasks that
//   wait are suspended meanwhile.
// - A rank whose last signaller has left, or ended, takes part no more. If other ranks wait in a
//   later phase, they throw Error, which names that rank; unless MpiPhaserOptions::ranks_may_leave.
//   Its own tasks of mode wait_only then wait for no rank: signals of others do not reach them.
// - If MPI fails, every task that waits or signals throws MpiError. The futures of passed() and the
//   accumulators' get() for that phase throw it, too.
// - The function of next(single) runs on each rank, when all ranks have signalled.
// - Values of accumulators must be trivially copyable, with one representation on all ranks. Ranks
//   are combined in order, in groups that depend on their number alone.
// - All ranks make the same accumulators in the same order; else they throw Error, all of them, in
//   their first phase.
#pragma once

#include "imbrex/detail/language.hpp"

#include <mpi.h>

#include <optional>

#include "imbrex/phaser.hpp"

#pragma GCC visibility push(default)

namespace imbrex {

enum class Fusion : std::uint8_t {
  strict,  // the ranks meet when all tasks of a rank have signalled: a barrier of all tasks
  // The ranks begin to meet when the first task has signalled, which overlaps with the work of the
  // other tasks. The end of a phase then says that all tasks of this rank, and at least one task of
  // every other rank, have signalled: weaker than a barrier. A phaser with accumulators is strict.
  fuzzy
};

struct MpiPhaserOptions {
  std::uint32_t ahead = 0;       // as PhaserOptions
  Name name = "MPI phaser";      // the same on all ranks
  Fusion fusion = Fusion::strict;
  // Phases go on without ranks that have left, until all have left. Costs one MPI_Iallreduce a
  // phase.
  bool ranks_may_leave = false;
  // A number in 0 to 2^29 - 1 by which ranks find each other, whatever else they make meanwhile. An
  // earlier phaser of the same number must have ended; else the constructor waits for its end.
  std::optional<int> key = std::nullopt;
};

namespace detail {
struct MpiPhaserSpec {
  MPI_Comm comm;
  PhaserMode mode;
  const MpiPhaserOptions* options;
};
[[nodiscard]] PhaserState& make_mpi_phaser(const MpiPhaserSpec& spec,
                                           const std::source_location& where);
}  // namespace detail

/// A handle, as Phaser is. Thread safety: as Phaser.
class MpiPhaser : public Phaser {
 public:
  /// Collective over `comm`, in the order of its other collectives. With a key, tasks may make
  /// several phasers at a time, in any order. The first phaser on a communicator duplicates it;
  /// later ones wait for that duplicate. `comm` may be freed before the phaser ends. Suspends.
  /// Throws Error on every rank, and names two ranks, if ranks make phasers of different names or
  /// options. Throws Error for mode wait_only (each rank needs a signaller), for an
  /// inter-communicator, for a key out of range, and outside of MPI_Init and MPI_Finalize. Throws
  /// MpiError if MPI fails.
  MpiPhaser(const MPI_Comm comm, const PhaserMode mode,
            const MpiPhaserOptions& options = {},
            const std::source_location& where = std::source_location::current())
      : Phaser(detail::make_mpi_phaser({comm, mode, &options}, where)) {}
};

}  // namespace imbrex

#pragma GCC visibility pop
