// SPDX-License-Identifier: BSD-3-Clause
// The names of Habanero-C++ and HClib for the functions of imbrex: a thin layer that programs may
// mix with the rest. docs/user/coming-from-habanero.md has each construct.
//
//   using namespace imbrex::habanero;
//   finish([&] {
//     ddf<int> left("left"), right("right");
//     async([=] { left.put(fib(20)); });
//     async([=] { right.put(fib(21)); });
//     async_await([=] { use(left.get() + right.get()); }, left, right);
//   });
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <ranges>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "imbrex/accumulator.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/phaser.hpp"

namespace imbrex::habanero {

using imbrex::current_place;
using imbrex::finish;
using imbrex::finish_owns;
using imbrex::parent_place;
using imbrex::place;
using imbrex::place_count;
using imbrex::yield;
using enum imbrex::PhaserMode;

template <class T>
using promise_t = Promise<T>;
template <class T>
using future_t = Future<T>;
using place_t = Place;
/// A phaser by the name of Habanero. The task that makes it is registered, as `mode`. Thread
/// safety: as Phaser.
class phaser : public Phaser {
 public:
  /// Constructs as Phaser does. Never suspends. Throws Error as Phaser's constructor does.
  explicit phaser(const PhaserMode mode = signal_wait, const PhaserOptions& options = {},
                  const std::source_location& where = std::source_location::current())
      : Phaser(mode, options, where) {}
};
template <class T>
using accumulator = Accumulator<T>;

/// signal, wait and next act on all phasers of the running task. Suspend as Phaser's members do.
inline void signal() { Phaser::signal_all(); }
inline void wait() { Phaser::wait_all(); }
inline void next() { Phaser::next_all(); }
template <class F>
void next(const PhaserMode mode, F&& function) {
  Phaser::next_all(mode, function);
}
inline void drop() { Phaser::drop_all(); }

using Where = std::source_location;

/// A data-driven future: a future together with its promise. put() sets the value, once; get()
/// reads it, and never waits. A task that reads the value awaits the ddf (async_await()), or
/// depends on its future(). A second put, and a get before the put, throw Error, which names both
/// places. Copies share one value; when the last copy is gone without a put, a task that awaits it
/// fails with BrokenPromise. (Taşırlar and Sarkar, ICPP 2011; Chatterjee et al., IPDPS 2013.)
/// Thread safety: any thread may put and get, also a thread that imbrex does not know.
template <class T>
class ddf {
 public:
  /// Allocates. Error texts show `name` and the place in the program.
  explicit ddf(const Name name = "ddf", const Where& where = Where::current())
      : state_(std::make_shared<State>(name, where)) {}
  /// For a `const char*` that another function hands on: it is copied, as for Promise.
  template <std::size_t N>
  explicit ddf(const char (&name)[N], const Where& where = Where::current())
      : ddf(Name(static_cast<const char*>(name)), where) {}

  /// Sets the value, once: tasks that await it become ready. Never waits. Throws Error at a second
  /// put.
  template <class U = T>
    requires(!std::is_void_v<T> && std::constructible_from<T, U>)
  void put(U&& value, const Where& where = Where::current()) const {
    claim(where).set(std::forward<U>(value));
  }
  void put(const Where& where = Where::current()) const
    requires std::is_void_v<T>
  {
    claim(where).set();
  }
  /// A task that awaits the value fails, and get() rethrows `error`. Never waits. Throws Error if
  /// `error` is null.
  void put_exception(std::exception_ptr error, const Where& where = Where::current()) const {
    if (error == nullptr) return state().promise.set_exception(nullptr);  // throws Error
    claim(where).set_exception(std::move(error));
  }

  /// Returns the value. Never suspends. The reference is valid as long as a copy of the ddf lives.
  decltype(auto) get(const Where& where = Where::current()) const {
    const State& one = state();
    if (!one.future.ready()) {
      throw Error("imbrex: a get of " + one.text() + ", at " + text_of(where) +
                  ", before a value was put: let the task await the ddf first");
    }
    return one.future.get();
  }

  /// The future of the value, for the other functions of imbrex. Lives as long as the ddf.
  [[nodiscard]] const Future<T>& future() const { return state().future; }

