// SPDX-License-Identifier: BSD-3-Clause
// Tests of mapreduce, run on 1, 2 and 4 ranks. Methodology: every rank runs the same tests in the
// same order; words are compared with those that a stream reads, products with plain loops, and
// each variant must bring every piece to its rank once.
#include <gtest/gtest.h>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.h>
#include <mpi.h>

#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

#include "../../harness/program.hpp"
#include "matvec/matvec.hpp"
#include "shuffle/timed.hpp"
#include "shuffle/variants.hpp"
#include "words/word_count.hpp"

namespace mapreduce {
namespace {

// A file of this rank's own, that is gone at the end.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& content)
      : path_(testing::TempDir() + "mapreduce_test." + std::to_string(getpid()) + "." +
              std::to_string(++number_)) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~ScratchFile() { std::remove(path_.c_str()); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  static inline int number_ = 0;
  std::string path_;
};

std::vector<std::string> words_by_stream(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

const std::string prose =
    "  The quick brown\tfox \xc3\xa9t\xc3\xa9 jumps\r\nover the the the lazy dog\v\f, na\xc3\xafve "
    "a-very-long-word-that-is-longer-than-many-chunks-are x y  z\n";

TEST(text, is_the_same_words_wherever_it_is_cut) {
  const ScratchFile one(prose);
  const ScratchFile two("ends without a space");
  const Text text({one.path(), two.path(), one.path()}, 2);
  const std::string all = prose + " ends without a space " + prose + ' ';
  EXPECT_EQ(text.size(), 2 * all.size());
  const std::vector<std::string> expected = words_by_stream(all + all);
  for (std::uint64_t a = 0; a <= text.size(); a += 3) {
    for (std::uint64_t b = a; b <= text.size(); b += 7) {
      std::vector<std::string> words;
      const auto visit = [&](const std::string_view word) { words.emplace_back(word); };
      text.for_each_word(0, a, visit);
      text.for_each_word(a, b, visit);
      text.for_each_word(b, text.size(), visit);
      ASSERT_EQ(words, expected) << "cut at " << a << " and " << b;
    }
  }
}

TEST(random_text, has_about_the_bytes_and_the_words_that_were_asked_for) {
  const Text text(Text::Random{.bytes = 200'000, .vocabulary = 50, .seed = 3});
  std::set<std::string> different;
  std::uint64_t bytes = 0;
  text.for_each_word(0, text.size(), [&](const std::string_view word) {
    if (word.size() >= 3) different.emplace(word);  // the last of a block may be cut
    bytes += word.size() + 1;
  });
  EXPECT_NEAR(static_cast<double>(bytes), 200'000, 10);
  EXPECT_GE(different.size(), 45U);
  EXPECT_LE(different.size(), 60U);
  EXPECT_EQ(digest_of(count_serially(text)), digest_of(count_serially(Text(
      Text::Random{.bytes = 200'000, .vocabulary = 50, .seed = 3}))));
  EXPECT_NE(digest_of(count_serially(text)).hash, digest_of(count_serially(Text(
      Text::Random{.bytes = 200'000, .vocabulary = 50, .seed = 4}))).hash);
}

void expect_refused(const std::string& path, const std::string& why) {
  try {
    const Text text({path}, 1);
    text.check(0, text.size_of_files());
    ADD_FAILURE() << path << " was accepted";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
  }
}

TEST(text, a_file_without_text_is_refused_with_the_reason) {
  expect_refused("/nowhere/at/all", "/nowhere/at/all: No such file");
  expect_refused(testing::TempDir(), "no ordinary file");
  const ScratchFile empty("");
  expect_refused(empty.path(), "is empty");
  const ScratchFile binary(std::string("text\0text", 9));
  expect_refused(binary.path(), "byte 4 is zero");
  const ScratchFile longest("x " + std::string(word_bytes_max, 'a') + " x");
  EXPECT_NO_THROW(Text({longest.path()}, 1).check(0, word_bytes_max + 4));
  const ScratchFile longer("x " + std::string(word_bytes_max + 1, 'a') + " x");
  expect_refused(longer.path(), "a word of 65536 bytes from byte 2 on");
}

void expect_counts(const Ranking& ranking, const std::vector<std::string>& words) {
  std::map<std::string, std::uint64_t> expected;
  for (const std::string& word : words) ++expected[word];
  EXPECT_EQ((std::map<std::string, std::uint64_t>(ranking.begin(), ranking.end())), expected);
  EXPECT_EQ(ranking.size(), expected.size());
  for (std::size_t k = 1; k < ranking.size(); ++k) {
    EXPECT_GE(ranking[k - 1].second, ranking[k].second);
  }
}

void run(const Variant& variant, Program& program, const int chunks, const int batches = 3) {
  Times times;
  program.begin();
  variant.run(program, {MPI_COMM_WORLD, chunks, batches}, times);
  program.end();
}

TEST(word_count, every_variant_counts_as_a_stream_does) {
  std::string shuffled;
  for (int k = 0; k < 3000; ++k) {
    shuffled += "w" + std::to_string(k * k % 701) + (k % 9 != 0 ? " " : "\n");
  }
  for (const std::string& content : {prose, std::string("one"), std::string(" \n "), shuffled}) {
    const ScratchFile file(content);
    const Text text({file.path()}, 3);
    const std::vector<std::string> words =
        words_by_stream(content + " " + content + " " + content);
    for (const int chunks : {1, 5, 40}) {
      WordCount count(text, MPI_COMM_WORLD, chunks);
      for (const Variant& variant : all_variants) {
        SCOPED_TRACE(testing::Message() << variant.name << ", " << chunks << " chunks, "
                                        << content.size() << " bytes");
        run(variant, count, chunks);
        EXPECT_EQ(digest_of_all(count.counts(), MPI_COMM_WORLD), digest_of(count_serially(text)));
        const Ranking ranking = gather(count.counts(), MPI_COMM_WORLD);
        if (apps::rank_of_all() == 0) expect_counts(ranking, words);
      }
    }
  }
}

TEST(word_count, pieces_are_not_longer_than_promised) {
  std::string letters;  // the worst: each another word, of which all bytes are for one rank
  for (int k = 1; k < 256; ++k) {
    if (!is_space(static_cast<char>(k))) letters += std::string(1, static_cast<char>(k)) + " ";
  }
  const ScratchFile file(letters);
  const Text text({file.path()}, 1);
  for (const int chunks : {1, 7}) {
    WordCount count(text, MPI_COMM_SELF, chunks);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      Output output(1);
      count.map({chunk, chunk + 1}, output);
      EXPECT_GE(output[0].size(), 11U);
      EXPECT_LE(output[0].size(), count.piece_bytes_max());
    }
  }
}

TEST(digest, tells_counts_apart) {
  const Digest digest = digest_of({{"a", 1}, {"b", 2}});
  EXPECT_EQ(digest, digest_of({{"b", 2}, {"a", 1}}));
  EXPECT_NE(digest, digest_of({{"a", 2}, {"b", 1}}));  // as many words
  EXPECT_NE(digest, digest_of({{"a", 1}, {"c", 2}}));
  EXPECT_EQ(digest.words, 3U);
  EXPECT_EQ(digest.distinct, 2U);
}

// The product of all of A by plain loops.
std::vector<long double> product_serially(const std::int64_t n) {
  std::vector<long double> y(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      y[static_cast<std::size_t>(i)] += static_cast<long double>(entry(i, j)) * entry(j, n);
    }
  }
  return y;
}

TEST(matrix_vector_product, every_variant_finds_the_product_of_plain_loops) {
  for (const std::int64_t n : {1, 3, 64, 129}) {
    const std::vector<long double> expected = product_serially(n);
    for (const int chunks : {1, 4, 50}) {
      MatVec product(n, MPI_COMM_WORLD, chunks);
      for (const Variant& variant : all_variants) {
        SCOPED_TRACE(testing::Message() << variant.name << ", n " << n << ", " << chunks);
        run(variant, product, chunks);
        for (std::size_t row = 0; row < product.y().size(); ++row) {
          const auto i = row * static_cast<std::size_t>(apps::ranks_of_all()) +
                         static_cast<std::size_t>(apps::rank_of_all());
          ASSERT_NEAR(product.y()[row], static_cast<double>(expected[i]), 1e-13 * n) << i;
        }
        EXPECT_LE(product.error(), 1);
      }
    }
  }
}

// Loses the first piece that the first rank is to reduce.
class Forgetful : public Program {
 public:
  explicit Forgetful(Program& program) : program_(program) {}
  void begin() override { program_.begin(); }
  void map(Chunks chunks, Output& output) override { program_.map(chunks, output); }
  void reduce(std::span<const std::byte> tuples) override {
    const bool lost = apps::rank_of_all() == 0 && !tuples.empty() && !forgotten_.exchange(true);
    if (!lost) program_.reduce(tuples);
  }
  void end() override { program_.end(); }
  [[nodiscard]] std::size_t piece_bytes_max() const override { return program_.piece_bytes_max(); }

 private:
  Program& program_;
  std::atomic<bool> forgotten_{false};
};

TEST(checks, notice_a_piece_that_is_lost) {
  const Text text(Text::Random{.bytes = 100'000, .vocabulary = 500, .seed = 1});
  const Digest expected = digest_of(count_serially(text));
  for (const Variant& variant : all_variants) {
    SCOPED_TRACE(variant.name);
    WordCount count(text, MPI_COMM_WORLD, 6);
    Forgetful words(count);
    run(variant, words, 6);
    EXPECT_NE(digest_of_all(count.counts(), MPI_COMM_WORLD), expected);
    MatVec product(60, MPI_COMM_WORLD, 6);
    Forgetful forgetful(product);
    run(variant, forgetful, 6);
    EXPECT_GT(product.error(), 1);
  }
}

// A map of chunk c on rank s makes for rank d a piece of a size of its own, some empty, some long,
// that says so in each of its words.
class Labels : public Program {
 public:
  void begin() override { seen_.clear(); }
  void map(const Chunks chunks, Output& output) override {
    for (std::uint32_t chunk = static_cast<std::uint32_t>(chunks.first);
         chunk < static_cast<std::uint32_t>(chunks.end); ++chunk) {
      for (std::uint32_t to = 0; to < output.size(); ++to) {
        const auto from = static_cast<std::uint32_t>(apps::rank_of_all());
        const std::vector<std::uint32_t> label{from, to, chunk};
        const std::size_t times = times_of(label);
        for (std::size_t k = 0; k < times; ++k) append(output[to], label.data(), 3);
      }
    }
  }
  void reduce(const std::span<const std::byte> tuples) override {
    const std::lock_guard guard(lock_);
    for (const std::byte* at = tuples.data(); at != tuples.data() + tuples.size();) {
      std::vector<std::uint32_t> label(3);
      read(at, label.data(), 3);
      ++seen_[label];
    }
  }
  [[nodiscard]] std::size_t piece_bytes_max() const override { return times_max * 12; }

  void expect_all(const int chunks) const {
    std::map<std::vector<std::uint32_t>, std::size_t> expected;
    for (int from = 0; from < apps::ranks_of_all(); ++from) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const std::vector<std::uint32_t> label{static_cast<std::uint32_t>(from),
                                               static_cast<std::uint32_t>(apps::rank_of_all()),
                                               static_cast<std::uint32_t>(chunk)};
        if (times_of(label) != 0) expected[label] = times_of(label);
      }
    }
    EXPECT_EQ(seen_, expected);
  }

 private:
  static constexpr std::size_t times_max = 30'000;
  [[nodiscard]] static std::size_t times_of(const std::vector<std::uint32_t>& label) {
    const std::uint64_t hash = mixed(label[0] * 1000 + label[1] * 100 + label[2]);
    return hash % 3 == 0 ? 0 : hash % 3 == 1 ? hash / 3 % 7 : hash / 3 % times_max;
  }
  std::mutex lock_;
  std::map<std::vector<std::uint32_t>, std::size_t> seen_;
};

TEST(variants, bring_each_piece_to_its_rank_once) {
  Labels labels;
  for (const Variant& variant : all_variants) {
    constexpr std::tuple<int, int> shapes[] = {{1, 1}, {12, 4}, {12, 100}};
    for (const auto& [chunks, batches] : shapes) {
      SCOPED_TRACE(testing::Message() << variant.name << ", " << chunks << " chunks");
      run(variant, labels, chunks, batches);
      labels.expect_all(chunks);
    }
  }
}

// Returns how many exchanges of a run go block by block.
unsigned long long decomposed(const Variant& variant) {
  Labels labels;
  const unsigned long long before = imbrex_decomposed_calls();
  run(variant, labels, 12);
  labels.expect_all(12);
  return imbrex_decomposed_calls() - before;
}

TEST(partial_receive, goes_block_by_block_if_the_option_says_so) {
  const char* const option = std::getenv("IMBREX_PARTIAL");
  const bool on = option != nullptr && std::string(option) == "on";
  for (const Variant& variant : all_variants) {
    SCOPED_TRACE(variant.name);
    if (variant.name == "partial-receive" || variant.name == "blocking") {
      EXPECT_EQ(decomposed(variant), on ? 1u : 0u);  // and not that of the sizes, which is short
    } else if (variant.name == "blocks" || variant.name == "library") {
      EXPECT_EQ(decomposed(variant), 0u);
    }
  }
}

TEST(variants, with_timed_kernels_take_the_times_of_the_kernels) {
  const ChunkCost cost{.map_s = 2e-3, .reduce_s = 1e-3, .bytes = 4800};
  Timed timed(cost, apps::ranks_of_all());
  for (const Variant& variant : all_variants) {
    SCOPED_TRACE(variant.name);
    const double begin = MPI_Wtime();
    run(variant, timed, 8);
    const int workers = std::max(1, imbrex::worker_count());
    EXPECT_GE(MPI_Wtime() - begin, 8 * (cost.map_s + cost.reduce_s) / workers * 0.99);
  }
}

}  // namespace
}  // namespace mapreduce
