// SPDX-License-Identifier: BSD-3-Clause
// A collective that a rank has begun, as the ranks describe it to each other under IMBREX_CHECK:
// its contents, the difference of two, and its text form. Knows no MPI.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace imbrex::mpi::check {

// The order of its start among those of other tasks.
enum class By : std::uint8_t { nothing, key, spawns };
struct Ordering {
  By by = By::nothing;
  std::uint64_t key = 0;
  std::string key_text = {};  // as this rank names it
};

// Arguments that must be equal on all ranks. Empty if the call has no such argument.
struct Alike {
  static constexpr int none = -1;
  int root = none;
  std::string op = {};
  std::int64_t bytes = none;
};

struct Begun {
  std::uint64_t number = 0;  // number among the communicator's collectives on this rank, from 1
  std::string call;          // as the program calls it
  std::string comm;          // its name
  std::string task;          // `"name" (file:line)`
  Alike alike = {};
  Ordering ordering = {};
  bool unordered = false;    // another task has an unordered collective open
};

// The kind of call that must be equal on all ranks: blocking forms, I forms, and large counts are
// one kind.
[[nodiscard]] std::string kind_of(std::string_view call);

// The difference of two, as a list of words; empty: they may belong together. `unordered`: tasks
// are compared, too.
[[nodiscard]] std::string difference(const Begun& one, const Begun& other, bool unordered);

// One line, and the remedy if the two differ.
[[nodiscard]] std::string describe(const Begun& begun);
[[nodiscard]] std::string advise(const Begun& one, const Begun& other);

// The text form in letters. read(): empty if the text is none.
[[nodiscard]] std::string write(const Begun& begun);
[[nodiscard]] std::optional<Begun> read(std::string_view text);

}  // namespace imbrex::mpi::check
