// SPDX-License-Identifier: BSD-3-Clause
// Distributed futures (Chatterjee et al., IPDPS 2013, sections II.D and III.B): values that one
// rank puts once, and any rank reads. A number, the guid, names each value.
//
//   imbrex::FutureSpace<double> sums(
//       MPI_COMM_WORLD, {.home = [=](auto guid) { return guid % ranks; }, .name = "sums"});
//   if (rank == 0) sums.set(7, 3.5);
//   double sum = sums[7].get();  // on every rank
//   sums.close();
//
// To ask for a future is to ask for its value: the first sums[7] of a rank sends a message to the
// home of guid 7, unless that is this rank. A rank that does not want the value keeps the guid. The
// value is fetched once for each rank, and kept there until its last future is gone. The home keeps
// it until the space is closed, or until as many ranks have read it as `readers` says.
//
// Futures of a space may be used as any other, but get() never moves a value out, because it is
// shared.
#pragma once

#include "imbrex/detail/language.hpp"

#include <mpi.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "imbrex/detail/distributed/spaces.hpp"
#include "imbrex/error.hpp"
#include "imbrex/future.hpp"
#include "imbrex/distributed/rank_sets.hpp"
#include "imbrex/distributed/space_values.hpp"

namespace imbrex {

/// The functions must return the same on every rank, at any time, on any thread, and must not wait.
struct FutureSpaceOptions {
  std::function<int(std::uint64_t guid)> home;  // a rank of the communicator
  // The bytes of the value: of the elements of a vector, for example. A long value then arrives
  // directly in its final memory; without `size` the ranks first tell each other how long it is.
  // Not needed where all values have one size. SIZE_MAX: not known on this rank; all other ranks
  // must return the same.
  std::function<std::size_t(std::uint64_t guid)> size = {};
  // The number of ranks that read the value, the home among them if it reads. When all have read
  // it, the home frees the value. A rank counts once for as long as it keeps a future of the value.
  // Elsewhere than at home, a rank that drops all its futures and asks again counts again.
  std::function<std::size_t(std::uint64_t guid)> readers = {};
  std::string name = "future space";  // for messages
};

/// Thread safety: any thread may call [] and set().
template <class T>
class FutureSpace {
  using State = detail::SpaceFutureOf<T>;

 public:
  /// Collective over `comm`, which may be freed afterwards. Suspends, so it must be made in a task,
  /// or by a thread of the program such as main. Throws Error in an event handler, a continuation
  /// or another callback, where a task that waits for a Promise of the callback can make the space;
  /// if there is no `home`; for an inter-communicator; for ranks outside of MPI_COMM_WORLD; and if
  /// messages between ranks are not open.
  FutureSpace(const MPI_Comm comm, FutureSpaceOptions options)
      : FutureSpace(detail::members_of(comm, "space of futures \"" + options.name + "\""),
                    std::move(options)) {}
  /// Calls close(), if it was not called, and prints what close() throws at the end of the program,
  /// which fails. Suspends then. If an exception ends the space, the destructor waits for no other
  /// rank: there [], set() and close() throw Error, which names this rank, and so do the futures
  /// that have no value yet.
  ~FutureSpace() {
    if (space_ != nullptr) space_->let_go();
  }
  FutureSpace(const FutureSpace&) = delete;
  FutureSpace& operator=(const FutureSpace&) = delete;

  /// Returns a future that is ready when the value has arrived. May suspend for room to send; waits
  /// for no other rank. get() throws an error that happened on another rank. Throws Error if the
  /// space is closed, or if the value was freed because all its readers had it. The future is const
  /// so that get() cannot move the value out.
  [[nodiscard]] const Future<T> operator[](const std::uint64_t guid) const {  // NOLINT
    auto& state = static_cast<State&>(space_->future(guid));
    return Future<T>(&state, &state.slot);
  }

  /// Puts the value, once, on any rank. Returns at once; a finish() around waits until the home has
  /// the value. May suspend for room to send. Throws Error if a value was put before, and names
  /// both ranks and places: at once on the home, from the finish() around on other ranks. Without a
  /// finish() the error is printed at the end, and the process fails. Throws Error if the space is
  /// closed.
  template <class U = T>
    requires std::constructible_from<T, U>
  void set(const std::uint64_t guid, U&& value,
           const std::source_location& where = std::source_location::current()) const {
    using Value = std::remove_reference_t<U>;
    const detail::Build build{
        [](detail::SpaceFuture& future, void* const argument) {
          ::new (static_cast<void*>(&static_cast<State&>(future).slot.value))
              T(std::forward<U>(*static_cast<Value*>(argument)));
          future.built = true;
        },
        const_cast<void*>(static_cast<const void*>(&value))};
    space_->put(guid, build, where);
  }

  /// Collective over the ranks of the space. Suspends until the values that this rank put are at
  /// their homes, the values that it asked for are here, and all other ranks have called it.
  /// Futures that are here stay. Throws Error if the space was closed before.
  void close() { space_->close(); }

 protected:
  // For spaces that are opened in another way, as by the interface of HCMPI.
  explicit FutureSpace(detail::Space& space) noexcept : space_(&space) {}

 private:
  FutureSpace(detail::Members members, FutureSpaceOptions&& options)
      : space_(&detail::open_space({members.id, std::move(members.world),
                                    &detail::ValueOpsOf<T>::ops(),
                                    std::move(options.home), std::move(options.size),
                                    std::move(options.readers), std::move(options.name)})) {}
  detail::Space* space_;
};

}  // namespace imbrex
