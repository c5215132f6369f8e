// SPDX-License-Identifier: BSD-3-Clause
// The word count as a program of map and reduce. A tuple: the word's length (2 bytes), its number
// in the chunk (8 bytes), the word. Therefore a word that occurs several times in a chunk is one
// tuple.
#pragma once

#include <mpi.h>

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../shuffle/program.hpp"
#include "hash.hpp"
#include "text.hpp"

namespace mapreduce {

using Counts = std::unordered_map<std::string, std::uint64_t, WordHash, std::equal_to<>>;

// A summary by which counts are compared. The digest of parts without a common word is the sum of
// their digests.
struct Digest {
  std::uint64_t words = 0;
  std::uint64_t distinct = 0;
  std::uint64_t hash = 0;  // the sum over words of a hash of the word and its number

  friend bool operator==(const Digest&, const Digest&) = default;
};
[[nodiscard]] Digest digest_of(const Counts& counts);

// Counts every word of a text, on the calling thread.
[[nodiscard]] Counts count_serially(const Text& text);

class WordCount : public Program {
 public:
  // Counts this rank's part of `text`, in `chunks` chunks. REQUIRES: `text` outlives this object.
  WordCount(const Text& text, MPI_Comm comm, int chunks);

  void begin() override;
  void map(Chunks chunks, Output& output) override;
  void reduce(std::span<const std::byte> tuples) override;
  [[nodiscard]] std::size_t piece_bytes_max() const override;
  void end() override;

  // The counts of this rank's words. REQUIRES: end() has returned.
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  const Text& text_;
  std::uint64_t first_ = 0;  // of this rank's part
  std::uint64_t end_ = 0;
  std::uint64_t chunks_;
  std::uint64_t chunk_bytes_max_;  // of all ranks
  Results<Counts> reduced_;
  Counts counts_;
};

// Returns the digest of all ranks' counts, equal on all ranks. Collective.
[[nodiscard]] Digest digest_of_all(const Counts& counts, MPI_Comm comm);

// All ranks' words, on the first rank; the most frequent first, equal ones by their bytes.
// Collective. Throws std::runtime_error if one rank has more than 2 GiB of them.
using Ranking = std::vector<std::pair<std::string, std::uint64_t>>;
[[nodiscard]] Ranking gather(const Counts& counts, MPI_Comm comm);

}  // namespace mapreduce
