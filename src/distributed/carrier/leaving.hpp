// SPDX-License-Identifier: BSD-3-Clause
// The rule for objects whose end is collective: an object that ends because an exception leaves its
// scope does not wait for other ranks. It *leaves*: the program reaches its catch block, and the
// other ranks get an Error that names this rank. docs/design/errors.md has the reasons.
#pragma once

#include <cstddef>
#include <exception>
#include <string>

namespace imbrex::distributed {

// Member of each object whose end is collective.
class Leaving {
 public:
  // Whether the object ends because an exception leaves its scope. REQUIRES: called by the
  // destructor.
  [[nodiscard]] bool is_unwound() const noexcept { return std::uncaught_exceptions() > before_; }
  // From now on, and until over(), reports of a stall say that an exception has ended `object` on
  // this rank. Never throws.
  void begin(const std::string& object) noexcept;
  // All ranks know it. Any thread.
  void over() noexcept;

  // Appends the lines of these reports, each ended, at most `lines_max`. Any thread.
  static void describe(std::size_t lines_max, std::string& text);

  // The text of the Error on another rank. `object` as begin() has it.
  [[nodiscard]] static std::string text(int rank, const std::string& object);

 private:
  const int before_ = std::uncaught_exceptions();
};

}  // namespace imbrex::distributed
