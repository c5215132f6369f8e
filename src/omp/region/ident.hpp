// SPDX-License-Identifier: BSD-3-Clause
// What LLVM's compilers pass to each call: the place in the program. Used by all of llvm/, and by
// tasks/, which name a queued task by its place.
//
// Every call also gets the number of the thread that it is made on. It is stable while a function
// of the program runs, as the compiler reads it once. Nothing here uses it: a call finds the
// Context of its task by current(), since a thread runs other tasks while one waits.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <source_location>

namespace imbrex::omp {

// The compiler's `ident_t`, a constant.
struct Ident {
  std::int32_t reserved1;
  std::int32_t flags;
  std::int32_t reserved2;
  std::int32_t reserved3;
  const char* text;  // ";file;function;line;column;;"
};
inline constexpr std::int32_t atomic_reduction = 0x10;  // a flag: there is code with atomics

// What reports and traces print of a construct.
struct Construct {
  const char* task = "task";  // name of its tasks: "function:line" if the compiler knows the place
  std::source_location place;
};
[[nodiscard]] Construct known_construct(const Ident& where);
// GCC's compilers pass no place.
[[nodiscard]] inline Construct construct_at(const Ident* const where) {
  return where == nullptr ? Construct{} : known_construct(*where);
}

}  // namespace imbrex::omp
