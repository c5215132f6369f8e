// SPDX-License-Identifier: BSD-3-Clause
// The names of tasks and promises in reports and traces: a literal is used as it is, at no cost;
// any other text is copied, once for each text, and kept until the end of the program.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "imbrex/detail/waist.hpp"

namespace imbrex {

/// Thread safety: any thread may make one; a Name is a value.
class Name {
 public:
  /// Only what is there for the whole program is a constant whose address may be kept. A function
  /// that hands literals on takes a Name too.
  template <std::size_t N>
  consteval Name(const char (&literal)[N]) noexcept : text_(literal) {}

  /// Made at run time: copied, once for each text. Takes a look-up in a table of the process, and
  /// throws std::bad_alloc.
  template <class T>
    requires(std::is_convertible_v<const T&, std::string_view> && !std::is_array_v<T>)
  Name(const T& text) : text_(detail::keep_text(text)) {}
  template <std::size_t N>
  Name(char (&buffer)[N]) : text_(detail::keep_text(static_cast<const char*>(buffer))) {}
  Name(std::nullptr_t) = delete;

  /// Ends with a null character; kept until the end of the program.
  [[nodiscard]] constexpr const char* text() const noexcept { return text_; }

 private:
  const char* text_;
};

}  // namespace imbrex
