// SPDX-License-Identifier: BSD-3-Clause
// A collective that a rank has begun, as the ranks tell each other of it under IMBREX_CHECK: what
// is said, how two of them differ, and the text that carries one. Knows no MPI.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace imbrex::mpi::check {

// What orders its start among those of other tasks.
enum class By : std::uint8_t { nothing, key, spawns };
struct Ordering {
  By by = By::nothing;
  std::uint64_t key = 0;
  std::string key_text = {};  // as this rank names it
};

// Arguments that all ranks must give alike. What a call has none of is empty.
struct Alike {
  static constexpr int none = -1;
  int root = none;
  std::string op = {};
  std::int64_t bytes = none;
};

struct Begun {
  std::uint64_t number = 0;  // of the communicator's collectives on this rank, from 1
  std::string call;          // as the program calls it
  std::string comm;          // its name
  std::string task;          // `"name" (file:line)`
  Alike alike = {};
  Ordering ordering = {};
  bool unordered = false;    // another task has one open that it has no order with
};

// What has to be the same on all ranks of a call: blocking and I forms, and those of large counts,
// are one.
[[nodiscard]] std::string kind_of(std::string_view call);

// How they differ, as a list of words; empty: they may belong together. `unordered`: tasks are
// compared, too.
[[nodiscard]] std::string difference(const Begun& one, const Begun& other, bool unordered);

// One line, and what to do if these two differ.
[[nodiscard]] std::string describe(const Begun& begun);
[[nodiscard]] std::string advise(const Begun& one, const Begun& other);

// For letters. read(): nothing if it is none.
[[nodiscard]] std::string write(const Begun& begun);
[[nodiscard]] std::optional<Begun> read(std::string_view text);

}  // namespace imbrex::mpi::check
