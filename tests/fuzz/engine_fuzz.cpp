// SPDX-License-Identifier: BSD-3-Clause
// engine_fuzz [--seed N] [--count N] [--workers N] [--policy P] [--steps N] [--only I,J,...]
// [--show 1]: random programs of receives, probes, waits and tests against random arrivals in
// fake_mpi.
//
// Methodology: a program is a list of steps, each drawn from a seed of its own, so that it stays
// the same when others are left out; --only names those that are carried out. The root task carries
// them out and never blocks; blocking steps run in tasks and, with more than one worker, in threads
// that imbrex does not know. Messages are sent by scripted ranks and arrive when a step says so, or
// when none has come for some time. At the end every open operation is given a message that
// fits, all messages that are left are received, and then
//   1. matching.hpp must be able to explain which operation got which message,
//   2. fake_mpi must have seen no breach of MPI's rules, and nothing may be left at MPI_Finalize,
//   3. what this rank sent must have been sent once, and in its order.
// Each program runs in a process of its own, which also finds crashes and hangs. A program that
// fails is run again without some of its steps, and the smallest that fails is named.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <numeric>

#include "fuzz/campaign.hpp"
#include "fuzz/engine_run.hpp"
#include "mpi/messages/sends/limits.hpp"

namespace imbrex::test {
namespace {

using Clock = std::chrono::steady_clock;

// ---- one program, and all of them --------------------------------------------------------------

struct Options {
  Campaign campaign{.seeds = Seeds(20),
                    .workers = {1, 2, 4},
                    .policies = {"default", "steal", "fifo", "priority", "seeded"}};
  int steps = 80;
  std::vector<int> only;
};

// Runs the program in a process of its own. Returns true if all is well.
bool run_program(const Program& program) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    // Receives of a communicator that MPI has before further ones are matched by imbrex.
    constexpr const char* match_above[] = {"0", "1", "2", "4", "1000000000"};
    setenv("IMBREX_MATCH_ABOVE", match_above[program.seed % std::size(match_above)], 1);
    // Messages of this rank that are longer wait for their turn.
    constexpr const char* sends_above[] = {"0", "16", "65536", "8"};
    setenv("IMBREX_SENDS_ABOVE", sends_above[program.seed / 5 % std::size(sends_above)], 1);
    mpi::sends::initial_limits().each = program.seed % 3 == 0 ? 2 : 1;
    mpi::sends::initial_limits().bytes = 0;
    RuntimeOptions config;
    config.workers = program.workers;
    config.policy = program.policy == "seeded" ? "seeded:" + std::to_string(program.seed)
                                               : program.policy;
    bool good = false;
    {
      const Runtime runtime(config);
      Run run(program);
      good = run.run();
    }
    std::exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) std::printf("FAILS: signal %d\n", WTERMSIG(status));
  return status == 0;
}

void print(const Program& program, const std::vector<int>* steps) {
  std::printf("--seed %llu --count 1 --workers %d --policy %s",
              static_cast<unsigned long long>(program.seed), program.workers,
              program.policy.c_str());
  for (std::size_t i = 0; steps != nullptr && i < steps->size(); ++i) {
    std::printf("%s%d", i == 0 ? " --only " : ",", (*steps)[i]);
  }
  std::printf("\n");
}

// Leaves out halves, quarters, ... of the steps as long as the program fails all the same.
void shrink(Program program) {
  program.show = false;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(60);
  for (std::size_t part = program.steps.size() / 2; part > 0; part /= 2) {
    for (std::size_t first = 0; first + part <= program.steps.size() && Clock::now() < end;) {
      Program smaller = program;
      const auto begin = smaller.steps.begin() + static_cast<std::ptrdiff_t>(first);
      smaller.steps.erase(begin, begin + static_cast<std::ptrdiff_t>(part));
      if (run_program(smaller)) {
        first += part;
      } else {
        program = smaller;
      }
    }
  }
  std::printf("the smallest that fails: ");
  print(program, &program.steps);
}

bool run_seed(const Options& options, std::uint64_t seed, int workers, const std::string& policy) {
  Program program{.seed = seed,
                  .workers = workers,
                  .policy = policy,
                  .steps = options.only,
                  .show = options.campaign.show};
  print(program, options.only.empty() ? nullptr : &options.only);
  if (program.steps.empty()) {
    program.steps.resize(static_cast<std::size_t>(options.steps));
    std::iota(program.steps.begin(), program.steps.end(), 0);
  }
  if (run_program(program)) return true;
  if (options.only.empty()) shrink(program);
  return false;
}

std::vector<int> parse_list(const char* text) {
  std::vector<int> numbers;
  for (char* end = nullptr; *text != '\0'; text = *end == ',' ? end + 1 : end) {
    numbers.push_back(static_cast<int>(std::strtol(text, &end, 10)));
    if (end == text) return {};
  }
  return numbers;
}

bool take(const std::string& key, const char* value, Options& options) {
  if (key == "--steps") {
    options.steps = std::atoi(value);
  } else if (key == "--only") {
    options.only = parse_list(value);
  } else {
    return options.campaign.take(key, value);
  }
  return true;
}

}  // namespace
}  // namespace imbrex::test

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // the last line names the seed, also after a crash
  using namespace imbrex::test;
  Options options;
  if (!parse_pairs(argc, argv, [&](const std::string& key, const char* value) {
        return take(key, value, options);
      })) {
    std::fprintf(stderr,
                 "usage: %s [--seed N] [--count N | --seconds N] [--workers N] [--policy P] "
                 "[--steps N] [--only I,J,...] [--show 1]\n",
                 argv[0]);
    return 2;
  }
  return options.campaign.each([&](std::uint64_t seed, int workers, const std::string& policy) {
    return run_seed(options, seed, workers, policy);
  });
}
