// SPDX-License-Identifier: BSD-3-Clause
#include "word_count.hpp"

#include <algorithm>
#include <climits>
#include <stdexcept>

namespace mapreduce {
namespace {

void append_tuple(Bytes& bytes, const std::string_view word, const std::uint64_t number) {
  const auto length = static_cast<std::uint16_t>(word.size());
  append(bytes, &length, 1);
  append(bytes, &number, 1);
  append(bytes, word.data(), word.size());
}

// Calls visit(word, number) for each tuple.
template <class Visit>
void for_each_tuple(const std::span<const std::byte> tuples, Visit&& visit) {
  const std::byte* at = tuples.data();
  while (at != tuples.data() + tuples.size()) {
    std::uint16_t length = 0;
    std::uint64_t number = 0;
    read(at, &length, 1);
    read(at, &number, 1);
    visit(std::string_view(reinterpret_cast<const char*>(at), length), number);
    at += length;
  }
}

void add(Counts& counts, const std::string_view word, const std::uint64_t number) {
  const auto found = counts.find(word);
  if (found != counts.end()) {
    found->second += number;
  } else {
    counts.emplace(word, number);
  }
}

}  // namespace

Digest digest_of(const Counts& counts) {
  Digest digest;
  for (const auto& [word, number] : counts) {
    digest.words += number;
    ++digest.distinct;
    digest.hash += mixed(WordHash()(word) ^ mixed(number));
  }
  return digest;
}

Counts count_serially(const Text& text) {
  Counts counts;
  text.for_each_word(0, text.size_of_files(),
                     [&](const std::string_view word) { add(counts, word, 1); });
  for (auto& [word, number] : counts) number *= text.repeat();
  return counts;
}

WordCount::WordCount(const Text& text, MPI_Comm comm, const int chunks)
    : text_(text), chunks_(static_cast<std::uint64_t>(chunks)) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  const auto first_of = [&](const int r) {
    const auto all = static_cast<std::uint64_t>(ranks);
    const auto index = static_cast<std::uint64_t>(r);
    return text.size() / all * index + text.size() % all * index / all;
  };
  const std::uint64_t part_max = text.size() / static_cast<std::uint64_t>(ranks) + 1;
  chunk_bytes_max_ = part_max / chunks_ + 1;
  first_ = first_of(rank);
  end_ = first_of(rank + 1);
}

void WordCount::begin() {
  reduced_.all().clear();
  counts_.clear();
}

void WordCount::map(const Chunks chunks, Output& output) {
  const std::uint64_t size = end_ - first_;
  const auto first_of = [&](const int chunk) {
    const auto index = static_cast<std::uint64_t>(chunk);
    return first_ + size / chunks_ * index + size % chunks_ * index / chunks_;
  };
  Counts counts;
  text_.for_each_word(first_of(chunks.first), first_of(chunks.end),
                      [&](const std::string_view word) { add(counts, word, 1); });
  for (const auto& [word, number] : counts) {
    append_tuple(output[WordHash()(word) % output.size()], word, number);
  }
}

void WordCount::reduce(const std::span<const std::byte> tuples) {
  reduced_.with_one([] { return std::make_unique<Counts>(); }, [&](Counts& counts) {
    for_each_tuple(tuples, [&](const std::string_view word, const std::uint64_t number) {
      add(counts, word, number);
    });
  });
}

// A word of one letter takes two bytes of the text with the space behind it, and 11 of a piece; the
// last word may be longer than the chunk.
std::size_t WordCount::piece_bytes_max() const {
  return static_cast<std::size_t>(chunk_bytes_max_ / 2 + 1) * 11 + 10 + word_bytes_max;
}

void WordCount::end() {
  for (const auto& part : reduced_.all()) {
    if (counts_.empty()) {
      counts_ = std::move(*part);
      continue;
    }
    for (const auto& [word, number] : *part) add(counts_, word, number);
  }
  reduced_.all().clear();
}

Digest digest_of_all(const Counts& counts, MPI_Comm comm) {
  const Digest mine = digest_of(counts);
  const std::uint64_t parts[3] = {mine.words, mine.distinct, mine.hash};
  std::uint64_t sums[3] = {};
  MPI_Allreduce(parts, sums, 3, MPI_UINT64_T, MPI_SUM, comm);
  return {sums[0], sums[1], sums[2]};
}

Ranking gather(const Counts& counts, MPI_Comm comm) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  Bytes mine;
  for (const auto& [word, number] : counts) append_tuple(mine, word, number);
  if (mine.size() > INT_MAX) throw std::runtime_error("more than 2 GiB of words on one rank");
  Ranking ranking;
  for (int source = 0; source < ranks; ++source) {
    if (source != 0 && rank == source) {
      MPI_Send(mine.data(), static_cast<int>(mine.size()), MPI_BYTE, 0, 0, comm);
    }
    if (rank != 0) continue;
    if (source != 0) {
      MPI_Status status;
      int size = 0;
      MPI_Probe(source, 0, comm, &status);
      MPI_Get_count(&status, MPI_BYTE, &size);
      mine.resize(static_cast<std::size_t>(size));
      MPI_Recv(mine.data(), size, MPI_BYTE, source, 0, comm, MPI_STATUS_IGNORE);
    }
    for_each_tuple(mine, [&](const std::string_view word, const std::uint64_t number) {
      ranking.emplace_back(word, number);
    });
  }
  std::ranges::sort(ranking, [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return ranking;
}

}  // namespace mapreduce
