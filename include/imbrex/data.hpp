// SPDX-License-Identifier: BSD-3-Clause
// Data with owners: every rank inserts the same sequence of tasks, which name the data that they
// read and write. The runtime finds the messages, and sends data that several ranks want along a
// tree that needs no agreement between the ranks (Denis et al., Euro-Par 2020).
//
//   imbrex::Space space(MPI_COMM_WORLD);
//   auto a = space.data<double>(0, n), b = space.data<double>(1, n);  // owners: ranks 0 and 1
//   space.task("fill").out(a).launch([](imbrex::View<double> a) { fill(a); });  // on rank 0
//   space.task("add").in(a).inout(b).launch(  // on rank 1
//       [](imbrex::View<const double> a, imbrex::View<double> b) { add(a, b); });
//   space.finish();
//
// The result is that of the sequence run by one process, one task after the other. A task runs on
// the owner of the first datum that it writes, or on the rank that on() names. A rank that only
// reads a datum gets one copy for each version; the copy is freed when no task of the rank will
// read it any more. Other ranks get a datum from the rank that has written it last; flush() brings
// it back to its owner.
//
// Every rank must insert the tasks that concern it, in the same order. A loop may leave the other
// tasks out: the builder's concerns() tells, if the loop asks it for each task in turn.
#pragma once

#include "imbrex/detail/language.hpp"

#include <mpi.h>

#include <utility>

#include "imbrex/distributed/data_tasks.hpp"
#include "imbrex/distributed/rank_sets.hpp"

namespace imbrex {

/// Data, and the tasks that use them, on the ranks of a communicator. Thread safety: only the
/// thread or task that made the space makes data and inserts tasks, since the order of insertions
/// is the meaning of the program. Bodies run on any worker.
class Space : public SpaceBase {
 public:
  /// Collective over `comm`, which may be freed afterwards. Suspends. Throws Error for an
  /// inter-communicator, in a callback, and if messages between ranks are not open.
  explicit Space(const MPI_Comm comm, SpaceOptions options = {})
      : SpaceBase(detail::make_data_space(detail::members_of(comm, "a space of data", true),
                                          std::move(options))) {}
  /// Collective: finish(), then waits until all ranks have called it. Suspends. An exception that
  /// finish() would throw is printed, and the process fails. If an exception ends the space, the
  /// destructor waits for no other rank: only for bodies that have begun here, and for sends; other
  /// tasks do not run. On the other ranks finish() throws Error then, which names this rank.
  ~Space() = default;
};

}  // namespace imbrex
