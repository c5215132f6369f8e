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
// All that imbrex/phaser.hpp and imbrex/accumulator.hpp say holds, in each process for its own
// tasks. Beyond that:
//
// - Ranks meet by messages of imbrex's own, which carry what the accumulators have. Tasks that wait
//   are suspended meanwhile.
// - A rank whose last signaller has left, or ended, takes part no more. If others wait in a later
//   phase, they throw Error, which names that rank; unless MpiPhaserOptions::ranks_may_leave. Its
//   own tasks of mode wait_only then wait for nobody: what others signal does not reach them.
// - If MPI fails, every task that waits or signals throws MpiError, and so do the futures
//   of passed(); the accumulators' get() for that phase, too.
// - The function of next(single) runs on each rank, when all ranks have signalled.
// - What accumulators send must be trivially copyable; the ranks are to have one representation of
//   it. Ranks are combined in order, in groups that depend on their number alone.
// - All ranks make the same accumulators in the same order; those that do not throw Error, all of
//   them, in their first phase.
#pragma once

#include "imbrex/detail/language.hpp"

#include <mpi.h>

#include <optional>

#include "imbrex/phaser.hpp"

#pragma GCC visibility push(default)

namespace imbrex {

enum class Fusion : std::uint8_t {
  strict,  // the ranks meet when all tasks of a rank have signalled: a barrier of all tasks
  // They begin to when the first task has: it overlaps with the other tasks' work, and says that at
  // least one task of every other rank has signalled, and all of this rank. Weaker than a barrier.
  // A phaser that has accumulators is strict.
  fuzzy
};

struct MpiPhaserOptions {
  std::uint32_t ahead = 0;       // as PhaserOptions
  Name name = "MPI phaser";      // the same on all ranks
  Fusion fusion = Fusion::strict;
  // Phases go on without ranks that have left, until all have. Costs an MPI_Iallreduce a phase.
  bool ranks_may_leave = false;
  // 0 to 2^29 - 1: ranks find each other by this number, whatever else they make in between. An
  // earlier phaser of the same number must have ended: else this waits until it has.
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

/// A handle, as Phaser is.
class MpiPhaser : public Phaser {
 public:
  /// Collective over `comm`, in the order of its other collectives, unless there is a key: then
  /// tasks may make several at a time, in any order. The first on a communicator duplicates it, and
  /// waits for a duplicate that another task makes. `comm` may be freed before the phaser ends.
  /// Suspends. Throws Error, on every rank and naming two, if ranks make phasers of different names
  /// or options here; for mode wait_only (a rank has somebody who signals), an inter-communicator,
  /// a key out of range, or outside of MPI_Init and MPI_Finalize. Throws MpiError.
  MpiPhaser(const MPI_Comm comm, const PhaserMode mode,
            const MpiPhaserOptions& options = {},
            const std::source_location& where = std::source_location::current())
      : Phaser(detail::make_mpi_phaser({comm, mode, &options}, where)) {}
};

}  // namespace imbrex

#pragma GCC visibility pop
