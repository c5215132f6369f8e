// SPDX-License-Identifier: BSD-3-Clause
// engine_fuzz [--seed N] [--count N] [--workers N] [--policy P] [--steps N] [--only I,J,...]
// [--show 1]: random programs of receives, probes, waits and tests against random arrivals in
// fake_mpi.
//
// Methodology: a program is a list of steps, each drawn from a seed of its own, so that it stays
// the same when others are left out; --only names those that are carried out. The root task carries
// them out and never blocks; what blocks runs in tasks and, with more than one worker, in threads
// that imbrex does not know. Messages are sent by scripted ranks and arrive when a step says so, or
// when nobody has seen one for some time. At the end every open operation is given a message that
// fits, all messages that are left are received, and then
//   1. matching.hpp must be able to explain who got what,
//   2. fake_mpi must have seen no breach of MPI's rules, and nothing may be left at MPI_Finalize,
//   3. what this rank sent must have been sent once.
// Each program runs in a process of its own, which also finds crashes and hangs. A program that
// fails is run again without some of its steps, and the smallest that fails is named.
#include <sys/wait.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <numeric>

#include "fuzz/engine_run.hpp"

namespace imbrex::test {
namespace {

using Clock = std::chrono::steady_clock;

// ---- one program, and all of them --------------------------------------------------------------

struct Options {
  std::uint64_t seed = 1;
  int count = 20;
  int workers = 0;  // 0: 1, 2 and 4
  std::string policy = "every";
  int steps = 80;
  std::vector<int> only;
  bool show = false;
};

// In a process of its own. True if all is well.
bool run_program(const Program& program) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    // Receives of a communicator that MPI has before further ones are matched by imbrex.
    constexpr const char* match_above[] = {"0", "1", "2", "4", "1000000000"};
    setenv("IMBREX_MATCH_ABOVE", match_above[program.seed % std::size(match_above)], 1);
    Config config;
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
                  .show = options.show};
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

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; i += 2) {
    const std::string key = argv[i];
    if (i + 1 == argc) return false;
    if (key == "--seed") {
      options.seed = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (key == "--count") {
      options.count = std::atoi(argv[i + 1]);
    } else if (key == "--workers") {
      options.workers = std::atoi(argv[i + 1]);
    } else if (key == "--policy") {
      options.policy = argv[i + 1];
    } else if (key == "--steps") {
      options.steps = std::atoi(argv[i + 1]);
    } else if (key == "--only") {
      options.only = parse_list(argv[i + 1]);
    } else if (key == "--show") {
      options.show = std::atoi(argv[i + 1]) != 0;
    } else {
      return false;
    }
  }
  return true;
}

int run_all(const Options& options) {
  std::vector<int> workers{1, 2, 4};
  if (options.workers > 0) workers = {options.workers};
  std::vector<std::string> policies{"default", "steal", "fifo", "priority", "seeded"};
  if (options.policy != "every") policies = {options.policy};
  int failed = 0;
  for (int i = 0; i < options.count; ++i) {
    for (const int count : workers) {
      for (const std::string& policy : policies) {
        if (!run_seed(options, options.seed + static_cast<std::uint64_t>(i), count, policy)) {
          ++failed;
        }
      }
    }
  }
  std::printf("%d programs failed\n", failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace imbrex::test

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // the last line names the seed, also after a crash
  imbrex::test::Options options;
  if (!imbrex::test::parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: %s [--seed N] [--count N] [--workers N] [--policy P] [--steps N] "
                 "[--only I,J,...] [--show 1]\n",
                 argv[0]);
    return 2;
  }
  return imbrex::test::run_all(options);
}
