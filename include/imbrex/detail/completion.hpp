// SPDX-License-Identifier: BSD-3-Clause
// The memory of an event, of a completion (a value or a failure that comes once), and of its value.
// Layout only, so that headers can read it without a call; waist.hpp has the functions that change
// it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace imbrex::detail {

struct Failure;  // src/task/failure.hpp

// Thread safety: any thread. `head` is a stack of waiters until it becomes `fired` for ever; its
// lowest bit but one is a short lock. Only src/task/event_word.hpp changes it.
struct EventWord {
  static constexpr std::uintptr_t fired = 1;
  std::atomic<std::uintptr_t> head{0};

  [[nodiscard]] bool has_fired() const noexcept {
    return head.load(std::memory_order_acquire) == fired;  // pairs with the release in fire()
  }
};

enum class CompletionKind : std::uint8_t {
  task,     // the end of a task
  promise,  // set by a holder of the promise, perhaps a thread that imbrex does not know
  joint,    // all or any of several completions
  named,    // a promise that any thread can set by its name
  phaser,   // fires when no signaller of a phaser is left
  phase,    // a promise that a phaser sets at the end of a phase
  remote    // a RemoteState: a promise that messages of other processes set
};

// Whether a task runs on the stack of its parent, which waits for it.
enum class InPlace : std::uint8_t {
  no,
  runs,
  ends  // about to be complete, or to find that it has more to do before
};

// The base of tasks, promises, when_all and when_any.
struct Completion {
  std::atomic<std::uint32_t> references;  // at zero the memory is reused
  CompletionKind kind;
  std::atomic<InPlace> in_place;  // tasks: written by the parent; src/task/access/in_place.hpp
  std::atomic<bool> shared;       // tasks: other code than the parent may use the parent's future
  EventWord event;           // fires when the value, or `failure`, is there
  Failure* failure;         // null, or why there is no value: written once, before `event` fires
};

// Whether a value can be copied. A container claims to be copyable whatever its elements are.
template <class T>
inline constexpr bool is_copyable = std::is_copy_constructible_v<T>;
template <class T>
  requires requires { typename T::value_type; } && (!std::is_same_v<typename T::value_type, T>)
inline constexpr bool is_copyable<T> =
    std::is_copy_constructible_v<T> && is_copyable<typename T::value_type>;
// Pairs and tuples claim it, too.
template <class T, std::size_t... part>
consteval bool has_copyable_parts(std::index_sequence<part...> /*parts*/) {
  return (is_copyable<std::tuple_element_t<part, T>> && ...);
}
template <class T>
  requires(requires { std::tuple_size<T>::value; } && !requires { typename T::value_type; })
inline constexpr bool is_copyable<T> =
    std::is_copy_constructible_v<T> &&
    has_copyable_parts<T>(std::make_index_sequence<std::tuple_size<T>::value>());

// Matches std::variant, without its header.
template <template <class...> class Variant, class... T>
  requires requires(const Variant<T...>& it) {
    it.valueless_by_exception();
    it.index();
  }
inline constexpr bool is_copyable<Variant<T...>> =
    std::is_copy_constructible_v<Variant<T...>> && (is_copyable<T> && ...);

// Whether a get() that gives a value away must know the other holders. It need not where a copy
// costs no more than a move: such a value is always copied.
template <class T>
inline constexpr bool counts_futures = !std::is_trivially_copyable_v<T> || !is_copyable<T>;

template <bool counted>
struct FutureCount {};
template <>
struct FutureCount<true> {
  static constexpr std::uint32_t taken_out = std::uint32_t{1} << 31;
  std::atomic<std::uint32_t> count{0};  // any thread; number of Future objects that could read the
                                        // value
  // Names the task that has moved the value out, for reports; that task writes it, just after it
  // has set `taken_out`. relaxed: the text is kept for ever.
  std::atomic<const char*> taker{nullptr};

  [[nodiscard]] bool is_taken_out() const noexcept {
    return (count.load(std::memory_order_relaxed) & taken_out) != 0;
  }
};

// Memory in which a value is built later; void needs none.
template <class T>
struct Slot {
  static_assert(std::is_same_v<T, std::remove_cvref_t<T>>,
                "the value of a future, promise or task is neither const nor a reference: give it "
                "as a copy, a pointer, or a std::reference_wrapper");
  Slot() noexcept {}
  ~Slot() {}
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  union {
    T value;
  };
  [[no_unique_address]] FutureCount<counts_futures<T>> futures;
};
template <>
struct Slot<void> {};

}  // namespace imbrex::detail
