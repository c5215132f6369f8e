// SPDX-License-Identifier: BSD-3-Clause
// The names of tasks and promises in reports and traces: a literal is used as it is, at no cost;
// any other text is copied, once for each text, and kept until the end of the program.
#pragma once

#include "imbrex/detail/language.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "imbrex/detail/waist.hpp"

namespace imbrex {

/// A name of a task or a promise. Thread safety: any thread may make one; a Name is a value.
class Name {
 public:
  /// Takes a string literal, whose address is kept: only a text that lives for the whole program is
  /// a constant expression. A function that hands literals on takes a Name, too.
  template <std::size_t N>
  consteval Name(const char (&literal)[N]) noexcept : text_(literal) {}

  /// Copies a text that is made at run time, once for each text. Looks it up in a table of the
  /// process, and throws std::bad_alloc.
  template <class T>
    requires(std::is_convertible_v<const T&, std::string_view> && !std::is_array_v<T>)
  Name(const T& text) : text_(detail::keep_text(text)) {}
  template <std::size_t N>
  Name(char (&buffer)[N]) : text_(detail::keep_text(static_cast<const char*>(buffer))) {}
  Name(std::nullptr_t) = delete;

  /// Returns the text, null-terminated; it is kept until the end of the program.
  [[nodiscard]] constexpr const char* text() const noexcept { return text_; }

 private:
  const char* text_;
};

}  // namespace imbrex
