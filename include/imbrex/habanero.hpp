// SPDX-License-Identifier: BSD-3-Clause
// The words of Habanero-C++ and HClib for what imbrex has: thin, and to be mixed with the rest.
// docs/user/coming-from-habanero.md has each construct.
//
//   using namespace imbrex::habanero;
//   finish([&] {
//     ddf<int> left("left"), right("right");
//     async([=] { left.put(fib(20)); });
//     async([=] { right.put(fib(21)); });
//     async_await([=] { use(left.get() + right.get()); }, left, right);
//   });
#pragma once

#include <concepts>
#include <source_location>
#include <type_traits>
#include <utility>

#include "imbrex/accumulator.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/phaser.hpp"

namespace imbrex::habanero {

using imbrex::current_place;
using imbrex::drop;
using imbrex::finish;
using imbrex::next;
using imbrex::signal;
using imbrex::wait;
using imbrex::yield;
using enum imbrex::PhaserMode;

template <class T>
using ddf = Ddf<T>;
template <class T>
using promise_t = Promise<T>;
template <class T>
using future_t = Future<T>;
using place_t = Place;
using phaser = Phaser;
template <class T>
using accumulator = Accumulator<T>;

using Where = std::source_location;

// A task, which finish() waits for. Suspends if the caller is far ahead (IMBREX_WINDOW).
template <class F>
  requires std::invocable<std::decay_t<F>&>
void async(F&& body, const Where& where = Where::current()) {
  task("async", where).launch(std::forward<F>(body));
}
// The same; its result, or what it throws, is in the future.
template <class F>
  requires std::invocable<std::decay_t<F>&>
auto async_future(F&& body, const Where& where = Where::current()) {
  return task("async_future", where).spawn(std::forward<F>(body));
}

// Begins when all of these are there: futures, data-driven futures, requests of MPI (with
// imbrex/mpi.hpp), vectors of them.
template <class F, class A>
  requires std::invocable<std::decay_t<F>&>
void async_await(F&& body, A&& thing, const Where& where = Where::current()) {
  task("async_await", where).await_all(std::forward<A>(thing)).launch(std::forward<F>(body));
}
template <class F, class A, class B>
  requires(std::invocable<std::decay_t<F>&> && !std::same_as<std::decay_t<B>, Where>)
void async_await(F&& body, A&& one, B&& two, const Where& where = Where::current()) {
  task("async_await", where)
      .await_all(std::forward<A>(one), std::forward<B>(two))
      .launch(std::forward<F>(body));
}
template <class F, class A, class B, class C>
  requires(std::invocable<std::decay_t<F>&> && !std::same_as<std::decay_t<C>, Where>)
void async_await(F&& body, A&& one, B&& two, C&& three, const Where& where = Where::current()) {
  task("async_await", where)
      .await_all(std::forward<A>(one), std::forward<B>(two), std::forward<C>(three))
      .launch(std::forward<F>(body));
}
// Begins, once, when one of the elements of `things` is there.
template <class F, class A>
  requires std::invocable<std::decay_t<F>&>
void async_await_any(F&& body, A&& things, const Where& where = Where::current()) {
  task("async_await_any", where).await_any(std::forward<A>(things)).launch(std::forward<F>(body));
}

// Runs at the place, or at one in it.
template <class F>
  requires std::invocable<std::decay_t<F>&>
void async_at(F&& body, const place_t place, const Where& where = Where::current()) {
  task("async_at", where).at(place).launch(std::forward<F>(body));
}

// Is registered on all phasers that the caller is on; or on one, in the caller's mode or another.
template <class F>
  requires std::invocable<std::decay_t<F>&>
void async_phased(F&& body, const Where& where = Where::current()) {
  task("async_phased", where).phased().launch(std::forward<F>(body));
}
template <class F>
  requires std::invocable<std::decay_t<F>&>
void async_phased(F&& body, const phaser& on, const Where& where = Where::current()) {
  task("async_phased", where).phased(on).launch(std::forward<F>(body));
}
template <class F>
  requires std::invocable<std::decay_t<F>&>
void async_phased(F&& body, const phaser& on, const PhaserMode mode,
                  const Where& where = Where::current()) {
  task("async_phased", where).phased(on, mode).launch(std::forward<F>(body));
}

}  // namespace imbrex::habanero
