// SPDX-License-Identifier: BSD-3-Clause
// Remote calls: a function runs as a task on another rank, and a future gets its result.
//
//   double norm(const std::vector<double>& values);
//
//   imbrex::Future<double> length = imbrex::call(3, norm, values);
//
// The function is sent as its address in the program or shared library; the arguments and the
// result are serialised by value (serialise.hpp). If the function throws, the future's get() throws
// RemoteError here.
#pragma once

#include "imbrex/detail/language.hpp"

#include <mpi.h>

#include <concepts>
#include <cstddef>
#include <exception>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "imbrex/detail/distributed/remote_calls.hpp"
#include "imbrex/error.hpp"
#include "imbrex/future.hpp"
#include "imbrex/distributed/rank_sets.hpp"
#include "imbrex/serialise.hpp"

namespace imbrex {

namespace detail {

// The code that runs on the other rank, for one signature.
template <class R, class... P>
struct Remotely {
  // Where the program has a call of this signature.
  static inline const bool is_called = (take_calls_at_init(), true);

  static void run(AnyFunction* const function, const std::span<const std::byte> from,
                  std::vector<std::byte>& to) {
    std::tuple<std::decay_t<P>...> arguments;
    Loader loader(from);
    std::apply([&loader](auto&... each) { loader(each...); }, arguments);
    const auto call = [&] {
      return std::apply(reinterpret_cast<R (*)(P...)>(function), std::move(arguments));
    };
    if constexpr (std::is_void_v<R>) {
      call();
    } else {
      const std::decay_t<R> result = call();
      Saver saver(to);
      saver(result);
    }
  }
};

}  // namespace detail

/// Runs `function` as a task on `rank` of MPI_COMM_WORLD, which may be this rank, and returns a
/// future of its result. A finish() around waits for the end of the task, and MPI_Finalize for the
/// ends of all. May suspend for room to send. Throws Error if there is no such rank, outside of
/// MPI_Init and MPI_Finalize, and for arguments of more than 2 GiB. Thread safety: any thread.
template <class R, class... P, class... A>
  requires(sizeof...(A) == sizeof...(P) && (std::convertible_to<A, P> && ...))
[[nodiscard]] Future<std::decay_t<R>> call(const CalledRank& rank,
                                           R (*const function)(P...), A&&... arguments) {
  using Result = std::decay_t<R>;
  std::vector<std::byte> bytes;
  Saver saver(bytes);
  const std::tuple<std::decay_t<P>...> values(std::forward<A>(arguments)...);
  std::apply([&saver](const auto&... each) { saver(each...); }, values);
  Promise<Result> promise("remote call", rank.where);
  Future<Result> future = promise.future();
  static_cast<void>(&detail::Remotely<R, P...>::is_called);  // is initialised before main
  detail::call_on(rank,
                  {&detail::Remotely<R, P...>::run,
                   reinterpret_cast<detail::AnyFunction*>(function)},
                  std::move(bytes),
                  [promise](const std::exception_ptr& error, std::span<const std::byte> result) {
                    if (error != nullptr) return promise.set_exception(error);
                    if constexpr (std::is_void_v<Result>) {
                      promise.set();
                    } else {
                      try {
                        Result value{};
                        Loader loader(result);
                        loader(value);
                        promise.set(std::move(value));
                      } catch (...) {
                        promise.set_exception(std::current_exception());
                      }
                    }
                  });
  if (detail::in_finish()) detail::hold_finish(*detail::completion_of(future));
  return future;
}
/// Runs `function` on a rank of `comm`. Any thread; may suspend. Throws Error also for an
/// inter-communicator, and for a rank that is not in MPI_COMM_WORLD.
template <class R, class... P, class... A>
  requires(sizeof...(A) == sizeof...(P) && (std::convertible_to<A, P> && ...))
[[nodiscard]] Future<std::decay_t<R>> call(const MPI_Comm comm, const CalledRank& rank,
                                           R (*const function)(P...), A&&... arguments) {
  return call(CalledRank(detail::world_rank(comm, rank.rank), rank.where), function,
              std::forward<A>(arguments)...);
}

}  // namespace imbrex
