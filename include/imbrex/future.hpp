// SPDX-License-Identifier: BSD-3-Clause
// Futures and promises: a value, or an exception, that is there later.
#pragma once

#include "imbrex/detail/language.hpp"

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <new>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include "imbrex/detail/access.hpp"
#include "imbrex/detail/name.hpp"
#include "imbrex/detail/waist.hpp"
#include "imbrex/error.hpp"

namespace imbrex {

class FutureBase;
class TaskBuilder;
template <class T>
class Future;

namespace detail {

// For plug-ins. The completion is borrowed from the future; null for an empty one.
[[nodiscard]] Completion* completion_of(const FutureBase& future) noexcept;
// Takes over a reference.
[[nodiscard]] Future<void> future_of(Completion* owned) noexcept;

template <class T>
struct PromiseStateOf : PromiseState {
  Slot<T> slot;
};

// A future's way to its value, which counts it there where that matters. REQUIRES: the memory of
// the value outlives it, by a reference to the completion.
template <class T>
class SlotRef {
 public:
  SlotRef() = default;
  explicit SlotRef(Slot<T>* const slot) noexcept : slot_(slot) { add(); }
  SlotRef(const SlotRef& other) noexcept : slot_(other.slot_) { add(); }
  SlotRef(SlotRef&& other) noexcept : slot_(other.slot_) {
    if constexpr (counts_futures<T>) other.slot_ = nullptr;
  }
  SlotRef& operator=(SlotRef) = delete;
  ~SlotRef() {
    if constexpr (counts_futures<T>) {
      // release: whoever finds itself alone comes after all that was read by way of this one
      if (slot_ != nullptr) slot_->futures.count.fetch_sub(1, std::memory_order_release);
    }
  }
  void swap(SlotRef& other) noexcept { std::swap(slot_, other.slot_); }
  [[nodiscard]] Slot<T>* operator->() const noexcept { return slot_; }

 private:
  void add() noexcept {
    if constexpr (counts_futures<T>) {
      // relaxed: who copies has one, or a promise, which keeps the count from being the last
      if (slot_ != nullptr) slot_->futures.count.fetch_add(1, std::memory_order_relaxed);
    }
  }
  Slot<T>* slot_ = nullptr;
};

}  // namespace detail

/// The part of a future that does not depend on the type of its value; Future<T> begins with it.
/// Functions that take any future take this.
/// Thread safety: as Future's.
class FutureBase {
 public:
  FutureBase() = default;
  FutureBase(const FutureBase& other) noexcept : completion_(other.completion_) {
    if (completion_ != nullptr) detail::retain(*completion_);
  }
  FutureBase(FutureBase&& other) noexcept
      : completion_(std::exchange(other.completion_, nullptr)) {}
  FutureBase& operator=(FutureBase other) noexcept {
    std::swap(completion_, other.completion_);
    return *this;
  }
  ~FutureBase() {
    if (completion_ != nullptr) detail::release(*completion_);
  }

  /// False for a future that was default-constructed or moved from. get() empties no future, so
  /// that valid() stays true, as that of a std::shared_future does.
  [[nodiscard]] bool valid() const noexcept { return completion_ != nullptr; }
  /// True when get() returns or throws at once. Never waits. False for an empty future.
  [[nodiscard]] bool ready() const noexcept {
    return completion_ != nullptr && completion_->event.has_fired();
  }

  /// Suspends the running task until the future is ready; rethrows no failure. A thread that is no
  /// worker is blocked. Throws Error for an empty future, in a callback, and after the runtime has
  /// ended, if the future is not ready then.
  void wait() const {
    if (completion_ == nullptr) throw Error("imbrex: wait on an empty future");
    if (!completion_->event.has_fired()) detail::await(*completion_);
  }

