// SPDX-License-Identifier: BSD-3-Clause
// Sequences of bases: from FASTA files, plain or compressed by gzip, and at random.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "../kernel/kernel.hpp"

namespace smith_waterman {

// The reason why a file is refused; the text names the file and the place in it.
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Sequence {
  std::string name;  // of its (first) record, up to the first blank
  std::vector<Letter> letters;
  std::int64_t dropped = 0;  // letters that are not A, C, G, T
  std::int64_t records = 0;  // in the file
};

// Says which parts of a file are read.
struct Reading {
  bool all_records = false;     // one after the other, as one sequence; else the first only
  bool refuse_others = false;   // letters other than A, C, G, T, which are dropped else
};

// Throws FileError. A header begins with '>', a comment with ';'; small letters count as large.
[[nodiscard]] Sequence read_fasta(const std::string& path, const Reading& reading);
// Reads a sequence from `text`, as read_fasta() does; messages name `path`.
[[nodiscard]] Sequence parse_fasta(const std::string& text, const std::string& path,
                                   const Reading& reading);

// Each letter equally likely, the same on every machine.
[[nodiscard]] std::vector<Letter> random_letters(std::int64_t length, std::uint64_t seed);

[[nodiscard]] constexpr char text_of(Letter letter) noexcept { return "AGCT"[letter]; }

}  // namespace smith_waterman
