// SPDX-License-Identifier: BSD-3-Clause
// Futures and promises: a value, or an exception, that is there later.
#pragma once

#include "imbrex/detail/language.hpp"

#include <concepts>
#include <cstddef>
#include <new>
#include <ranges>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include "imbrex/detail/access.hpp"
#include "imbrex/detail/name.hpp"
#include "imbrex/detail/waist.hpp"
#include "imbrex/error.hpp"

namespace imbrex {

class TaskBuilder;
template <class T>
class Future;

namespace detail {

// Memory in which a value is built later; void needs none.
template <class T>
union Slot {
  static_assert(std::is_same_v<T, std::remove_cvref_t<T>>,
                "the value of a future, promise or task is neither const nor a reference: give it "
                "as a copy, a pointer, or a std::reference_wrapper");
  Slot() noexcept {}
  ~Slot() {}
  T value;
};
template <>
union Slot<void> {};

template <class T>
struct PromiseStateOf : PromiseState {
  Slot<T> slot;
};

// The part that all futures share: one reference to a completion.
class FutureBase {
 public:
  FutureBase() = default;
  FutureBase(const FutureBase& other) noexcept : completion_(other.completion_) {
    if (completion_ != nullptr) retain(*completion_);
  }
  FutureBase(FutureBase&& other) noexcept
      : completion_(std::exchange(other.completion_, nullptr)) {}
  FutureBase& operator=(FutureBase other) noexcept {
    std::swap(completion_, other.completion_);
    return *this;
  }
  ~FutureBase() {
    if (completion_ != nullptr) release(*completion_);
  }

  // False for a future that was default-constructed or moved from. get() empties no future, so that
  // valid() stays true, as that of a std::shared_future does.
  [[nodiscard]] bool valid() const noexcept { return completion_ != nullptr; }
  [[nodiscard]] bool ready() const noexcept {
    return completion_ != nullptr && completion_->event.has_fired();
  }

  // Suspends the running task until the value is there; throws nothing of the task's.
  void wait() const {
    if (completion_ == nullptr) throw Error("imbrex: wait on an empty future");
    if (!completion_->event.has_fired()) await(*completion_);
  }

  [[nodiscard]] Completion* completion() const noexcept { return completion_; }

 protected:
  explicit FutureBase(Completion* owned) noexcept : completion_(owned) {}
  void wait_and_rethrow() const {
    wait();
    if (completion_->failure != nullptr) [[unlikely]] rethrow_failure(*completion_);
  }
  Completion* completion_ = nullptr;
};

}  // namespace detail

// Thread safety: copies may be used by different tasks and threads; so may one object, by what is
// const: it may be asked, waited for, copied and given as a dependency by several at once.
template <class T>
class Future : public detail::FutureBase {
 public:
  Future() = default;

  // Suspends until the value is there; rethrows what the task threw. From an rvalue the value is
  // moved out, which other copies then see. Throws BrokenPromise if nobody can set it any more.
  [[nodiscard]] const T& get() const& {
    wait_and_rethrow();
    return slot_->value;
  }
  [[nodiscard]] T get() && {
    wait_and_rethrow();
    return std::move(slot_->value);
  }

 private:
  friend class TaskBuilder;
  template <class U>
  friend class Promise;
  template <class U>
  friend class FutureSpace;
  Future(detail::Completion* owned, detail::Slot<T>* slot) noexcept
      : FutureBase(owned), slot_(slot) {}
  detail::Slot<T>* slot_ = nullptr;
};

template <>
class Future<void> : public detail::FutureBase {
 public:
  Future() = default;
  // Takes over a reference; for plug-ins.
  explicit Future(detail::Completion* owned) noexcept : FutureBase(owned) {}
  void get() const { wait_and_rethrow(); }

 private:
  friend class Phaser;
  friend class TaskBuilder;
  template <class U>
  friend class Promise;
  Future(detail::Completion* owned, detail::Slot<void>*) noexcept : FutureBase(owned) {}
};

// The other end of a future. Copies share one value; when the last is gone and none was set, the
// future throws BrokenPromise.
// Thread safety: any thread may set, also one that imbrex does not know.
template <class T>
class Promise {
  using State = detail::PromiseStateOf<T>;