 protected:
  explicit FutureBase(detail::Completion* owned) noexcept : completion_(owned) {}
  void wait_and_rethrow() const {
    wait();
    if (completion_->failure != nullptr) [[unlikely]] detail::rethrow_failure(*completion_);
  }
  // False as long as nothing is there.
  [[nodiscard]] bool is_there_or_rethrow() const {
    if (completion_ == nullptr) throw Error("imbrex: try_get() of an empty future");
    if (!completion_->event.has_fired()) return false;
    if (completion_->failure != nullptr) [[unlikely]] detail::rethrow_failure(*completion_);
    return true;
  }
  friend detail::Completion* detail::completion_of(const FutureBase& future) noexcept;
  detail::Completion* completion_ = nullptr;
};

namespace detail {
inline Completion* completion_of(const FutureBase& future) noexcept { return future.completion_; }
}  // namespace detail

/// A value, or an exception, that is there later. Copies share it.
/// Thread safety: copies may be used by different tasks and threads; so may one object, by its
/// const members: several may ask, wait, copy it, and give it as a dependency, at once.
template <class T>
class Future : public FutureBase {
 public:
  Future() = default;
  Future(const Future&) = default;
  Future(Future&&) = default;
  Future& operator=(Future other) noexcept {
    slot_.swap(other.slot_);
    std::swap(completion_, other.completion_);
    return *this;
  }

  /// Suspends until the value is there; rethrows what the task threw. Throws BrokenPromise if
  /// nobody can set it any more, and Error if get() of an rvalue has moved the value out. The
  /// reference is valid as long as a future of the value lives.
  [[nodiscard]] const T& get() const& {
    wait_and_rethrow();
    check_not_taken();
    return slot_->value;
  }
  /// As get() above, from an rvalue: moves the value out if no other Future of it lives, and no
  /// Promise that could make one; else copies it. A value that cannot be copied is moved out also
  /// while a Promise lives, whose future() throws Error from then on; where another Future holds
  /// it, and where it was moved out before, get() throws Error. What the value's move constructor
  /// throws, the caller gets; the value counts as moved out all the same. (A struct with a
  /// std::vector of such values deletes its copy constructor, which the language would declare.)
  /// Where T cannot be moved either, get() of an rvalue is the one above.
  [[nodiscard]] T get() &&
    requires std::move_constructible<T>
  {
    wait_and_rethrow();
    if constexpr (detail::counts_futures<T>) {
      constexpr bool copyable = detail::is_copyable<T>;
      const bool ours = detail::take_value(*completion_, slot_->futures, copyable);
      if (ours || !copyable) return std::move(slot_->value);
    }
    if constexpr (detail::is_copyable<T>) return slot_->value;
  }
  /// Never waits: the value, or null as long as it is not there. Throws what get() would. A task
  /// that asks again and again calls yield() in between.
  [[nodiscard]] const T* try_get() const& {
    if (!is_there_or_rethrow()) return nullptr;
    check_not_taken();
    return &slot_->value;
  }
  const T* try_get() const&& = delete;  // the value may end with the future

 private:
  friend class TaskBuilder;
  template <class U>
  friend class Promise;
  template <class U>
  friend class FutureSpace;
  template <class... U>
  friend Future<std::size_t> when_any(const Future<U>&... futures);
  template <class F>
    requires std::derived_from<F, FutureBase>
  friend Future<std::size_t> when_any(const std::vector<F>& futures);
  Future(detail::Completion* owned, detail::Slot<T>* slot) noexcept
      : FutureBase(owned), slot_(slot) {}
  void check_not_taken() const {
    if constexpr (detail::counts_futures<T>) {
      detail::check_not_taken(*completion_, slot_->futures);
    }
  }
  detail::SlotRef<T> slot_;
};

/// The end of something that has no value.
template <>
class Future<void> : public FutureBase {
 public:
  Future() = default;
  /// Suspends until it has come; rethrows what the task threw, as that of Future<T>.
  void get() const { wait_and_rethrow(); }
  /// Never waits: false as long as get() would. Throws what get() would.
  [[nodiscard]] bool try_get() const { return is_there_or_rethrow(); }

 private:
  friend class TaskBuilder;
  template <class U>
  friend class Promise;
  friend Future<void> detail::future_of(detail::Completion* owned) noexcept;
  explicit Future(detail::Completion* owned, detail::Slot<void>* = nullptr) noexcept
      : FutureBase(owned) {}
};

namespace detail {
inline Future<void> future_of(Completion* const owned) noexcept { return Future<void>(owned); }
}  // namespace detail

/// The other end of a future: whoever has it sets the value. A Promise<void> stands for something
/// that happens once, and may be far away: a message of a device, a callback of another library.
/// Copies share one value; when the last is gone and none was set, the future throws BrokenPromise.
/// Thread safety: any thread may set, also one that imbrex does not know. What set() wakes may
/// destroy the promise before set() has returned.
template <class T>
class Promise {
  using State = detail::PromiseStateOf<T>;

 public:
  /// Allocates. Reports show `name` and the place in the program.
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
  /// A text that was handed on, by emplace() and the like: whether it was a literal cannot be seen.
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