 private:
  struct State {
    State(const Name its_name, const Where& its_where)
        : promise(its_name, its_where), name(its_name.text()), where(its_where) {}
    [[nodiscard]] std::string text() const {
      return std::string("the ddf \"") + name + "\" (" + text_of(where) + ")";
    }
    const Promise<T> promise;
    const Future<T> future = promise.future();
    const char* const name;
    const Where where;
    std::atomic<Where> put_at{};  // line 0: not put yet; any thread
  };
  [[nodiscard]] static std::string text_of(const Where& where) {
    return std::string(where.file_name()) + ":" + std::to_string(where.line());
  }
  [[nodiscard]] State& state() const {
    if (state_ == nullptr) throw Error("imbrex: use of a ddf that was moved from");
    return *state_;
  }
  // Returns the promise to the first caller; throws Error for any other.
  [[nodiscard]] const Promise<T>& claim(const Where& where) const {
    State& one = state();
    Where before;
    // relaxed: only the place is handed on
    if (!one.put_at.compare_exchange_strong(before, where, std::memory_order_relaxed)) {
      throw Error("imbrex: a second put to " + one.text() + ", at " + text_of(where) +
                  ": it was put at " + text_of(before));
    }
    return one.promise;
  }

  std::shared_ptr<State> state_;
};

/// Makes the innermost finish() around the running code wait for the value, as for a future.
template <class T>
void finish_owns(const ddf<T>& value) {
  imbrex::finish_owns(value.future());
}

/// Spawns a task, which finish() waits for. Suspends if the caller is far ahead
/// (IMBREX_TASKS_AHEAD).
template <class F>
  requires std::invocable<std::decay_t<F>&>
void async(F&& body, const Where& where = Where::current()) {
  task("async", where).launch(std::forward<F>(body));
}
/// Spawns a task and returns a future of its result or exception. Suspends as async().
template <class F>
  requires std::invocable<std::decay_t<F>&>
[[nodiscard]] auto async_future(F&& body, const Where& where = Where::current()) {
  return task("async_future", where).spawn(std::forward<F>(body));
}

/// The body of a task, together with the place of its call. A function whose parameter list ends in
/// a pack could not find that place otherwise. REQUIRES: used within that call.
class Body {
 public:
  /// Refers to `function`, without a copy or a call.
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Body> && std::invocable<std::decay_t<F>&>)
  // implicit: programs pass callables
  Body(F&& function, const Where& where = Where::current()) noexcept
      : launch_(&launch_function<F>), where_(where) {
    if constexpr (std::is_function_v<std::remove_reference_t<F>>) {
      function_.code = reinterpret_cast<void (*)()>(&function);
    } else {
      function_.object = std::addressof(function);
    }
  }

  /// Makes a builder of a task at that place.
  [[nodiscard]] TaskBuilder task(const Name name) const { return imbrex::task(name, where_); }
  /// Copies the body, or moves it, as launch(body) does.
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

template <class T>
inline constexpr bool makes_future = false;
template <class T>
inline constexpr bool makes_future<Future<T>> = true;
template <class T>
inline constexpr bool makes_future<ddf<T>> = true;
/// A future, a ddf, or a vector or an array of them. when() of mpi.hpp makes a future of a request.
template <class T>
concept awaited = makes_future<std::remove_cvref_t<T>> ||
                  (std::ranges::input_range<T> &&
                   makes_future<std::remove_cvref_t<std::ranges::range_reference_t<T>>>);

/// Calls visit(future) for each future of `thing`.
template <class T>
void each_future(const Future<T>& future, const auto& visit) {
  visit(future);
}
template <class T>
void each_future(const ddf<T>& value, const auto& visit) {
  visit(value.future());
}
template <std::ranges::input_range Things>
void each_future(const Things& things, const auto& visit) {
  for (const auto& thing : things) each_future(thing, visit);
}

/// Spawns a task that begins when all `things` are ready. Suspends as async().
template <awaited... T>
  requires(sizeof...(T) != 0)
void async_await(const Body body, const T&... things) {
  TaskBuilder builder = body.task("async_await");
  (each_future(things, [&](const auto& future) { (void)builder.in(future); }), ...);
  body.launch(builder);
}
/// Spawns a task that begins, once, when one of `things` is ready. Suspends as async().
template <awaited... T>
  requires(sizeof...(T) != 0)
void async_await_any(const Body body, const T&... things) {
  std::vector<Future<void>> all;
  (each_future(things, [&](const auto& future) { all.push_back(when_all(future)); }), ...);
  TaskBuilder builder = body.task("async_await_any");
  body.launch(builder.in(when_any(all)));
}
/// Spawns a task that begins at the place when `thing`, which may be a vector, is ready. Suspends
/// as async().
template <awaited T>
void async_await_at(const Body body, const T& thing, const place_t place) {
  TaskBuilder builder = body.task("async_await_at");
  each_future(thing, [&](const auto& future) { (void)builder.in(future); });
  body.launch(builder.at(place));
}

/// Spawns a task that runs on the workers of the place. Suspends as async().
template <class F>
  requires std::invocable<std::decay_t<F>&>
void async_at(F&& body, const place_t place, const Where& where = Where::current()) {
  task("async_at", where).at(place).launch(std::forward<F>(body));
}

/// Spawns a task that is registered on all phasers of the caller; or on one phaser, in the caller's
/// mode or another one. Suspends as async().
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
