// SPDX-License-Identifier: BSD-3-Clause
// Distributed futures (Chatterjee et al., IPDPS 2013, sections II.D and III.B): values that are put
// once, on any rank, and read on any rank; each is named by a number, its guid.
//
//   imbrex::FutureSpace<double> sums(
//       MPI_COMM_WORLD, {.home = [=](auto guid) { return guid % ranks; }, .name = "sums"});
//   if (rank == 0) sums.set(7, 3.5);
//   double sum = sums[7].get();  // on every rank
//   sums.close();
//
// To ask for a future is to ask for its value: the first sums[7] of a rank sends a message to the
// home of 7, unless that is this rank; who does not want the value keeps the guid. The value is
// fetched once for each rank, and kept there until its last future is gone. At home it stays until
// the space is closed, or as many ranks have read it as `readers` says.
//
// Futures of a space may be used as any other, but nobody moves a value out: it is shared.
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

/// The functions must answer the same on every rank, at any time, on any thread, and must not wait.
struct FutureSpaceOptions {
  std::function<int(std::uint64_t guid)> home;  // a rank of the communicator
  // The bytes of the value: of a vector's elements, say. Then a long one lands at once where it
  // stays, where otherwise ranks first tell each other how long it is. Where values have one size,
  // it is known without this. SIZE_MAX: not known on this rank; else all ranks must say the same.
  std::function<std::size_t(std::uint64_t guid)> size = {};
  // How many ranks ask for it, the home among them if it does. When all have, the home gives the
  // value back. A rank counts once for as long as it keeps a future of it, however often it asks;
  // elsewhere than at home one that has let go all of them and asks again counts again.
  std::function<std::size_t(std::uint64_t guid)> readers = {};
  std::string name = "future space";  // for messages
};

/// Thread safety: any thread may call [] and set().
template <class T>
class FutureSpace {
  using State = detail::SpaceFutureOf<T>;

 public:
  /// Collective over `comm`, which may be freed afterwards. Suspends. Throws Error if there is no
  /// `home`, for an inter-communicator, for ranks that are not of MPI_COMM_WORLD, and if messages
  /// between ranks are not open.
  FutureSpace(const MPI_Comm comm, FutureSpaceOptions options)
      : FutureSpace(detail::members_of(comm, "space of futures \"" + options.name + "\""),
                    std::move(options)) {}
  /// Closes, if close() was not called.
  ~FutureSpace() {
    if (space_ == nullptr) return;
    if (!closed_) space_->close();
    space_->let_go();
  }
  FutureSpace(const FutureSpace&) = delete;
  FutureSpace& operator=(const FutureSpace&) = delete;

  /// Ready when the value is here. May suspend for room to send; waits for no other rank. What went
  /// wrong elsewhere, its get() throws. Throws Error if the space is closed, or the value was given
  /// back because all its readers had it. It is const so that get() cannot move the value out.
  [[nodiscard]] const Future<T> operator[](const std::uint64_t guid) const {  // NOLINT
    auto& state = static_cast<State&>(space_->future(guid));
    return Future<T>(&state, &state.slot);
  }

  /// Puts the value, once. Returns at once, on whatever rank; a finish() around waits until the
  /// home has the value. May suspend for room to send. Throws Error at home, or lets that finish()
  /// throw it elsewhere, if a value was put before: it names both ranks and places. Without a
  /// finish() it is printed at the end, and fails the process. Throws Error if the space is closed.
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

  /// Collective over the ranks of the space, which need not come at the same time: returns when
  /// what this rank has put is at its home, what it has asked for is here, and all others have come
  /// as far. Futures that are here stay. Suspends. Throws Error if it was closed before.
  void close() {
    space_->close();
    closed_ = true;
  }

 protected:
  // For a space that was opened in another way, as HCMPI's interface does.
  explicit FutureSpace(detail::Space& space) noexcept : space_(&space) {}

 private:
  FutureSpace(detail::Members members, FutureSpaceOptions&& options)
      : space_(&detail::open_space({members.id, std::move(members.world),
                                    &detail::ValueOpsOf<T>::ops(),
                                    std::move(options.home), std::move(options.size),
                                    std::move(options.readers), std::move(options.name)})) {}
  detail::Space* space_;
  bool closed_ = false;
};

}  // namespace imbrex