  /// A future of the value. Throws Error if the value, which cannot be copied, was moved out by
  /// another future.
  [[nodiscard]] Future<T> future() const {
    detail::retain(*state_);
    Future<T> made(state_, &state_->slot);
    if constexpr (!std::is_void_v<T> && !detail::is_copyable<T>) {
      detail::check_not_taken(*state_, state_->slot.futures);
    }
    return made;
  }

  /// Builds the value from `args`: the future is ready, and the tasks that wait for it go on. Never
  /// waits. What T's constructor throws, get() rethrows. Throws Error if a value or an exception
  /// was set before.
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
  /// The tasks that wait for the value fail, and get() rethrows `error`. Never waits. Throws Error
  /// if `error` is null, and if a value or an exception was set before.
  void set_exception(std::exception_ptr error) const {
    if (error == nullptr) detail::throw_no_exception(*state_, "set_exception");
    if (!detail::take(*state_)) detail::throw_set_twice(*state_);
    detail::fail(*state_, std::move(error));
    detail::complete(*state_);
  }

 private:
  State* state_;
};

/// Ready when all are, at once if there are none; get() rethrows the first failure in the order of
/// the arguments. Never waits. Throws Error if one of the futures is empty.
template <class... T>
[[nodiscard]] Future<void> when_all(const Future<T>&... futures) {
  const std::array<detail::Completion*, sizeof...(T)> parts{detail::completion_of(futures)...};
  return detail::future_of(detail::join_all(parts));
}
template <class F>
  requires std::derived_from<F, FutureBase>
[[nodiscard]] Future<void> when_all(const std::vector<F>& futures) {
  std::vector<detail::Completion*> parts;
  for (const F& future : futures) parts.push_back(detail::completion_of(future));
  return detail::future_of(detail::join_all(parts));
}

/// Ready when the first has a value, with its position among the arguments, from 0 on. A failure
/// counts only if all fail: then get() rethrows the first failure in argument order. Never waits.
/// Throws Error if there are no futures, or one of them is empty.
template <class... T>
[[nodiscard]] Future<std::size_t> when_any(const Future<T>&... futures) {
  const std::array<detail::Completion*, sizeof...(T)> parts{detail::completion_of(futures)...};
  detail::Completion* const joint = detail::join_any(parts);
  return Future<std::size_t>(joint, &detail::joint_index(*joint));
}
template <class F>
  requires std::derived_from<F, FutureBase>
[[nodiscard]] Future<std::size_t> when_any(const std::vector<F>& futures) {
  std::vector<detail::Completion*> parts;
  for (const F& future : futures) parts.push_back(detail::completion_of(future));
  detail::Completion* const joint = detail::join_any(parts);
  return Future<std::size_t>(joint, &detail::joint_index(*joint));
}

/// Returns at once; the running task, once its body has ended, keeps its dependents waiting until
/// `future` is ready. If the future fails, the task fails, as if its body had thrown that.
/// (OpenMP: detach.) Throws Error outside a task, and if `future` is empty.
inline void release_after(const FutureBase& future) {
  if (!future.valid()) throw Error("imbrex: release_after an empty future");
  detail::release_after(*detail::completion_of(future));
}

/// Returns at once; the running task's access to `object`, named as it was for in() or out(), ends
/// when `future` is ready, perhaps long after the task: that is complete, and its future ready, at
/// the end of its body. A finish() around the task waits for `future` too, a taskwait() does not.
/// If the future fails, the tasks that begin from what the access has left inherit the failure, and
/// a finish() around throws it. Throws Error if the running task did not declare the access, or has
/// released it, and if `future` is empty.
template <class T>
void release_after(const FutureBase& future, T&& object) {
  if (!future.valid()) throw Error("imbrex: release_after an empty future");
  detail::end_named<T>(object, [&future](const void* const address, const std::size_t bytes) {
    detail::release_access_after(*detail::completion_of(future), address, bytes);
  });
}

/// Returns at once; the innermost finish() around the running code, be it open in the running task
/// or around that, waits for `future` too, also when the task has long ended, and rethrows its
/// failure. Throws Error if there is no finish() around, or `future` is empty.
inline void finish_owns(const FutureBase& future) {
  if (!future.valid()) throw Error("imbrex: finish_owns() of an empty future");
  detail::hold_finish(*detail::completion_of(future));
}

}  // namespace imbrex
