// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include "program.hpp"

namespace sparse {

void add_options(CLI::App& app, const std::vector<std::string>& kernel_names, Options& options) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  app.add_option("--blocks", options.blocks, "Sub-blocks of a rank, for each of its workers")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  app.add_option("--repetitions", options.repetitions, "Runs of each variant, in turn")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--variant", options.variant,
                 "blocking: MPI between loops; tasks: messages are tasks that block in MPI; "
                 "test-each: the same, and each request is tested in turn; blocking-tasks: tasks "
                 "whose MPI calls block their worker; or all in turn")
      ->check(CLI::IsMember(variants()))
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the figures there too");
  add_timed(app, kernel_names, options.timed_text);
}

}  // namespace sparse
