// SPDX-License-Identifier: BSD-3-Clause
// An access names an object by its address, the object that a pointer points to by at(), or many
// elements by range(). A wrong argument, which would order nothing and go unnoticed, does not
// compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "imbrex/detail/waist.hpp"

namespace imbrex {

class FutureBase;  // future.hpp
template <class T>
class Promise;

/// An access to the object that `pointer` points to. Made by at().
template <class T>
struct At {
  T* pointer;
};

/// An access to `bytes` bytes of memory from `begin` on. Made by range().
template <class T>
struct Range {
  T* begin;
  std::size_t bytes;
};

/// Names the object that `pointer` points to, as an access or for release(): the same object as
/// *pointer. Any thread; never suspends. Throws Error if `pointer` is null.
template <class T>
[[nodiscard]] At<T> at(T* pointer) {
  static_assert(!std::is_function_v<T>, "imbrex: a function is no memory that a task accesses");
  if (pointer == nullptr) [[unlikely]] detail::throw_null_access("at()");
  return {pointer};
}

/// Names `count` elements: the access conflicts with every access of a sibling, by range or not,
/// that overlaps this memory. With 0 elements there is no access. Any thread; never suspends.
/// Throws Error if `pointer` is null, and if `count` elements cannot exist there.
template <class T>
[[nodiscard]] Range<T> range(T* pointer, const std::size_t count) {
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
  if (count > (UINTPTR_MAX - begin) / sizeof(T)) [[unlikely]] detail::throw_long_range();
  if (pointer == nullptr && count != 0) [[unlikely]] detail::throw_null_access("range()");
  return {pointer, count * sizeof(T)};
}
/// Names all elements of an array, a vector, a span or a similar container, which must outlive the
/// task. Any thread; never suspends.
template <class Container>
  requires requires(Container& container) { std::data(container) + std::size(container); }
[[nodiscard]] auto range(Container&& container) {
  static_assert(std::is_lvalue_reference_v<Container> || std::ranges::enable_view<Container>,
                "imbrex: the elements of a temporary are gone before the task runs");
  return range(std::data(container), std::size(container));
}

namespace detail {

// Pointers that the program treats as objects: handles of MPI (mpi.hpp).
template <class T>
inline constexpr bool is_handle = false;

template <class T>
inline constexpr bool is_future = std::is_base_of_v<FutureBase, T>;
template <class T>
inline constexpr bool is_future_list = false;
template <class F, class A>
inline constexpr bool is_future_list<std::vector<F, A>> = is_future<F>;
template <class T>
inline constexpr bool is_promise = false;
template <class T>
inline constexpr bool is_promise<Promise<T>> = true;
template <class T>
inline constexpr bool has_address = false;
template <class T>
inline constexpr bool has_address<At<T>> = true;
template <class T>
inline constexpr bool has_address<Range<T>> = true;

// A type that stands for objects elsewhere and is copied: its own address means nothing.
template <class T>
inline constexpr bool is_stand_in =
    std::is_same_v<std::remove_cv_t<T>, std::vector<bool>::reference> ||
    std::ranges::enable_view<std::remove_cv_t<T>>;

// T is deduced from T&&: an lvalue reference unless a temporary was given.
template <class T>
constexpr void check_named() {
  using Object = std::remove_cvref_t<T>;
  if constexpr (!is_future<Object> && !has_address<Object>) {
    static_assert(std::is_lvalue_reference_v<T>,
                  "imbrex: an access names an object by its address, through an lvalue reference: "
                  "a temporary value has none that another task could name");
    static_assert(!std::is_pointer_v<Object> || is_handle<Object>,
                  "imbrex: a pointer names itself, not what it points to: write imbrex::at(p) for "
                  "that, or imbrex::at(&p) for the pointer");
    static_assert(!is_stand_in<Object>,
                  "imbrex: a view or a proxy names itself, not the elements that it stands for: "
                  "name them by imbrex::range(), or the first by imbrex::at()");
    static_assert(!std::is_function_v<std::remove_reference_t<T>>,
                  "imbrex: a function is no memory that a task accesses");
    static_assert(!is_future_list<Object>,
                  "imbrex: an access to a vector of futures does not wait for them: give "
                  "when_all() or when_any() of it to in()");
    static_assert(!is_promise<Object>,
                  "imbrex: an access to a Promise does not wait for it: give its future() to in()");
  }
}

// A task may write neither a constant nor a future. Its own task sets a future, once. An argument
// that names no object at all passes here, and a later check tells the program why it is wrong.
template <class T>
inline constexpr bool is_constant = std::is_const_v<T> && !std::is_pointer_v<T> && !is_stand_in<T>;
template <class T>
inline constexpr bool is_constant<At<T>> = std::is_const_v<T>;
template <class T>
inline constexpr bool is_constant<const At<T>> = std::is_const_v<T>;
template <class T>
inline constexpr bool is_constant<Range<T>> = std::is_const_v<T>;
template <class T>
inline constexpr bool is_constant<const Range<T>> = std::is_const_v<T>;
// An object of no size, or of unknown size, counts as one byte.
template <class T>
[[nodiscard]] constexpr std::size_t bytes_of() noexcept {
  if constexpr (std::is_void_v<T>) {
    return 1;
  } else if constexpr (requires { sizeof(T); }) {
    return sizeof(T) == 0 ? 1 : sizeof(T);
  } else {
    return 1;
  }
}

// Calls add(AccessSpec) for each access of the object.
template <class T, class Add>
void each_spec(T* const object, const AccessKind kind, Add add) {
  if constexpr (bytes_of<T>() <= AccessSpec::bytes_max) {
    add(AccessSpec{object, kind, bytes_of<T>()});
  } else {
    add(AccessSpec{object, kind, 0});
    add(AccessSpec{object + 1, AccessKind::object_end});
  }
}
template <class T, class Add>
void each_spec(const Range<T>& range, const AccessKind kind, Add add) {
  if (range.bytes == 0) return;
  add(AccessSpec{range.begin, kind, 0});
  add(AccessSpec{reinterpret_cast<const std::byte*>(range.begin) + range.bytes,
                 AccessKind::range_end});
}

template <class T>
[[nodiscard]] T* named_by(T& object) noexcept {
  return std::addressof(object);
}
template <class T>
[[nodiscard]] T* named_by(const At<T>& at) noexcept {
  return at.pointer;
}
template <class T>
[[nodiscard]] const Range<T>& named_by(const Range<T>& range) noexcept {
  return range;
}

// Calls end(address, bytes) for the object that `object` names, as for in() or out(); `bytes` is 0
// if it is no range.
template <class T, class End>
void end_named(const std::remove_reference_t<T>& object, End end) {
  using Object = std::remove_cvref_t<T>;
  static_assert(!is_future<Object>, "imbrex: a future is no access that could be released");
  check_named<T>();
  if constexpr (has_address<Object> && requires { object.bytes; }) {
    if (object.bytes != 0) end(static_cast<const void*>(object.begin), object.bytes);
  } else {
    end(static_cast<const void*>(named_by(object)), std::size_t{0});
  }
}

}  // namespace detail

/// Any object that a task may name as written: no constant, and no future.
template <class T>
concept writable = !detail::is_future<std::remove_cvref_t<T>> &&
                   !detail::is_constant<std::remove_reference_t<T>>;

/// Ends the running task's access to `object`, named as it was for in() or out(), before the task
/// ends; a range as a whole. Never suspends. Throws Error if the running task did not declare the
/// access.
template <class T>
void release(T&& object) {
  detail::end_named<T>(object, [](const void* const address, const std::size_t bytes) {
    detail::release_access(address, bytes);
  });
}

}  // namespace imbrex
