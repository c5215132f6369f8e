// SPDX-License-Identifier: BSD-3-Clause
// A text of files, one after the other, some times over; or of random words. A word is a longest
// run of bytes that are not white space (as of isspace() in the C locale), so UTF-8 is kept as it
// is; it ends with its file at the latest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace mapreduce {

// Longer words are no text (encoded pictures, ...), and their length fits into two bytes.
inline constexpr std::size_t word_bytes_max = 65535;

[[nodiscard]] constexpr bool is_space(const char byte) noexcept {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

// Thread safety: as a constant.
class Text {
 public:
  // Maps the files into memory: they must not change while they are used. Throws std::runtime_error
  // with what is wrong if one cannot be read, is no ordinary file, or is empty.
  Text(const std::vector<std::string>& paths, int repeat);
  // About so many bytes of lower-case words of 3 to 10 letters, equally probable, out of so many.
  struct Random {
    std::uint64_t bytes = 0;
    std::uint64_t vocabulary = 0;
    std::uint64_t seed = 1;
  };
  explicit Text(const Random& random);
  ~Text();
  Text(Text&&) noexcept;

  // Positions are bytes of the files as one, each with a separator after it.
  [[nodiscard]] std::uint64_t size() const noexcept { return once_ * repeat_; }
  [[nodiscard]] std::uint64_t size_of_files() const noexcept { return once_; }
  [[nodiscard]] std::uint64_t repeat() const noexcept { return repeat_; }

  // Calls visit(std::string_view) for each word that begins in [begin, end). A view is good until
  // visit returns.
  template <class Visit>
  void for_each_word(std::uint64_t begin, std::uint64_t end, Visit&& visit) const;

  // Throws std::runtime_error if this part has a zero byte, which is no text, or begins a word that
  // is too long. The part's share of one round through the files is looked at.
  void check(std::uint64_t begin, std::uint64_t end) const;

 private:
  struct File;
  // One file, or block of random words, at its position in one round.
  struct Piece {
    std::uint64_t first = 0;
    std::uint64_t size = 0;
    const char* bytes = nullptr;  // null: random
  };
  [[nodiscard]] std::size_t piece_at(std::uint64_t position) const noexcept;
  [[nodiscard]] std::string random_block(std::size_t index) const;

  std::vector<std::unique_ptr<File>> files_;
  std::vector<Piece> pieces_;
  std::uint64_t once_ = 0;
  std::uint64_t repeat_ = 1;
  Random random_;
};

// Words of `text` that begin in [begin, end).
template <class Visit>
void for_each_word_in(const std::string_view text, std::size_t begin, const std::size_t end,
                      Visit&& visit) {
  if (begin > 0) {  // who has the byte before has its word
    while (begin < end && !is_space(text[begin - 1]) && !is_space(text[begin])) ++begin;
  }
  for (;;) {
    while (begin < end && is_space(text[begin])) ++begin;
    if (begin >= end) return;
    std::size_t after = begin + 1;
    while (after < text.size() && !is_space(text[after])) ++after;
    visit(text.substr(begin, after - begin));
    begin = after;
  }
}

template <class Visit>
void Text::for_each_word(std::uint64_t begin, const std::uint64_t end, Visit&& visit) const {
  while (begin < end) {
    const std::uint64_t round = begin / once_ * once_;
    const std::size_t index = piece_at(begin - round);
    const Piece& piece = pieces_[index];
    const std::uint64_t first = round + piece.first;
    const auto from = static_cast<std::size_t>(begin - first);
    const auto to = static_cast<std::size_t>(std::min(end - first, piece.size));
    if (piece.bytes != nullptr) {
      for_each_word_in({piece.bytes, static_cast<std::size_t>(piece.size)}, from, to, visit);
    } else {
      for_each_word_in(random_block(index), from, to, visit);
    }
    begin = first + piece.size + 1;
  }
}

}  // namespace mapreduce
