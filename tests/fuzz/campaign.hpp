// SPDX-License-Identifier: BSD-3-Clause
// Random programs by seed, number of workers and policy: what the fuzzers' command lines share.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "base/tables/policies.hpp"
#include "fuzz/seeds.hpp"

namespace imbrex::test {

struct Campaign {
  Seeds seeds;
  std::vector<int> workers;
  std::vector<std::string> policies;
  bool show = false;  // print the programs

  // `key value` of the command line; false if this is no such key.
  bool take(const std::string& key, const char* const value) {
    if (seeds.take(key, value)) return true;
    if (key == "--workers") {
      workers = {std::atoi(value)};
    } else if (key == "--policy") {
      policies = {value};
    } else if (key == "--show") {
      show = std::atoi(value) != 0;
    } else {
      return false;
    }
    return true;
  }

  // Calls run(seed, workers, policy) for each, which is true if all is well. Returns the exit code.
  template <class Run>
  int each(const Run run) {
    int failed = 0;
    while (const std::optional<std::uint64_t> seed = seeds.next()) {
      for (const int of_workers : workers) {
        for (const std::string& policy : policies) {
          if (!run(*seed, of_workers, policy)) ++failed;
        }
      }
    }
    std::printf("%d seeds from %llu: %d programs failed\n", seeds.given(),
                static_cast<unsigned long long>(seeds.first()), failed);
    return failed == 0 ? 0 : 1;
  }
};

// Gives each pair of arguments to take(key, value); false if there is half a pair, or a pair that
// take() does not know.
template <class Take>
bool parse_pairs(const int argc, char** const argv, const Take take) {
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc || !take(std::string(argv[i]), argv[i + 1])) return false;
  }
  return true;
}

// The main() of a fuzzer for every policy: run(seed, workers, policy) is true if all is well, and
// print(campaign) prints the program of the first seed instead. Returns the exit code.
template <class Run, class Print>
int run_campaign(const int argc, char** const argv, const Run run, const Print print) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // the last line names the seed, also after a crash
  Campaign campaign{.seeds = Seeds(50),
                    .workers = {1, 2, 4, 8},
                    .policies = {std::begin(base::policy_names), std::end(base::policy_names)}};
  const auto take = [&](const std::string& key, const char* const value) {
    return campaign.take(key, value);
  };
  if (!parse_pairs(argc, argv, take)) {
    std::fprintf(stderr,
                 "usage: %s [--seed N] [--count N | --seconds N] [--workers N] [--policy P] "
                 "[--show 1]\n",
                 argv[0]);
    return 2;
  }
  if (!campaign.show) return campaign.each(run);
  print(campaign);
  return 0;
}

}  // namespace imbrex::test
