// SPDX-License-Identifier: BSD-3-Clause
// Values as bytes, for other ranks: future_space.hpp and remote.hpp send them.
//
// Copied as bytes: types that are trivially copyable, but not pointers and views. Piece by piece:
// strings, pairs, tuples, optionals, and the containers of the standard library, of such elements.
// For a type of the program, two functions beside it are found by argument-dependent lookup:
//
//   void save(imbrex::Saver& saver, const Particle& one) { saver(one.name, one.at); }
//   void load(imbrex::Loader& loader, Particle& one) { loader(one.name, one.at); }
//
// The type must then be default-constructible. All ranks must have one representation of numbers.
// Thread safety: none; one thread at a time uses a Saver or Loader.
#pragma once

#include "imbrex/detail/language.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "imbrex/error.hpp"

namespace imbrex {

class Saver;
class Loader;

namespace detail {

template <class T>
inline constexpr bool is_view = std::is_pointer_v<T> || std::is_member_pointer_v<T>;
template <class C, class Traits>
inline constexpr bool is_view<std::basic_string_view<C, Traits>> = true;
template <class T, std::size_t N>
inline constexpr bool is_view<std::span<T, N>> = true;

template <class T>
concept saved_by_program = requires(Saver& saver, Loader& loader, const T& from, T& to) {
  save(saver, from);
  load(loader, to);
};
template <class T>
concept saved_as_it_is =
    std::is_trivially_copyable_v<T> && !is_view<T> && !saved_by_program<T>;

template <class T>
inline constexpr bool is_flat = false;
template <class T, class A>
inline constexpr bool is_flat<std::vector<T, A>> = saved_as_it_is<T> && !std::same_as<T, bool>;
template <class C, class Traits, class A>
inline constexpr bool is_flat<std::basic_string<C, Traits, A>> = true;
// A type whose bytes are contiguous; `size()` is the number of elements.
template <class T>
concept flat = is_flat<T>;

template <class T>
struct Element {  // the element type of a container: the key of a map is not const
  using type = std::ranges::range_value_t<T>;
};
template <class T>
  requires requires { typename T::mapped_type; }
struct Element<T> {
  using type = std::pair<typename T::key_type, typename T::mapped_type>;
};

// Written and read part by part, whatever the parts are: a map has pairs with a const part.
template <class T>
inline constexpr bool is_tuple = false;
template <class... T>
inline constexpr bool is_tuple<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_tuple<std::pair<A, B>> = true;
template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t N>
inline constexpr bool is_array<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

}  // namespace detail

/// Appends values to bytes.
class Saver {
 public:
  /// Appends to `bytes`, which must outlive it.
  explicit Saver(std::vector<std::byte>& bytes) noexcept : bytes_(&bytes) {}

  /// Appends the values, one after the other; or `bytes` bytes unchanged. A type that cannot be
  /// sent does not compile. Throws what a save() of the program throws. Never suspends.
  template <class... T>
  void operator()(const T&... values) { (one(values), ...); }
  void write(const void* const data, const std::size_t bytes) {
    const auto* const first = static_cast<const std::byte*>(data);
    bytes_->insert(bytes_->end(), first, first + bytes);
  }

 private:
  template <class T>
  void one(const T& value) {
    using namespace detail;
    if constexpr (saved_by_program<T>) {
      save(*this, value);
    } else if constexpr (is_tuple<T>) {
      std::apply([this](const auto&... parts) { (*this)(parts...); }, value);
    } else if constexpr (saved_as_it_is<T>) {
      write(&value, sizeof value);
    } else if constexpr (is_array<T>) {
      for (const auto& element : value) one(element);
    } else if constexpr (is_optional<T>) {
      one(value.has_value());
      if (value) one(*value);
    } else if constexpr (std::ranges::sized_range<const T> && !is_view<T>) {
      one(static_cast<std::uint64_t>(std::ranges::size(value)));
      if constexpr (flat<T>) {
        write(value.data(), value.size() * sizeof(*value.data()));
      } else {
        for (const auto& element : value) one(element);
      }
    } else {
      static_assert(saved_as_it_is<T>, "this type cannot be sent to another rank: write save() and "
                                       "load() for it, beside it (imbrex/serialise.hpp)");
    }
  }
  std::vector<std::byte>* bytes_;
};

/// Reads values from bytes, in the order in which they were saved. Throws Error at the end of the
/// bytes.
class Loader {
 public:
  /// Reads from `bytes`, which must outlive it.
  explicit Loader(const std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

  /// Reads the values, in the order in which they were saved; or `bytes` bytes unchanged; and
  /// returns the number of bytes that are left. Throw Error where fewer bytes are left than they
  /// need. Never suspend.
  template <class... T>
  void operator()(T&... values) { (one(values), ...); }
  void read(void* const data, const std::size_t bytes) {
    if (bytes > rest_.size()) end_too_early();
    if (bytes != 0) std::memcpy(data, rest_.data(), bytes);
    rest_ = rest_.subspan(bytes);
  }
  [[nodiscard]] std::size_t left() const noexcept { return rest_.size(); }

 private:
  template <class T>
  void one(T& value) {
    using namespace detail;
    if constexpr (saved_by_program<T>) {
      load(*this, value);
    } else if constexpr (is_tuple<T>) {
      std::apply([this](auto&... parts) { (*this)(parts...); }, value);
    } else if constexpr (saved_as_it_is<T>) {
      read(&value, sizeof value);
    } else if constexpr (is_array<T>) {
      for (auto& element : value) one(element);
    } else if constexpr (is_optional<T>) {
      bool has = false;
      one(has);
      value.reset();
      if (has) one(value.emplace());
    } else if constexpr (flat<T>) {
      const std::size_t size = count();
      if (size > rest_.size() / sizeof(*value.data())) end_too_early();
      value.resize(size);
      read(value.data(), size * sizeof(*value.data()));
    } else {
      fill(value);
    }
  }
  template <class T>
  void fill(T& container) {
    container.clear();
    for (std::size_t left = count(); left > 0; --left) {
      typename detail::Element<T>::type element{};
      one(element);
      container.insert(container.end(), std::move(element));
    }
  }
  [[noreturn]] static void end_too_early() {
    throw Error("imbrex: a value from another rank ends too early: its load() reads more than its "
                "save() has written");
  }
  [[nodiscard]] std::size_t count() {
    std::uint64_t size = 0;
    one(size);
    return static_cast<std::size_t>(size);
  }
  std::span<const std::byte> rest_;
};

}  // namespace imbrex
