// SPDX-License-Identifier: BSD-3-Clause
// The command line of mapreduce.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../tiled/timed.hpp"
#include "shuffle/variants.hpp"
#include "words/text.hpp"

namespace mapreduce {

struct Options {
  bool words = false;  // wordcount, else matvec
  std::vector<std::string> files;
  int repeat = 1;
  Text::Random random{.vocabulary = 100'000};
  int top = 10;
  std::string output;
  std::int64_t n = 2048;
  int chunks = 16;
  int batches = 4;
  std::vector<std::string> variants;
  int repetitions = 1;
  tiled::TimedOptions timed;
  std::optional<std::int64_t> tuple_bytes;
  double progress_s = 10;
  std::string json;
};

// Every rank reads the same arguments and comes to the same end. Throws InputError and HelpAsked.
[[nodiscard]] Options parse_options(int argc, char** argv);

}  // namespace mapreduce
