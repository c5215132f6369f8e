// SPDX-License-Identifier: BSD-3-Clause
// Tasks that may block: in a task, waiting suspends the task; its worker runs another meanwhile.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <new>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "imbrex/detail/waist.hpp"
#include "imbrex/future.hpp"

namespace imbrex {

namespace detail {

// A task's closure and, after it has run, its result, in memory that create() gave.
template <class F, class R>
struct Body {
  F function;
  [[no_unique_address]] Slot<R> slot;

  static void run(void* closure) {
    Body& self = *static_cast<Body*>(closure);
    struct Destroy {  // also when the body throws; before any dependent may run
      F& function;
      ~Destroy() { function.~F(); }
    } destroy{self.function};
    if constexpr (std::is_void_v<R>) {
      self.function();
    } else {
      ::new (static_cast<void*>(&self.slot.value)) R(self.function());
    }
  }
  static void drop(void* closure) noexcept { static_cast<Body*>(closure)->function.~F(); }
  static void destroy(void* closure) noexcept {
    if constexpr (!std::is_void_v<R>) static_cast<Body*>(closure)->slot.value.~R();
  }
  static constexpr bool trivial = std::is_void_v<R> || std::is_trivially_destructible_v<R>;
  static constexpr BodyOps ops{&run, &drop, trivial ? nullptr : &destroy};
};

// What a task may name as written: no constant, and no future, which is set once by its task.
template <class T>
concept writable = !std::is_const_v<T> && !std::is_base_of_v<FutureBase, T>;

// The accesses of one task under construction: a few in place, more on the heap.
class AccessList {
 public:
  void add(const void* address, AccessKind kind) {
    if (count_ < few_.size()) {
      few_[count_++] = {address, kind};
      return;
    }
    if (many_.empty()) many_.assign(few_.begin(), few_.end());
    many_.push_back({address, kind});
  }
  [[nodiscard]] std::span<const AccessSpec> span() const noexcept {
    if (!many_.empty()) return many_;
    return {few_.data(), count_};
  }

 private:
  std::size_t count_ = 0;
  std::array<AccessSpec, 6> few_;
  std::vector<AccessSpec> many_;
};

}  // namespace detail

// Describes one task, then spawns it. The children of one task behave as if run in program order;
// two whose accesses do not conflict may overlap. Objects are named by address: nothing is read.
// A builder describes one task and is used by one thread.
class [[nodiscard]] TaskBuilder {
  using Kind = detail::AccessKind;

 public:
  TaskBuilder(const char* name, std::source_location where) noexcept : name_(name), where_(where) {}

  template <class... T>
  // reads; a Future: runs after it has completed
  [[nodiscard]] TaskBuilder& in(const T&... objects) {
    (add(objects, Kind::in), ...);
    return *this;
  }
  template <class... T>
    requires(detail::writable<T> && ...)
  [[nodiscard]] TaskBuilder& out(T&... objects) {  // writes
    (add(objects, Kind::out), ...);
    return *this;
  }
  template <class... T>
    requires(detail::writable<T> && ...)
  [[nodiscard]] TaskBuilder& inout(T&... objects) {  // both
    (add(objects, Kind::inout), ...);
    return *this;
  }
  template <class... T>
    requires(detail::writable<T> && ...)
  [[nodiscard]] TaskBuilder& mutexinoutset(T&... objects) {  // both, in any order, one at a time
    (add(objects, Kind::mutexinoutset), ...);
    return *this;
  }
  template <class... T>
    requires(detail::writable<T> && ...)
  [[nodiscard]] TaskBuilder& inoutset(T&... objects) {  // both, in any order, together
    (add(objects, Kind::inoutset), ...);
    return *this;
  }
  // Larger runs first; default 0.
  [[nodiscard]] TaskBuilder& priority(int level) noexcept {
    priority_ = level;
    return *this;
  }
  // Always resumes on the thread that started it: for bodies that keep errno, pthread_self() or
  // thread-local variables across a wait.
  [[nodiscard]] TaskBuilder& tied() noexcept {
    tied_ = true;
    return *this;
  }
  [[nodiscard]] TaskBuilder& untied() noexcept {  // the default
    tied_ = false;
    return *this;
  }

  // Creates the task and returns at once. Its result, or what it threw, is in the future, which
  // may be dropped: the enclosing finish() waits, and rethrows, all the same.
  // Suspends, if the caller is IMBREX_WINDOW tasks ahead of what has run. Throws Error if one
  // address was given twice with different kinds, and after shutdown.
  template <class F>
    requires std::invocable<std::decay_t<F>&>
  Future<std::invoke_result_t<std::decay_t<F>&>> spawn(F&& function) {
    using R = std::invoke_result_t<std::decay_t<F>&>;
    auto [completion, slot] = submit<R>(std::forward<F>(function), true);
    return Future<R>(completion, slot);
  }
  // The same without a future, a little cheaper.
  template <class F>
    requires std::invocable<std::decay_t<F>&>
  void launch(F&& function) {
    submit<std::invoke_result_t<std::decay_t<F>&>>(std::forward<F>(function), false);
  }

 private:
  template <class T>
  void add(const T& object, Kind kind) {
    if constexpr (std::is_base_of_v<detail::FutureBase, T>) {
      if (!object.valid()) throw Error("imbrex: an empty future given as a dependency of a task");
      accesses_.add(object.completion(), Kind::after);
    } else {
      accesses_.add(std::addressof(object), kind);
    }
  }
  template <class R, class F>
  auto submit(F&& function, bool keep) {
    using Body = detail::Body<std::decay_t<F>, R>;
    static_assert(alignof(Body) <= 64, "a task's closure may be aligned to 64 bytes at most");
    const detail::TaskSpec spec{name_, where_, priority_, tied_, accesses_.span()};
    void* const memory = spec.accesses.empty()
                             ? detail::create(spec, Body::ops, sizeof(Body))
                             : detail::create_with_accesses(spec, Body::ops, sizeof(Body));
    Body* body;
    try {
      body = ::new (memory) Body{std::forward<F>(function), {}};
    } catch (...) {
      detail::discard(memory);
      throw;
    }
    struct Handle {
      detail::Completion* completion;
      detail::Slot<R>* slot;
    };
    return Handle{spec.accesses.empty() ? detail::submit(memory, keep)
                                        : detail::submit_with_accesses(memory, keep),
                  &body->slot};
  }

  const char* name_;
  std::source_location where_;
  int priority_ = 0;
  bool tied_ = false;
  detail::AccessList accesses_;
};

// `name` is not copied: a string literal, or one that outlives the task.
[[nodiscard]] inline TaskBuilder task(
    const char* name, std::source_location where = std::source_location::current()) noexcept {
  return TaskBuilder(name, where);
}

// Ends the running task's access to `object` before the task ends. Throws Error if the running
// task did not declare it.
template <class T>
void release(const T& object) {
  detail::release_access(std::addressof(object));
}

}  // namespace imbrex
