// SPDX-License-Identifier: BSD-3-Clause
// Futures and promises: a value, or an exception, that is available later.
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
#include "imbrex/name.hpp"
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

// The pointer of a future to its value, which counts the futures of the value where that matters.
// REQUIRES: a reference to the completion keeps the memory of the value alive.
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
      // release: a thread that finds its future to be the last one sees all earlier reads
      if (slot_ != nullptr) slot_->futures.count.fetch_sub(1, std::memory_order_release);
    }
  }
  void swap(SlotRef& other) noexcept { std::swap(slot_, other.slot_); }
  [[nodiscard]] Slot<T>* operator->() const noexcept { return slot_; }

 private:
  void add() noexcept {
    if constexpr (counts_futures<T>) {
      // relaxed: the copying thread holds a future or a promise, so the count is not zero
      if (slot_ != nullptr) slot_->futures.count.fetch_add(1, std::memory_order_relaxed);
    }
  }
  Slot<T>* slot_ = nullptr;
};

}  // namespace detail

/// The part of a future that does not depend on the type of its value; Future<T> derives from it.
/// Functions that take any future take a FutureBase. Thread safety: any thread may call const
/// members of one object at once.
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
  /// worker blocks. Throws Error for an empty future, in a callback, and after the end of the
  /// runtime if the future is not ready.
  void wait() const {
    if (completion_ == nullptr) throw Error("imbrex: wait on an empty future");
    if (!completion_->event.has_fired() ||
        detail::records_waits.load(std::memory_order_relaxed)) {
      detail::await(*completion_);
    }
  }

 protected:
  explicit FutureBase(detail::Completion* owned) noexcept : completion_(owned) {}
  void wait_and_rethrow() const {
    wait();
    if (completion_->failure != nullptr) [[unlikely]] detail::rethrow_failure(*completion_);
  }
  // False while the value is not there.
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

/// A value, or an exception, that is available later. Copies share it. Thread safety: several tasks
/// and threads may use copies, or the const members of one object, at once: ask, wait, copy, and
/// give it as a dependency.
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

  /// Suspends until the value is there; rethrows the exception of the task. Throws BrokenPromise if
  /// no promise is left to set it, and Error if get() of an rvalue has moved the value out. The
  /// reference is valid as long as a future of the value lives.
  [[nodiscard]] const T& get() const& {
    wait_and_rethrow();
    check_not_taken();
    return slot_->value;
  }
  /// get() of an rvalue moves the value out if no other Future of it lives, and no Promise that
  /// could make one; else it copies the value. Suspends, and throws, as get() above. A value that
  /// cannot be copied is moved out also while a Promise lives, whose future() throws Error from
  /// then on. get() throws Error where another Future holds such a value, and where it was moved
  /// out before. An exception of the move constructor goes to the caller; the value still counts as
  /// moved out. (A struct with a std::vector of such values must delete its copy constructor, which
  /// the language would declare.) Where T cannot be moved, get() of an rvalue is the function
  /// above.
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
  /// Never waits: returns the value, or null while it is not there. Throws what get() would throw.
  /// A task that asks in a loop calls yield() in between.
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

/// A future without a value: something that ends. Thread safety: as for all futures.
template <>
class Future<void> : public FutureBase {
 public:
  Future() = default;
  /// Suspends until the end has come; rethrows the exception of the task.
  void get() const { wait_and_rethrow(); }
  /// Never waits: returns false while get() would wait. Throws what get() would throw.
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

/// The end of a future that sets the value. A Promise<void> stands for something that happens once,
/// perhaps far away: a message of a device, a callback of another library. Copies share one value;
/// when the last copy is gone without a value, the future throws BrokenPromise. Thread safety: any
/// thread may set, also a thread that imbrex does not know. A task that set() wakes may destroy the
/// promise before set() has returned.
template <class T>
class Promise {
  using State = detail::PromiseStateOf<T>;

 public:
  /// Allocates. Reports show `name` and the place in the program.
  explicit Promise(Name name = "promise",
                   std::source_location where = std::source_location::current())
      : state_(new State) {
    state_->references.store(1, std::memory_order_relaxed);  // the one reference that all holders
                                                             // share
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
  /// For a `const char*` that emplace() and similar functions hand on: it may be no literal, so it
  /// is copied.
  template <std::size_t N>
  explicit Promise(const char (&name)[N],
                   std::source_location where = std::source_location::current())
      : Promise(Name(static_cast<const char*>(name)), where) {}
  Promise(const Promise& other) noexcept : state_(other.state_) {
    // the caller holds one, so the count is not zero
    if (state_) state_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  Promise(Promise&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Promise& operator=(Promise other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Promise() {
    if (state_ != nullptr) detail::drop_holder(*state_);
  }

  /// Returns a future of the value. Never waits. Throws Error if another future has moved the value
  /// out, and it cannot be copied.
  [[nodiscard]] Future<T> future() const {
    detail::retain(*state_);
    Future<T> made(state_, &state_->slot);
    if constexpr (!std::is_void_v<T> && !detail::is_copyable<T>) {
      detail::check_not_taken(*state_, state_->slot.futures);
    }
    return made;
  }

  /// Builds the value from `args`: the future is ready, and the tasks that wait for it go on. Never
  /// waits. get() rethrows an exception of T's constructor. Throws Error if a value or an exception
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

/// Returns a future that is ready when all of `futures` are, at once if there are none. get()
/// rethrows the first failure in the order of the arguments. Never waits. Throws Error if one of
/// the futures is empty.
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

/// Returns a future that is ready when the first of `futures` has a value; its value is the
/// position of that future among the arguments, from 0 on. A failure counts only if all futures
/// fail: get() then rethrows the first failure in argument order. Never waits. Throws Error if
/// there are no futures, or one of them is empty.
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

/// Keeps the dependents of the running task waiting, after its body has ended, until `future` is
/// ready. Returns at once. If the future fails, the task fails with the same exception. (OpenMP:
/// detach.) Throws Error outside a task, and if `future` is empty.
inline void release_after(const FutureBase& future) {
  if (!future.valid()) throw Error("imbrex: release_after an empty future");
  detail::release_after(*detail::completion_of(future));
}

/// Ends the running task's access to `object`, named as it was for in() or out(), when `future` is
/// ready, perhaps long after the task. Returns at once. The task itself is complete, and its future
/// ready, at the end of its body. A finish() around the task waits for `future` too; a taskwait()
/// does not. If the future fails, the tasks that begin from this access fail, and a finish() around
/// throws the failure. Throws Error if the running task did not declare the access, or has released
/// it, and if `future` is empty.
template <class T>
void release_after(const FutureBase& future, T&& object) {
  if (!future.valid()) throw Error("imbrex: release_after an empty future");
  detail::end_named<T>(object, [&future](const void* const address, const std::size_t bytes) {
    detail::release_access_after(*detail::completion_of(future), address, bytes);
  });
}

/// Makes the innermost finish() around the running code wait for `future`, too, and rethrow its
/// failure. The finish() may be open in the running task or around it; the task may end long
/// before. Returns at once. Throws Error if there is no finish() around, or `future` is empty.
inline void finish_owns(const FutureBase& future) {
  if (!future.valid()) throw Error("imbrex: finish_owns() of an empty future");
  detail::hold_finish(*detail::completion_of(future));
}

}  // namespace imbrex
