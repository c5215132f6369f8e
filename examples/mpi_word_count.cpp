// SPDX-License-Identifier: BSD-3-Clause
// Map-reduce by remote calls: each rank counts the words of its lines and sends each count to the
// rank that owns the word. A count arrives as a task, which adds it up.
#include <imbrex/imbrex.hpp>
#include <imbrex/remote.hpp>

#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

using Counts = std::map<std::string, int>;
const std::array<const char*, 4> lines = {"the cat sat on the mat", "the dog sat on the cat",
                                          "the mat lay on the floor", "the cat and the dog lay"};

Counts owned;  // the words of this rank; guarded by `lock`
std::mutex lock;

void reduce(const Counts& part) {
  const std::lock_guard guard(lock);  // nothing in this function suspends
  for (const auto& [word, count] : part) owned[word] += count;
}

void map(const char* line, int ranks) {
  std::vector<Counts> parts(static_cast<std::size_t>(ranks));
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    ++parts[std::hash<std::string>()(word) % parts.size()][word];
  }
  for (int owner = 0; owner < ranks; ++owner) {
    static_cast<void>(imbrex::call(owner, reduce, parts[static_cast<std::size_t>(owner)]));
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  imbrex::finish([&] {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (static_cast<int>(i) % ranks != rank) continue;
      imbrex::task("map").launch([i, ranks] { map(lines[i], ranks); });
    }
  });                           // each call of this rank has ended on its owner
  MPI_Barrier(MPI_COMM_WORLD);  // and so have the calls of all ranks

  int total = 0;
  for (const auto& [word, count] : owned) {
    std::printf("rank %d: %s %d\n", rank, word.c_str(), count);
    total += count;
  }
  MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return total == 24 ? 0 : 1;
}
