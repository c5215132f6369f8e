// SPDX-License-Identifier: BSD-3-Clause
// What the main() of each fuzzer across ranks does.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "fuzz/seeds.hpp"

namespace imbrex::test {

// Random programs that all ranks of the world run, one after the other, until one fails.
class RandomPrograms {
 public:
  // `options`: numbers that the fuzzer takes beside those of Seeds, and what they are by default.
  explicit RandomPrograms(std::map<std::string, unsigned> options) : options_(std::move(options)) {}

  // False, with a message, if the command line is wrong.
  bool read(const int argc, char** const argv) {
    name_ = argv[0];
    for (int i = 1; i < argc; i += 2) {
      if (i + 1 < argc && seeds_.take(argv[i], argv[i + 1])) continue;
      if (i + 1 == argc || !options_.contains(argv[i])) {
        std::fprintf(stderr, "usage: %s [--seed N] [--count N | --seconds N]", name_.c_str());
        for (const auto& [option, number] : options_) {
          std::fprintf(stderr, " [%s N (%u)]", option.c_str(), number);
        }
        std::fputc('\n', stderr);
        return false;
      }
      options_[argv[i]] = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
    }
    return true;
  }

  unsigned operator[](const std::string& option) const { return options_.at(option); }

  // Between MPI_Init and MPI_Finalize, on all ranks: run(seed) for each program, after which
  // failures() says how many this rank has found. Returns the exit code.
  template <class Run, class Failures>
  int run(const Run run, const Failures failures) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int wrong = 0;
    while (wrong == 0) {
      unsigned seed = rank == 0 ? static_cast<unsigned>(seeds_.next().value_or(0)) : 0;
      MPI_Bcast(&seed, 1, MPI_UNSIGNED, 0, MPI_COMM_WORLD);
      if (seed == 0) break;
      if (rank == 0) tell("begins", seed);  // the last line, also after a crash
      run(seed);
      const int mine = static_cast<int>(failures());
      MPI_Allreduce(&mine, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      if (wrong != 0 && rank == 0) tell("fails", seed);
    }
    if (rank == 0 && wrong == 0) std::printf("%d programs are right\n", seeds_.given());
    return wrong == 0 ? 0 : 1;
  }

 private:
  void tell(const char* const what, const unsigned seed) const {
    int ranks = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    std::fprintf(stderr, "%s: mpirun -n %d %s --seed %u --count 1", what, ranks, name_.c_str(),
                 seed);
    for (const auto& [option, number] : options_) {
      std::fprintf(stderr, " %s %u", option.c_str(), number);
    }
    std::fputc('\n', stderr);
  }

  std::map<std::string, unsigned> options_;
  std::string name_;
  Seeds seeds_{1};
};

}  // namespace imbrex::test
