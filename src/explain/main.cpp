// SPDX-License-Identifier: BSD-3-Clause
// imbrex-explain: reads the files of the flight recorder. `imbrex explain` and `imbrex top`
// (tools/imbrex_explain.py) read the command line and find the files of a job, and call this
// program: explain|json PATH..., or top LOOKS PATH...
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "explain/gathered.hpp"
#include "explain/top.hpp"
#include "imbrex/error.hpp"

namespace {

int run(const std::vector<std::string>& words) {
  using namespace imbrex::explain;
  if (words.size() < 2) throw imbrex::Error("usage: imbrex-explain explain|json|top PATH...");
  if (words[0] == "top") {
    run_top({words.begin() + 2, words.end()}, std::atoi(words[1].c_str()));
    return EXIT_SUCCESS;
  }
  const Gathered gathered = gather(find_files({words.begin() + 1, words.end()}));
  fmt::print("{}", words[0] == "json" ? json_of(gathered) : text_of(gathered));
  return EXIT_SUCCESS;
}

}  // namespace

int main(const int count, char** const words) {
  try {
    return run({words + 1, words + count});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return EXIT_FAILURE;
  }
}
