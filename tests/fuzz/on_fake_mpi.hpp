// SPDX-License-Identifier: BSD-3-Clause
// A random program that begins and ends MPI, each in a process of its own: what the fuzzers share
// whose other ranks a thread plays.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fake_mpi.hpp"
#include "fuzz/campaign.hpp"
#include "fuzz/expect.hpp"

namespace imbrex::test {

inline void set_environment(const std::uint64_t seed, const int workers,
                            const std::string& policy) {
  setenv("IMBREX_WORKERS", std::to_string(workers).c_str(), 1);
  setenv("IMBREX_MPI_WARNING", "0", 1);  // it stands in this program
  setenv("IMBREX_POLICY",
         (policy == "seeded" ? "seeded:" + std::to_string(seed) : policy).c_str(), 1);
  constexpr const char* modes[] = {"auto", "poll", "shared-thread"};
  setenv("IMBREX_PROGRESS", modes[seed % 3], 1);
}

// Called at the end of a program: true if nothing has failed, and no rule of MPI's was broken.
inline bool all_is_well() {
  for (const std::string& breach : fake_mpi::breaches()) {
    std::printf("breach: %s\n", breach.c_str());
    ++failures;
  }
  return failures == 0;
}

// Calls prepare(seed, workers, policy), then run(seed), in a process of its own. Returns the result
// of run().
template <class Prepare, class Run>
bool run_in_process(const std::uint64_t seed, const int workers, const std::string& policy,
                    const Prepare prepare, const Run run) {
  std::printf("--seed %llu --count 1 --workers %d --policy %s\n",
              static_cast<unsigned long long>(seed), workers, policy.c_str());
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    prepare(seed, workers, policy);
    std::exit(run(seed) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) std::printf("FAILS: signal %d\n", WTERMSIG(status));
  return status == 0;
}

// A campaign of so many seeds, if the command line says nothing.
inline Campaign campaign_of(const int count) {
  return {.seeds = Seeds(count),
          .workers = {1, 2, 4, 8},
          .policies = {"default", "steal", "fifo", "priority", "seeded"}};
}

// Reads the command line into `campaign`; false if it is wrong.
inline bool read_campaign(const int argc, char** const argv, Campaign& campaign) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // the last line names the seed, also after a crash
  const auto take = [&](const std::string& key, const char* const value) {
    return campaign.take(key, value);
  };
  if (parse_pairs(argc, argv, take)) return true;
  std::fprintf(stderr,
               "usage: %s [--seed N] [--count N | --seconds N] [--workers N] [--policy P]\n",
               argv[0]);
  return false;
}

// The body of main of such a fuzzer; returns its exit code. It runs the seeds of the command line,
// each in a process of its own.
template <class Prepare, class Run>
int run_campaign(const int argc, char** const argv, const int count, const Prepare prepare,
                 const Run run) {
  Campaign campaign = campaign_of(count);
  if (!read_campaign(argc, argv, campaign)) return 2;
  return campaign.each([&](const std::uint64_t seed, const int workers, const std::string& by) {
    return run_in_process(seed, workers, by, prepare, run);
  });
}

}  // namespace imbrex::test