 public:
  explicit Promise(Name name = "promise",
                   std::source_location where = std::source_location::current())
      : state_(new State) {
    state_->references.store(1, std::memory_order_relaxed);  // the holders' common one
    state_->failure = nullptr;
    state_->kind = detail::CompletionKind::promise;
    state_->name = name.text();
    state_->where = where;
    state_->plain = std::is_void_v<T> || std::is_trivially_destructible_v<T>;
    state_->destroy = [](detail::PromiseState& base) noexcept {
      State& state = static_cast<State&>(base);
      if constexpr (!std::is_void_v<T>) {
        const bool is_there = state.event.has_fired() && state.failure == nullptr;
        if (is_there) detail::destroy_object(state.slot.value);
      }
      delete &state;
    };
  }
  // A text that was handed on, by emplace() and the like: whether it was a literal cannot be seen.
  template <std::size_t N>
  explicit Promise(const char (&name)[N],
                   std::source_location where = std::source_location::current())
      : Promise(Name(static_cast<const char*>(name)), where) {}
  Promise(const Promise& other) noexcept : state_(other.state_) {
    if (state_) state_->holders.fetch_add(1, std::memory_order_relaxed);  // we hold one: not zero
  }
  Promise(Promise&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Promise& operator=(Promise other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Promise() {
    if (state_ != nullptr) detail::drop_holder(*state_);
  }

  [[nodiscard]] Future<T> future() const {
    detail::retain(*state_);
    return Future<T>(state_, &state_->slot);
  }

  // Throws Error if a value or an exception was set before.
  template <class... Args>
    requires(std::is_void_v<T> ? sizeof...(Args) == 0 : std::constructible_from<T, Args...>)
  void set(Args&&... args) const {
    if (!detail::take(*state_)) detail::throw_set_twice(*state_);
    if constexpr (!std::is_void_v<T>) {
      try {
        ::new (static_cast<void*>(&state_->slot.value)) T(std::forward<Args>(args)...);
      } catch (...) {
        detail::fail(*state_, std::current_exception());
      }
    }
    detail::complete(*state_);
  }
  // What waits for the value fails, and get() rethrows `error`. Throws Error if that is null, too.
  void set_exception(std::exception_ptr error) const {
    if (error == nullptr) detail::throw_no_exception(*state_, "set_exception");
    if (!detail::take(*state_)) detail::throw_set_twice(*state_);
    detail::fail(*state_, std::move(error));
    detail::complete(*state_);
  }

 private:
  State* state_;
};

// Completes when all have; get() rethrows the first failure in argument order.
template <class... T>
[[nodiscard]] Future<void> when_all(const Future<T>&... futures) {
  detail::Completion* const parts[] = {futures.completion()...};
  return Future<void>(detail::join_all(parts));
}
template <class F>
  requires detail::is_future<F>
[[nodiscard]] Future<void> when_all(const std::vector<F>& futures) {
  std::vector<detail::Completion*> parts;
  for (const F& future : futures) parts.push_back(future.completion());
  return Future<void>(detail::join_all(parts));
}

// The future of the first that has a value: its position. What fails counts only if all do.
class [[nodiscard]] FirstOf : public Future<void> {
 public:
  using Future<void>::Future;
  // Suspends. The position, among the arguments, of the first that has a value; 0 if all fail.
  [[nodiscard]] std::size_t get() const {
    wait();
    return detail::joint_index(*completion_);
  }
};
template <class... T>
[[nodiscard]] FirstOf when_any(const Future<T>&... futures) {
  detail::Completion* const parts[] = {futures.completion()...};
  return FirstOf(detail::join_any(parts));
}
template <class F>
  requires detail::is_future<F>
[[nodiscard]] FirstOf when_any(const std::vector<F>& futures) {
  std::vector<detail::Completion*> parts;
  for (const F& future : futures) parts.push_back(future.completion());
  return FirstOf(detail::join_any(parts));
}

// As release_after(event, object) of event.hpp, for a future, which may fail: then the failure is
// handed on to those who begin from what the access has left, and a finish() around throws it.
// Throws Error if `future` is empty, too.
template <class T>
void release_after(const detail::FutureBase& future, T&& object) {
  if (!future.valid()) throw Error("imbrex: release_after an empty future");
  detail::end_named<T>(object, [&future](const void* const address, const std::size_t bytes) {
    detail::release_access_after(*future.completion(), address, bytes);
  });
}

// Returns at once; the innermost finish() around the running code, be it open in the running task
// or around that, waits for `future` too, also when the task has long ended, and rethrows its
// failure. Throws Error if there is no finish() around, or `future` is empty.
inline void finish_owns(const detail::FutureBase& future) {
  if (!future.valid()) throw Error("imbrex: finish_owns() of an empty future");
  detail::hold_finish(*future.completion());
}

namespace detail {

// What a task may await: future() makes a future of it. mpi.hpp adds requests.
template <class T>
struct Awaited;
template <class T>
  requires is_future<T>
struct Awaited<T> {
  [[nodiscard]] static const T& future(const T& future) noexcept { return future; }
};
template <class T>  // as deduced from T&&
concept awaitable =
    requires(T&& thing) { Awaited<std::remove_cvref_t<T>>::future(std::forward<T>(thing)); };
// A vector, an array, ... of such things.
template <class T>
concept awaitable_range = !awaitable<T> && std::ranges::input_range<T> &&
                          awaitable<std::ranges::range_reference_t<T>>;

// Calls visit(const FutureBase&) for `thing`, or for each of its elements.
template <class T, class Visit>
void each_future(T&& thing, Visit visit) {
  if constexpr (awaitable<T>) {
    visit(Awaited<std::remove_cvref_t<T>>::future(std::forward<T>(thing)));
  } else {
    for (auto&& element : thing) each_future(std::forward<decltype(element)>(element), visit);
  }
}

}  // namespace detail

}  // namespace imbrex
