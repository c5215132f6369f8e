// SPDX-License-Identifier: BSD-3-Clause
// Data with owners: every rank inserts the same sequence of tasks, which name the data that they
// read and write; the runtime finds the messages, and sends what several ranks want along a tree
// that nobody has agreed on (Denis et al., Euro-Par 2020).
//
//   imbrex::Space space(MPI_COMM_WORLD);
//   auto a = space.data<double>(0, n), b = space.data<double>(1, n);  // owners: ranks 0 and 1
//   space.task("fill").write(a).insert([](imbrex::View<double> a) { fill(a); });  // on rank 0
//   space.task("add").read(a).update(b).insert(  // on rank 1
//       [](imbrex::View<const double> a, imbrex::View<double> b) { add(a, b); });
//   space.finish();
//
// The result is that of the sequence run by one process, one task after the other. A task runs on
// the owner of the first datum that it writes, or where on() says. Who reads elsewhere gets a copy,
// once for each version, which goes when nobody here will read it any more. The rank that has
// written a datum last is where others have it from; flush() brings it back to its owner.
//
// Every rank must insert what concerns it, in the same order. A loop may leave out the rest: the
// builder's concerns() tells, if it is asked for each task in turn.
//
// open_messages() before MPI_Init opens the messages between ranks that it needs.
#pragma once

#include "imbrex/detail/language.hpp"

#include <mpi.h>

#include <utility>

#include "imbrex/distributed/data_tasks.hpp"
#include "imbrex/distributed/rank_sets.hpp"

namespace imbrex {

/// Data, and the tasks that use them, on the ranks of a communicator.
/// Thread safety: one thread or task makes data and inserts, the one that made the space, since the
/// order of insertions is the meaning of the program; bodies run anywhere.
class Space : public SpaceBase {
 public:
  /// Collective over `comm`, which may be freed afterwards. Suspends. Throws Error for an
  /// inter-communicator, and if messages between ranks are not open.
  explicit Space(const MPI_Comm comm, SpaceOptions options = {})
      : SpaceBase(detail::make_data_space(detail::members_of(comm, "a space of data", true),
                                          std::move(options))) {}
  /// Collective: finish(), then waits until all ranks have come as far. Suspends. What finish()
  /// would throw is printed, and fails the process.
  ~Space() = default;
};

}  // namespace imbrex
