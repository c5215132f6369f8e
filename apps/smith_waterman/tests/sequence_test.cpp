// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <string>

#include "sequence/sequence.hpp"

namespace smith_waterman {
namespace {

std::string text_of(const Sequence& sequence) {
  std::string text;
  for (const Letter letter : sequence.letters) text += smith_waterman::text_of(letter);
  return text;
}

std::string letters(const std::string& text, const Reading& reading = {}) {
  return text_of(parse_fasta(text, "x.fa", reading));
}

// Returns the reason why the text is refused; empty if it is not.
std::string refusal(const std::string& text, const Reading& reading = {}) {
  try {
    (void)parse_fasta(text, "x.fa", reading);
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

// A file that is removed at the end.
class File {
 public:
  explicit File(const std::string& bytes) {
    const int file = mkstemp(path_.data());
    close(file);
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~File() { (void)std::remove(path_.c_str()); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "smith_waterman.XXXXXX";
};

std::string compressed(const std::string& text) {
  const File file("");
  gzFile out = gzopen(file.path().c_str(), "wb");
  (void)gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  (void)gzclose(out);
  std::ifstream in(file.path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string file_refusal(const std::string& path) {
  try {
    (void)read_fasta(path, {});
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

TEST(Fasta, reads_letters_of_either_size_over_lines_of_any_length) {
  EXPECT_EQ(letters(">x\nACGT\nacgt\n\nA\n"), "ACGTACGTA");
  EXPECT_EQ(letters(">x\r\nAC\r\nGT"), "ACGT");
  EXPECT_EQ(letters("\n;old\n>x\n;old\nA C\tG\n"), "ACG");
  EXPECT_EQ(parse_fasta(">seq1 a virus\nA\n", "x", {}).name, "seq1");
  EXPECT_EQ(parse_fasta(">\nA\n", "x", {}).name, "");
}

TEST(Fasta, takes_the_first_record_or_all) {
  const std::string text = ">x\nAC\n>y\nGT\n>z\nA\n";
  EXPECT_EQ(letters(text), "AC");
  EXPECT_EQ(letters(text, {.all_records = true}), "ACGTA");
  EXPECT_EQ(parse_fasta(text, "x", {.all_records = true}).records, 3);
  // Records that are not read are not checked.
  EXPECT_EQ(letters(">x\nAC\n>y\n\x01\n"), "AC");
}

TEST(Fasta, drops_or_refuses_other_letters) {
  const Sequence sequence = parse_fasta(">x\nANNC-*u\n", "x.fa", {});
  EXPECT_EQ(text_of(sequence), "AC");
  EXPECT_EQ(sequence.dropped, 5);
  EXPECT_EQ(refusal(">x\nAC\nAN\n", {.refuse_others = true}),
            "x.fa: line 3 has 'N', which is none of A, C, G, T");
}

TEST(Fasta, refuses_what_is_none) {
  EXPECT_EQ(refusal(""), "x.fa: is empty");
  EXPECT_EQ(refusal("\n \n;c\n"), "x.fa: is empty");
  EXPECT_EQ(refusal("ACGT\n"), "x.fa: is not FASTA: line 1 begins with 'A', where a header that "
                               "begins with '>' is expected");
  EXPECT_EQ(refusal("@read\nACGT\n+\nIIII\n"),
            "x.fa: is not FASTA: line 1 begins with '@', where a header that begins with '>' is "
            "expected");
  EXPECT_EQ(refusal(">x\n"), "x.fa: has no base in its first record");
  EXPECT_EQ(refusal(">x\n>y\nA\n"), "x.fa: has no base in its first record");
  EXPECT_EQ(refusal(">x\nNN\n"),
            "x.fa: has no base in its first record, only letters that are not A, C, G, T");
  EXPECT_EQ(refusal(">x\nAC1\n"), "x.fa: is not FASTA: line 2 has '1' in a sequence");
  EXPECT_EQ(refusal(std::string(">x\0\nAC\n", 7)), "x.fa: is not FASTA: line 1 has a byte 0x00");
  EXPECT_EQ(refusal(">x\nA\x7f\n"), "x.fa: is not FASTA: line 2 has byte 0x7f in a sequence");
}

TEST(Fasta, reads_files_plain_and_compressed) {
  std::mt19937 random(3);
  std::string text = ">long\n";
  std::string expected;
  for (int i = 0; i < 200'000; ++i) {  // more than what is read at once
    const char letter = "ACGT"[random() % 4];
    text += letter;
    expected += letter;
    if (i < 100'000 && random() % 60 == 0) text += '\n';
  }
  const File plain(text);
  const File packed(compressed(text));
  EXPECT_EQ(text_of(read_fasta(plain.path(), {})), expected);
  EXPECT_EQ(text_of(read_fasta(packed.path(), {})), expected);
  const std::string whole = compressed(text);
  const File cut(whole.substr(0, whole.size() / 2));
  EXPECT_EQ(file_refusal(cut.path()),
            cut.path() + ": cannot be read: the compressed data end too early");
  std::string damaged = whole;
  damaged[damaged.size() / 2] = static_cast<char>(~damaged[damaged.size() / 2]);
  const File broken(damaged);
  EXPECT_NE(file_refusal(broken.path()), "");
}

TEST(Fasta, says_why_a_file_cannot_be_opened) {
  EXPECT_EQ(file_refusal("/no/such/file"), "/no/such/file: No such file or directory");
  EXPECT_EQ(file_refusal("/tmp"), "/tmp: is a directory");
  const File empty("");
  EXPECT_EQ(file_refusal(empty.path()), empty.path() + ": is empty");
}

TEST(Fasta, reads_or_refuses_whatever_bytes_come) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    std::string text = random() % 2 == 0 ? ">x\n" : "";
    const std::string likely = "ACGTNacgtn>;\n\r -*";
    const auto length = random() % 200;
    for (unsigned i = 0; i < length; ++i) {
      text += random() % 30 == 0 ? static_cast<char>(random() % 256)
                                 : likely[random() % likely.size()];
    }
    const Reading reading{.all_records = random() % 2 == 0, .refuse_others = random() % 8 == 0};
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    try {
      const Sequence sequence = parse_fasta(text, "x.fa", reading);
      EXPECT_FALSE(sequence.letters.empty());
      EXPECT_LE(sequence.letters.size() + static_cast<std::size_t>(sequence.dropped), text.size());
      for (const Letter letter : sequence.letters) EXPECT_LT(letter, 4);
    } catch (const FileError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("x.fa: ", 0), 0U);
    }
    // A file of this text, which may look compressed by chance, is refused exactly if the text is.
    if (seed % 50 != 0) continue;
    const File file(text);
    EXPECT_EQ(refusal(text).empty(), file_refusal(file.path()).empty());
  }
}

TEST(Random, is_the_same_for_a_seed_and_has_all_letters) {
  EXPECT_EQ(random_letters(1000, 7), random_letters(1000, 7));
  EXPECT_NE(random_letters(1000, 7), random_letters(1000, 8));
  std::vector<int> count(4);
  for (const Letter letter : random_letters(40'000, 1)) ++count.at(letter);
  for (const int letters : count) EXPECT_NEAR(letters, 10'000, 500);
}

}  // namespace
}  // namespace smith_waterman
