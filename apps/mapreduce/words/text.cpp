// SPDX-License-Identifier: BSD-3-Clause
#include "text.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "hash.hpp"

namespace mapreduce {

// A file in memory, for reading.
struct Text::File {
  explicit File(std::string of) : path(std::move(of)) {
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) fail(std::strerror(errno));
    struct stat about {};
    const int known = fstat(descriptor, &about);
    if (known == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
      size = static_cast<std::size_t>(about.st_size);
      address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    }
    const int error = errno;
    close(descriptor);
    if (known == 0 && !S_ISREG(about.st_mode)) {
      fail("is no ordinary file; ranks read their parts of it, so it cannot be a pipe or a folder");
    }
    if (known == 0 && size == 0) fail("is empty");
    if (known != 0 || address == MAP_FAILED) fail(std::strerror(error));
  }
  ~File() { munmap(address, size); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[noreturn]] void fail(const char* const why) const {
    throw std::runtime_error(fmt::format("{}: {}", path, why));
  }

  std::string path;
  void* address = MAP_FAILED;
  std::size_t size = 0;
};

Text::Text(const std::vector<std::string>& paths, const int repeat)
    : repeat_(static_cast<std::uint64_t>(repeat)) {
  for (const std::string& path : paths) {
    const File& file = *files_.emplace_back(std::make_unique<File>(path));
    pieces_.push_back({once_, file.size, static_cast<const char*>(file.address)});
    once_ += file.size + 1;
  }
}

Text::Text(const Random& random) : random_(random) {
  constexpr std::uint64_t block = 1 << 16;  // each reader makes its blocks again
  for (std::uint64_t left = random.bytes; left > 0;) {
    const std::uint64_t size = std::min(left, block);
    pieces_.push_back({once_, size, nullptr});
    once_ += size + 1;
    left -= size;
  }
}

Text::~Text() = default;
Text::Text(Text&&) noexcept = default;

std::size_t Text::piece_at(const std::uint64_t position) const noexcept {
  const auto after = std::ranges::upper_bound(pieces_, position, {}, &Piece::first);
  return static_cast<std::size_t>(after - pieces_.begin()) - 1;
}

std::string Text::random_block(const std::size_t index) const {
  const auto size = static_cast<std::size_t>(pieces_[index].size);
  std::string block;
  block.reserve(size + 16);
  for (std::uint64_t word = 0; block.size() < size; ++word) {
    std::uint64_t letters =
        mixed(mixed(mixed(random_.seed) + index) + word) % random_.vocabulary;
    letters = mixed(letters + 1);
    for (std::uint64_t length = 3 + letters % 8; length > 0; --length) {
      block += static_cast<char>('a' + letters % 26);
      letters = mixed(letters);
    }
    block += ' ';
  }
  block.resize(size);
  return block;
}

void Text::check(const std::uint64_t begin, const std::uint64_t end) const {
  for (std::size_t index = 0; index < files_.size(); ++index) {
    const Piece& piece = pieces_[index];
    if (piece.first >= end || piece.first + piece.size <= begin) continue;
    const auto from = static_cast<std::size_t>(std::max(begin, piece.first) - piece.first);
    const auto to = static_cast<std::size_t>(std::min(end, piece.first + piece.size) - piece.first);
    const std::string_view all{piece.bytes, static_cast<std::size_t>(piece.size)};
    const void* const zero = std::memchr(piece.bytes + from, 0, to - from);
    if (zero != nullptr) {
      files_[index]->fail(fmt::format("is not text: byte {} is zero",
                                      static_cast<const char*>(zero) - piece.bytes).c_str());
    }
    for_each_word_in(all, from, to, [&](const std::string_view word) {
      if (word.size() <= word_bytes_max) return;
      files_[index]->fail(fmt::format("has a word of {} bytes from byte {} on, and at most {} are "
                                      "allowed; is it text?", word.size(),
                                      word.data() - piece.bytes, word_bytes_max).c_str());
    });
  }
}

}  // namespace mapreduce
