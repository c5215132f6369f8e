// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <algorithm>

#include "../tiled/timed_options.hpp"
#include "shuffle/timed.hpp"

namespace mapreduce {
namespace {

constexpr const char* description =
    "MapReduce over MPI ranks, whose shuffle is an all-to-all exchange, in the ways of Castillo\n"
    "et al. (ICS 2019): all must give the result that one thread, or BLAS, computes. `mapreduce\n"
    "wordcount --help` and `mapreduce matvec --help` list the options.";

struct CommandText {
  tiled::TimedText timed;
  std::vector<std::string> variants;
  std::int64_t tuple_bytes = 0;
};

std::vector<std::string> names_of_variants() {
  std::vector<std::string> names;
  for (const Variant& variant : all_variants) names.emplace_back(variant.name);
  return names;
}

void add_run(CLI::App& app, Options& options, CommandText& text) {
  apps::add_list(app, "--variant", text.variants,
                 "Which, in turn, separated by commas; all if not given. The first is what the "
                 "others are compared with")
      ->check(CLI::IsMember(names_of_variants()));
  app.add_option("--chunks", options.chunks, "Map tasks of each rank")
      ->check(CLI::Range(1, 30'000))  // each has a tag
      ->capture_default_str();
  app.add_option("--batches", options.batches, "Of --variant test: exchanges, one after the other")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--repetitions", options.repetitions, "Runs of each variant, in turn")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  tiled::add_timed(app, kernel_names, text.timed);
  app.get_option("--kernel-us")
      ->description("Timed: microseconds of the map of a chunk, and of the reduction of what it "
                    "makes; measured if not given");
  app.add_option("--tuple-bytes", text.tuple_bytes,
                 "Timed: bytes that a chunk's map makes, for all ranks together; those of the "
                 "first chunk if not given")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--progress", options.progress_s,
                 "Seconds between lines that say how far the first rank is; 0: none")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the figures there too");
}

CLI::App* add_words(CLI::App& app, Options& options) {
  CLI::App* const words = app.add_subcommand(
      "wordcount", "Counts the words of texts: longest runs of bytes that are not white space");
  words->add_option("FILES", options.files, "Ordinary files, which every rank can read")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  words->add_option("--repeat", options.repeat, "Read the files so many times over")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  words->add_option("--random", options.random.bytes, "Instead: so many bytes of random words")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 44));
  words->add_option("--vocabulary", options.random.vocabulary, "Different words of --random")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->capture_default_str();
  words->add_option("--seed", options.random.seed, "Of --random")->capture_default_str();
  words->add_option("--top", options.top, "Print so many of the most frequent words")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  words->add_option("--output", options.output,
                    "Write all words there, as lines: number, space, word; most frequent first");
  return words;
}

void check_words(const CLI::App& words, const Options& options) {
  using apps::InputError;
  const bool random = words.count("--random") > 0;
  if (random && !options.files.empty()) throw InputError("--random: needs no files");
  if (!random && options.files.empty()) {
    throw InputError("wordcount: needs files, or --random BYTES (wordcount --help lists the "
                     "options)");
  }
  for (const char* const option : {"--vocabulary", "--seed"}) {
    if (!random && words.count(option) > 0) {
      throw InputError(std::string(option) + ": needs --random");
    }
  }
  if (random && options.repeat > 1) throw InputError("--repeat: is of files; --random takes bytes");
  if (options.timed.timed && !options.output.empty()) {
    throw InputError("--output: --kernels timed counts nothing");
  }
}

}  // namespace

Options parse_options(int argc, char** argv, std::string& help) {
  Options options;
  CommandText text;
  CLI::App app(description, "mapreduce");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  app.require_subcommand(1);
  CLI::App* const words = add_words(app, options);
  CLI::App* const matvec = app.add_subcommand(
      "matvec", "Multiplies a dense matrix with a vector, and compares with BLAS's dgemv");
  matvec->add_option("--n", options.n, "Rows, and columns")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  for (CLI::App* const program : {words, matvec}) add_run(*program, options, text);
  if (!apps::parse(app, argc, argv, help)) return options;
  options.words = words->parsed();
  const CLI::App& program = options.words ? *words : *matvec;
  options.timed = tiled::read_timed(kernel_names, text.timed);
  if (program.count("--tuple-bytes") > 0) {
    if (!options.timed.timed) throw tiled::InputError("--tuple-bytes: needs --kernels timed");
    options.tuple_bytes = text.tuple_bytes;
  }
  if (options.words) check_words(*words, options);
  if (text.variants.empty()) {
    options.variants.assign(std::begin(all_variants), std::end(all_variants));
  }
  for (const std::string& name : text.variants) {
    options.variants.push_back(*std::ranges::find(all_variants, name, &Variant::name));
  }
  return options;
}

}  // namespace mapreduce
