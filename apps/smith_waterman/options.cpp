// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>

#include <vector>

namespace smith_waterman {
namespace {

using apps::CommandLine;
using apps::InputError;

constexpr const char* description =
    "Aligns two sequences of bases by the algorithm of Smith and Waterman (--local), or of\n"
    "Needleman and Wunsch (--global), with all ranks and workers. Prints the score and where the\n"
    "alignment ends: of the cells with the largest score in the first row that has one, there in\n"
    "the first column.";

// The numbers of the command line before they are checked.
struct Numbers {
  std::vector<std::int64_t> random, outer, inner;
};

void add_input(CommandLine& line, Options& options, Numbers& numbers, bool& local,
               std::vector<std::string>& files) {
  line.flag("--local", local, "The best alignment of any two parts (default)");
  line.flag("--global", options.global, "The best alignment of both sequences as a whole");
  line.files(files, "Two FASTA files, plain or compressed by gzip");
  line.pair("--random", numbers.random, "Instead: LENGTH_A LENGTH_B random letters");
  line.number("--seed", options.seed, {}, "Of --random");
  line.choice("--records", options.reading.all_records, {{"first", false}, {"all", true}},
              "Of a file: first, or all, one after the other as one sequence");
  line.choice("--others", options.reading.refuse_others, {{"drop", false}, {"refuse", true}},
              "Letters that are not A, C, G, T: drop, which says how many, or refuse");
  line.number("--match", options.scoring.match, {}, "");
  line.number("--transition", options.scoring.transition, {}, "A with G, C with T");
  line.number("--transversion", options.scoring.transversion, {}, "Other pairs that differ");
  line.number("--gap", options.scoring.gap, {}, "Each letter that stands against none");
}

void add_run(CommandLine& line, Options& options, Numbers& numbers) {
  line.choice("--variant", options.variant, variant_names,
              "sequential: one rank and thread; mpi: MPI and OpenMP, diagonal by diagonal; "
              "imbrex: tasks and distributed futures");
  line.choice("--distribution", options.distribution, distribution_names,
              "Of outer tiles: block gives each rank a piece of each diagonal, cyclic the columns "
              "of tiles in turn");
  line.pair("--outer", numbers.outer,
            "ROWS COLUMNS of the tiles that ranks exchange the edges of; at most 9280 x 9600, and "
            "some for each rank, if not given");
  line.pair("--inner", numbers.inner,
            "ROWS COLUMNS of the tiles that threads compute; 290 300 if not given");
  line.choice("--kernels", options.kernels, kernels_names,
              "real; plain: by the definition, cell by cell; or timed: each inner tile sleeps as "
              "long as it would compute, so that ranks may share processors; there is no score "
              "then");
  line.number("--kernel-us", options.kernel_us, {0.001, 1e8},
              "Timed: microseconds of a whole inner tile; measured if not given");
  line.number("--progress", options.progress_s, {0, 1e6},
              "Seconds between lines that say how far the first rank is; 0: none");
  line.flag("--json", options.json, "Also print a line of JSON, the last one");
}

// Two positive numbers; of tiles such that sides fit into an int.
Extent extent_of(const char* option, const std::vector<std::int64_t>& numbers,
                 std::int64_t largest) {
  for (const std::int64_t number : numbers) {
    if (number < 1 || number > largest) {
      throw InputError(fmt::format("{} {} {}: each is from 1 to {}", option, numbers[0],
                                   numbers[1], largest));
    }
  }
  return {numbers[0], numbers[1]};
}

void read_input(const CommandLine& line, const std::vector<std::string>& files,
                const std::vector<std::int64_t>& random, Options& options) {
  if (line.given("--local") && options.global) {
    throw InputError("--local and --global: choose one");
  }
  options.scoring.local = !options.global;
  const char* const wrong = what_is_wrong(options.scoring);
  if (*wrong != '\0') {
    throw InputError(fmt::format("--match {} --transition {} --transversion {} --gap {}: {}",
                                 options.scoring.match, options.scoring.transition,
                                 options.scoring.transversion, options.scoring.gap, wrong));
  }
  if (!random.empty()) {
    if (!files.empty()) throw InputError("--random: needs no files");
    options.random = extent_of("--random", random, 1'000'000'000);
  } else if (files.size() != 2) {
    throw InputError(fmt::format("two files are needed, or --random LENGTH_A LENGTH_B; there {} {} "
                                 "(--help lists the options)",
                                 files.size() == 1 ? "is" : "are", files.size()));
  } else {
    options.a = files[0];
    options.b = files[1];
    if (line.given("--seed")) throw InputError("--seed: is of --random");
  }
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  Numbers numbers;
  bool local = false;
  std::vector<std::string> files;
  CommandLine line("smith_waterman", description);
  add_input(line, options, numbers, local, files);
  add_run(line, options, numbers);
  line.parse(argc, argv);
  read_input(line, files, numbers.random, options);
  constexpr std::int64_t side_max = 100'000'000;
  if (!numbers.inner.empty()) options.inner = extent_of("--inner", numbers.inner, side_max);
  if (!numbers.outer.empty()) options.outer = extent_of("--outer", numbers.outer, side_max);
  line.needs({"--kernel-us"}, options.timed(), "--kernels timed");
  return options;
}

}  // namespace smith_waterman
