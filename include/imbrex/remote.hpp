// SPDX-License-Identifier: BSD-3-Clause
// Remote calls: a function that runs as a task on another rank, and a future of what it returns.
//
//   double norm(const std::vector<double>& values);
//
//   imbrex::RemoteCalls calls(MPI_COMM_WORLD);
//   imbrex::Future<double> length = calls.call(3, norm, values);
//   calls.close();
//
// The function is sent as its place in the program or shared library that it is in, the arguments
// and the result as serialise.hpp says, by value. What the function throws, the future's get()
// throws here, as RemoteError.
#pragma once

#include <mpi.h>

#include <concepts>
#include <cstddef>
#include <exception>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "imbrex/detail/dist/calls.hpp"
#include "imbrex/error.hpp"
#include "imbrex/future.hpp"
#include "imbrex/rank_sets.hpp"
#include "imbrex/serialise.hpp"

namespace imbrex {

namespace detail {

// What runs on the other rank, of one signature.
template <class R, class... P>
struct Remotely {
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

// Thread safety: any thread may call call().
class RemoteCalls {
 public:
  // Collective over `comm`, which may be freed afterwards; not within a finish() that ends before
  // close(). Suspends. Throws Error outside of MPI_Init and MPI_Finalize.
  explicit RemoteCalls(const MPI_Comm comm)
      : calls_(&detail::open_calls(detail::agree_on_id(comm, detail::draw_calls_id),
                                   detail::world_ranks(comm))) {}
  ~RemoteCalls() {
    if (!closed_) calls_->close();
    detail::forget_calls(*calls_);
  }
  RemoteCalls(const RemoteCalls&) = delete;
  RemoteCalls& operator=(const RemoteCalls&) = delete;

  // Runs `function` on `rank` of the communicator, which may be this one. A finish() around waits
  // for its end. May suspend for room to send. Throws Error if there is no such rank, or this was
  // closed.
  template <class R, class... P, class... A>
    requires(sizeof...(A) == sizeof...(P) && (std::convertible_to<A, P> && ...))
  [[nodiscard]] Future<std::decay_t<R>> call(const int rank, R (*const function)(P...),
                                             A&&... arguments) const {
    using Result = std::decay_t<R>;
    std::vector<std::byte> bytes;
    Saver saver(bytes);
    const std::tuple<std::decay_t<P>...> values(std::forward<A>(arguments)...);
    std::apply([&saver](const auto&... each) { saver(each...); }, values);
    Promise<Result> promise("remote call");
    const Future<Result> future = promise.future();
    if (detail::in_finish()) detail::hold_finish(*future.completion());
    calls_->call(rank,
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
    return future;
  }

  // Collective over the ranks, which need not come at the same time: returns when all calls of all
  // ranks have ended. Until then calls of others run here. Suspends.
  void close() {
    calls_->close();
    closed_ = true;
  }

 private:
  detail::Calls* calls_;
  bool closed_ = false;
};

}  // namespace imbrex
