// SPDX-License-Identifier: BSD-3-Clause
#include "sequence.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <zlib.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <string_view>
#include <system_error>

namespace smith_waterman {
namespace {

constexpr Letter no_base = 4;  // a letter, but not A, C, G or T
constexpr Letter no_letter = 5;

constexpr std::array<Letter, 256> kinds() {
  std::array<Letter, 256> kinds{};
  for (Letter& kind : kinds) kind = no_letter;
  for (int c = 'A'; c <= 'Z'; ++c) kinds[c] = kinds[c - 'A' + 'a'] = no_base;
  kinds['-'] = kinds['*'] = no_base;
  for (Letter letter = 0; letter < 4; ++letter) {
    kinds[text_of(letter)] = kinds[text_of(letter) - 'A' + 'a'] = letter;
  }
  return kinds;
}

std::string describe(unsigned char c) {
  return std::isprint(c) != 0 ? fmt::format("'{}'", static_cast<char>(c))
                              : fmt::format("byte 0x{:02x}", c);
}

// One pass over the lines of a file.
class Parser {
 public:
  Parser(const std::string& path, const Reading& reading) : path_(path), reading_(reading) {}

  // False once nothing that follows is wanted.
  bool line(std::string_view text) {
    ++number_;
    while (!text.empty() && (text.back() == '\r' || text.back() == ' ' || text.back() == '\t')) {
      text.remove_suffix(1);
    }
    if (text.empty() || text.front() == ';') return true;
    if (text.front() == '>') return header(text.substr(1));
    if (sequence_.records == 0) {
      throw FileError(fmt::format("{}: is not FASTA: line {} begins with {}, where a header that "
                                  "begins with '>' is expected", path_, number_,
                                  describe(static_cast<unsigned char>(text.front()))));
    }
    for (const char c : text) add(static_cast<unsigned char>(c));
    return true;
  }

  Sequence finish() && {
    if (sequence_.records == 0) throw FileError(fmt::format("{}: is empty", path_));
    if (sequence_.letters.empty()) {
      throw FileError(fmt::format("{}: has no base in {}{}", path_,
                                  reading_.all_records ? "any record" : "its first record",
                                  sequence_.dropped > 0 ? ", only letters that are not A, C, G, T"
                                                        : ""));
    }
    return std::move(sequence_);
  }

 private:
  bool header(std::string_view text) {
    for (const char c : text) {
      // Names may have any letters; what no text has makes it another kind of file.
      if (c == '\0') throw FileError(fmt::format("{}: is not FASTA: line {} has a byte 0x00", path_,
                                                 number_));
    }
    if (sequence_.records > 0 && !reading_.all_records) return false;
    if (++sequence_.records == 1) {
      sequence_.name = std::string(text.substr(0, text.find_first_of(" \t")));
    }
    return true;
  }

  void add(unsigned char c) {
    static constexpr std::array<Letter, 256> kind_of = kinds();
    const Letter kind = kind_of[c];
    if (kind < no_base) {
      sequence_.letters.push_back(kind);
    } else if (kind == no_base && !reading_.refuse_others) {
      ++sequence_.dropped;
    } else if (kind == no_base) {
      throw FileError(fmt::format("{}: line {} has {}, which is none of A, C, G, T", path_, number_,
                                  describe(c)));
    } else if (c != ' ' && c != '\t') {
      throw FileError(fmt::format("{}: is not FASTA: line {} has {} in a sequence", path_, number_,
                                  describe(c)));
    }
  }

  const std::string& path_;
  const Reading reading_;
  std::int64_t number_ = 0;  // of the line
  Sequence sequence_;
};

struct Close {
  void operator()(gzFile file) const noexcept { (void)gzclose(file); }
};
using File = std::unique_ptr<gzFile_s, Close>;

// Throws for what cannot be read as a file.
File open(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    throw FileError(fmt::format("{}: {}", path, std::generic_category().message(errno)));
  }
  if (S_ISDIR(status.st_mode)) throw FileError(fmt::format("{}: is a directory", path));
  File file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) {
    throw FileError(fmt::format("{}: {}", path, std::generic_category().message(errno)));
  }
  (void)gzbuffer(file.get(), 1 << 17);
  return file;
}

}  // namespace

Sequence read_fasta(const std::string& path, const Reading& reading) {
  const File file = open(path);
  Parser parser(path, reading);
  std::string line;  // what a piece begins with is put behind what the last one ended with
  std::vector<char> piece(1 << 16);
  bool more = true;
  while (more) {
    const int count = gzread(file.get(), piece.data(), static_cast<unsigned>(piece.size()));
    int code = Z_OK;
    const char* const text = gzerror(file.get(), &code);
    if (count < 0 || (count == 0 && code != Z_OK && code != Z_STREAM_END)) {
      throw FileError(fmt::format("{}: cannot be read: {}", path,
                                  code == Z_ERRNO ? std::generic_category().message(errno)
                                  : code == Z_BUF_ERROR ? "the compressed data end too early"
                                                        : text));
    }
    if (count == 0) break;
    std::string_view rest(piece.data(), static_cast<std::size_t>(count));
    for (auto end = rest.find('\n'); more && end != rest.npos; end = rest.find('\n')) {
      line.append(rest.substr(0, end));
      more = parser.line(line);
      line.clear();
      rest.remove_prefix(end + 1);
    }
    line.append(rest);
  }
  if (more && !line.empty()) (void)parser.line(line);
  return std::move(parser).finish();
}

Sequence parse_fasta(const std::string& text, const std::string& path, const Reading& reading) {
  Parser parser(path, reading);
  std::string_view rest(text);
  bool more = true;
  while (more && !rest.empty()) {
    const auto end = rest.find('\n');
    more = parser.line(rest.substr(0, end));
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  }
  return std::move(parser).finish();
}

std::vector<Letter> random_letters(std::int64_t length, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<Letter> letters(static_cast<std::size_t>(length));
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (i % 32 == 0) bits = generator();
    letters[i] = static_cast<Letter>(bits & 3);
    bits >>= 2;
  }
  return letters;
}

}  // namespace smith_waterman
