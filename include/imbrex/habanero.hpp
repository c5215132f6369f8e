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

#include "imbrex/detail/language.hpp"

#include <concepts>
#include <memory>
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
using imbrex::finish_owns;
using imbrex::next;
using imbrex::parent_place;
using imbrex::place;
using imbrex::place_count;
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
[[nodiscard]] auto async_future(F&& body, const Where& where = Where::current()) {
  return task("async_future", where).spawn(std::forward<F>(body));
}

// The body of a task, and the place of the call that it is an argument of, which a function that
// ends in a list of any length could not know otherwise. REQUIRES: used within that call.
class Body {
 public:
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Body> && std::invocable<std::decay_t<F>&>)
  Body(F&& function, const Where& where = Where::current()) noexcept  // made of what users write
      : launch_(&launch_function<F>), where_(where) {
    if constexpr (std::is_function_v<std::remove_reference_t<F>>) {
      function_.code = reinterpret_cast<void (*)()>(&function);
    } else {
      function_.object = std::addressof(function);
    }
  }

  [[nodiscard]] TaskBuilder task(const Name name) const { return imbrex::task(name, where_); }
  // Copies the body, or moves it, as launch(body) does.
  void launch(TaskBuilder& builder) const { launch_(function_, builder); }

 private:
  union Function {  // borrowed
    const void* object;
    void (*code)();
  };
  template <class F>
  static void launch_function(const Function function, TaskBuilder& builder) {
    using Plain = std::remove_reference_t<F>;
    if constexpr (std::is_function_v<Plain>) {
      builder.launch(reinterpret_cast<Plain*>(function.code));
    } else {
      builder.launch(std::forward<F>(*static_cast<Plain*>(const_cast<void*>(function.object))));
    }
  }

  Function function_;
  void (*launch_)(Function function, TaskBuilder& builder);
  Where where_;
};

template <class... T>
concept awaited = requires(TaskBuilder& builder, T&&... things) {
  builder.await_all(std::forward<T>(things)...);
};

// Begins when all of these are there: futures, data-driven futures, requests of MPI (with
// imbrex/mpi.hpp), vectors of them.
template <class... T>
  requires awaited<T...>
void async_await(const Body body, T&&... things) {
  body.launch(body.task("async_await").await_all(std::forward<T>(things)...));
}
// Begins, once, when one of them is there.
template <class... T>
  requires awaited<T...>
void async_await_any(const Body body, T&&... things) {
  body.launch(body.task("async_await_any").await_any(std::forward<T>(things)...));
}
// Begins at the place, when `thing` is there, which may be a vector.
template <class T>
  requires awaited<T>
void async_await_at(const Body body, T&& thing, const place_t place) {
  body.launch(body.task("async_await_at").await_all(std::forward<T>(thing)).at(place));
}

// Runs on the workers of the place.
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
