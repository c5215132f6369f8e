// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include "../tiled/timed_options.hpp"
#include "shuffle/timed.hpp"

namespace mapreduce {
namespace {

using apps::CommandLine;
using apps::InputError;

constexpr const char* description =
    "MapReduce over MPI ranks, whose shuffle is an all-to-all exchange, in the ways of Castillo\n"
    "et al. (ICS 2019): all must give the result that one thread, or BLAS, computes. `mapreduce\n"
    "wordcount --help` and `mapreduce matvec --help` list the options.";

void add_run(CommandLine& line, Options& options) {
  std::vector<std::string> names;
  for (const Variant& variant : all_variants) names.emplace_back(variant.name);
  line.words("--variant", options.variants, names,
             "Which, in turn, separated by commas; all if not given. The first is what the others "
             "are compared with");
  constexpr int chunks_max = 30'000;  // each has a tag
  line.number("--chunks", options.chunks, {1, chunks_max}, "Map tasks of each rank");
  line.number("--batches", options.batches, {1, 100'000},
              "Of --variant test: exchanges, one after the other");
  line.repetitions("--repetitions", options.repetitions);
  add_timed(line, "the map of a chunk, and of the reduction of what it makes", "", options.timed);
  line.number("--tuple-bytes", options.tuple_bytes, {1, std::int64_t{1} << 40},
              "Timed: bytes that a chunk's map makes, for all ranks together; those of the first "
              "chunk if not given");
  line.number("--progress", options.progress_s, {0, 1e6},
              "Seconds between lines that say how far the first rank is; 0: none");
  line.json(options.json);
}

void add_words(CommandLine& line, Options& options) {
  line.files(options.files, "Ordinary files, which every rank can read");
  line.number("--repeat", options.repeat, {1, 1'000'000}, "Read the files so many times over");
  line.number("--random", options.random.bytes, {1, std::uint64_t{1} << 44},
              "Instead: so many bytes of random words");
  line.number("--vocabulary", options.random.vocabulary, {1, std::uint64_t{1} << 40},
              "Different words of --random");
  line.number("--seed", options.random.seed, {}, "Of --random");
  line.number("--top", options.top, {0, 1'000'000}, "Print so many of the most frequent words");
  line.text("--output", options.output,
            "Write all words there, as lines: number, space, word; most frequent first");
}

void check_words(const CommandLine& line, const Options& options) {
  const bool random = line.given("--random");
  if (random && !options.files.empty()) throw InputError("--random: needs no files");
  if (!random && options.files.empty()) {
    throw InputError("wordcount: needs files, or --random BYTES (wordcount --help lists the "
                     "options)");
  }
  line.needs({"--vocabulary", "--seed"}, random, "--random");
  if (random && options.repeat > 1) throw InputError("--repeat: is of files; --random takes bytes");
  if (options.timed.timed && !options.output.empty()) {
    throw InputError("--output: --kernels timed counts nothing");
  }
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  CommandLine line("mapreduce", description);
  CommandLine words = line.part(
      "wordcount", "Counts the words of texts: longest runs of bytes that are not white space");
  CommandLine matvec = line.part(
      "matvec", "Multiplies a dense matrix with a vector, and compares with BLAS's dgemv");
  add_words(words, options);
  matvec.number("--n", options.n, {1, 65536}, "Rows, and columns");
  for (CommandLine* const part : {&words, &matvec}) add_run(*part, options);
  line.parse(argc, argv);
  options.words = words.chosen();
  const CommandLine& part = options.words ? words : matvec;
  check_timed(part, kernel_names, options.timed);
  part.needs({"--tuple-bytes"}, options.timed.timed, "--kernels timed");
  if (options.words) check_words(words, options);
  if (options.variants.empty()) {
    for (const Variant& variant : all_variants) options.variants.emplace_back(variant.name);
  }
  return options;
}

}  // namespace mapreduce
