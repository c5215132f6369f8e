// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "../command_line.hpp"

namespace smith_waterman {
namespace {

constexpr const char* description =
    "Aligns two sequences of bases by the algorithm of Smith and Waterman (--local), or of\n"
    "Needleman and Wunsch (--global), with all ranks and workers. Prints the score and where the\n"
    "alignment ends: of the cells with the largest score in the first row that has one, there in\n"
    "the first column.";

const std::map<std::string, Variant>& variants() {
  static const std::map<std::string, Variant> variants{{"sequential", Variant::sequential},
                                                       {"mpi", Variant::mpi},
                                                       {"imbrex", Variant::imbrex}};
  return variants;
}

const std::map<std::string, Distribution>& distributions() {
  static const std::map<std::string, Distribution> distributions{
      {"block", Distribution::block}, {"cyclic", Distribution::cyclic}};
  return distributions;
}

// The text of the command line before it is checked.
struct Text {
  bool local = false;
  bool global = false;
  std::vector<std::string> files;
  std::vector<std::int64_t> random;
  std::string records = "first";
  std::string others = "drop";
  std::string variant = name_of(Variant::imbrex);
  std::string distribution = "block";
  std::vector<std::int64_t> outer;
  std::vector<std::int64_t> inner;
  std::string kernels = "real";
  double kernel_us = 0;
};

template <class Value>
std::vector<std::string> names_of(const std::map<std::string, Value>& values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return names;
}

void add_input(CLI::App& app, Options& options, Text& text) {
  app.add_flag("--local", text.local, "The best alignment of any two parts (default)");
  app.add_flag("--global", text.global, "The best alignment of both sequences as a whole");
  app.add_option("FILES", text.files, "Two FASTA files, plain or compressed by gzip")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--random", text.random, "Instead: LENGTH_A LENGTH_B random letters")->expected(2);
  app.add_option("--seed", options.seed, "Of --random")->capture_default_str();
  app.add_option("--records", text.records,
                 "Of a file: first, or all, one after the other as one sequence")
      ->check(CLI::IsMember({"first", "all"}))
      ->capture_default_str();
  app.add_option("--others", text.others,
                 "Letters that are not A, C, G, T: drop, which says how many, or refuse")
      ->check(CLI::IsMember({"drop", "refuse"}))
      ->capture_default_str();
  app.add_option("--match", options.scoring.match)->capture_default_str();
  app.add_option("--transition", options.scoring.transition, "A with G, C with T")
      ->capture_default_str();
  app.add_option("--transversion", options.scoring.transversion, "Other pairs that differ")
      ->capture_default_str();
  app.add_option("--gap", options.scoring.gap, "Each letter that stands against none")
      ->capture_default_str();
}

void add_run(CLI::App& app, Options& options, Text& text) {
  app.add_option("--variant", text.variant,
                 "sequential: one rank and thread; mpi: MPI and OpenMP, diagonal by diagonal; "
                 "imbrex: tasks and distributed futures")
      ->check(CLI::IsMember(names_of(variants())))
      ->capture_default_str();
  app.add_option("--distribution", text.distribution,
                 "Of outer tiles: block gives each rank a piece of each diagonal, cyclic the "
                 "columns of tiles in turn")
      ->check(CLI::IsMember(names_of(distributions())))
      ->capture_default_str();
  app.add_option("--outer", text.outer,
                 "ROWS COLUMNS of the tiles that ranks exchange the edges of; at most 9280 x "
                 "9600, and some for each rank, if not given")
      ->expected(2);
  app.add_option("--inner", text.inner,
                 "ROWS COLUMNS of the tiles that threads compute; 290 300 if not given")
      ->expected(2);
  app.add_option("--kernels", text.kernels,
                 "real; plain: by the definition, cell by cell; or timed: each inner tile sleeps "
                 "as long as it would compute, so that ranks may share processors; there is no "
                 "score then")
      ->check(CLI::IsMember({"real", "plain", "timed"}))
      ->capture_default_str();
  app.add_option("--kernel-us", text.kernel_us,
                 "Timed: microseconds of a whole inner tile; measured if not given")
      ->check(CLI::Range(0.001, 1e8));
  app.add_option("--progress", options.progress_s,
                 "Seconds between lines that say how far the first rank is; 0: none")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_flag("--json", options.json, "Also print a line of JSON, the last one");
}

// Two positive numbers; of tiles such that sides fit into an int.
Extent extent_of(const char* option, const std::vector<std::int64_t>& numbers,
                 std::int64_t largest) {
  for (const std::int64_t number : numbers) {
    if (number < 1 || number > largest) {
      throw apps::InputError(fmt::format("{} {} {}: each is from 1 to {}", option, numbers[0],
                                         numbers[1], largest));
    }
  }
  return {numbers[0], numbers[1]};
}

void read_input(const CLI::App& app, const Text& text, Options& options) {
  using apps::InputError;
  if (text.local && text.global) throw InputError("--local and --global: choose one");
  options.scoring.local = !text.global;
  options.reading = {text.records == "all", text.others == "refuse"};
  const char* const wrong = what_is_wrong(options.scoring);
  if (*wrong != '\0') {
    throw InputError(fmt::format("--match {} --transition {} --transversion {} --gap {}: {}",
                                 options.scoring.match, options.scoring.transition,
                                 options.scoring.transversion, options.scoring.gap, wrong));
  }
  if (!text.random.empty()) {
    if (!text.files.empty()) throw InputError("--random: needs no files");
    options.random = extent_of("--random", text.random, 1'000'000'000);
  } else if (text.files.size() != 2) {
    throw InputError(fmt::format("two files are needed, or --random LENGTH_A LENGTH_B; there {} {} "
                                 "(--help lists the options)",
                                 text.files.size() == 1 ? "is" : "are", text.files.size()));
  } else {
    options.a = text.files[0];
    options.b = text.files[1];
    if (app.count("--seed") > 0) throw InputError("--seed: is of --random");
  }
}

}  // namespace

const char* name_of(Variant variant) noexcept {
  return variant == Variant::sequential ? "sequential" : variant == Variant::mpi ? "mpi" : "imbrex";
}

const char* name_of(Distribution distribution) noexcept {
  return distribution == Distribution::block ? "block" : "cyclic";
}

Options parse_options(int argc, char** argv, std::string& help) {
  Options options;
  Text text;
  CLI::App app(description, "smith_waterman");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  add_input(app, options, text);
  add_run(app, options, text);
  if (!apps::parse(app, argc, argv, help)) return options;
  read_input(app, text, options);
  options.variant = variants().at(text.variant);
  options.distribution = distributions().at(text.distribution);
  constexpr std::int64_t side_max = 100'000'000;
  if (!text.inner.empty()) options.inner = extent_of("--inner", text.inner, side_max);
  if (!text.outer.empty()) options.outer = extent_of("--outer", text.outer, side_max);
  options.plain = text.kernels == "plain";
  options.timed = text.kernels == "timed";
  if (app.count("--kernel-us") > 0) {
    if (!options.timed) throw apps::InputError("--kernel-us: needs --kernels timed");
    options.kernel_us = text.kernel_us;
  }
  return options;
}

}  // namespace smith_waterman
