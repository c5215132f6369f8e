// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "program.hpp"

namespace sparse {

void add_options(apps::CommandLine& line, const std::vector<std::string>& kernels,
                 Options& options) {
  const auto names_of = [](const auto& choices) {
    std::vector<std::string> names;
    for (const auto& choice : choices) names.emplace_back(choice.word);
    return names;
  };
  std::vector<apps::Choice<std::vector<std::string>>> choices{{"all", names_of(variants)}};
  for (const auto& variant : variants) choices.push_back({variant.word, {variant.word}});
  options.variants = choices.front().value;
  line.number("--blocks", options.blocks, {1, 16}, "Sub-blocks of a rank, for each of its workers");
  line.repetitions("--repetitions", options.repetitions);
  line.choice("--variant", options.variants, choices,
              "blocking: MPI between loops; tasks: messages are tasks that block in MPI; "
              "iterate: these tasks, created once for all iterations; test-each: those of tasks, "
              "and each request is tested in turn; blocking-tasks: tasks whose MPI calls block "
              "their worker; or all in turn");
  line.json(options.json);
  add_timed(line, fmt::format("{}", fmt::join(kernels, ",")), " on all points of a rank",
            options.timed);
}

void parse(apps::CommandLine& line, const int argc, char** const argv,
           const std::vector<std::string>& kernels, Options& options) {
  line.parse(argc, argv);
  check_timed(line, kernels, options.timed);
}

}  // namespace sparse
