// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "../harness/command_line.hpp"
#include "variants.hpp"

namespace fft {
namespace {

using apps::CommandLine;

constexpr int parts_max = 64;  // what a partial collective has on every MPI

void add_problem(CommandLine& line, Options& options) {
  line.choice("--dims", options.dims, {{"2", 2}, {"3", 3}}, "Of the field: 2 or 3");
  line.number("--n", options.n, {1, 1 << 26},
              "Points of the field in each dimension: a multiple of the number of ranks in 2-D, "
              "of the rows and of the columns of the grid in 3-D");
  line.text("--grid", options.grid, "3-D: ROWSxCOLUMNS of ranks; nearly square if not given");
  line.choice("--input", options.input,
              {{"random", Field::Kind::random}, {"wave", Field::Kind::wave}},
              "random, or wave: a plane wave, whose spectrum is a single point");
  line.number("--seed", options.seed, {}, "Of a random field");
}

void add_variants(CommandLine& line, Options& options) {
  line.words("--variant", options.variants,
             {"blocking", "test", "scatters", "partial-blocks", "partial-receive", "messages",
              "partial", "library"},
             "One or more, in turn, with commas: blocking (MPI_Alltoall), test "
             "(MPI_Ialltoall for each part, MPI_Test after each line), scatters "
             "(MPI_Iscatter from each rank), partial-blocks (2-D: blocking, but what comes "
             "from a rank is computed as it arrives, with IMBREX_PARTIAL=on), partial-receive "
             "(the same of each part, by imbrex::alltoall), messages (tasks, with a message "
             "for each chunk of each part), partial (the same by imbrex::alltoall), library "
             "(FFTW's own for MPI)");
  line.flag("--pack", options.pack,
            "Blocking: pack into buffers by loops, instead of derived datatypes");
  line.number("--parts", options.cuts.parts, {1, parts_max},
              "Groups of lines that are transposed, and computed, together");
  line.number("--chunks", options.cuts.chunks, {1, parts_max},
              "Messages, 2-D: groups of rows that leave together; as --parts if not given");
  line.repetitions("--repetitions,--repeat", options.repeat);
}

void add_rest(CommandLine& line, Options& options, bool& no_check) {
  line.choice("--kernels", options.timed, {{"real", false}, {"timed", true}},
              "real, or timed: each line sleeps as long as it would compute, so that ranks may "
              "share processors; then only it is checked that all points are moved right");
  line.number("--line-us", options.line_us, {1, 1e7},
              "Timed: microseconds of a line; measured if not given");
  line.choice("--plan", options.planning,
              {{"measure", Planning::measure}, {"estimate", Planning::estimate}},
              "measure, or estimate: how FFTW chooses its algorithm, before the time is taken");
  line.flag("--no-check", no_check, "Do not check the last run of each variant");
  line.number("--progress", options.progress_s, {0, 1e6},
              "Seconds after which a run says how far it is");
  line.json(options.json);
}

// Refuses options that contradict each other.
void check(const Options& options) {
  if (options.n == 0) {
    throw InputError("--n: how many points in each dimension? (--help lists the options)");
  }
  if (!options.grid.empty() && options.dims == 2) {
    throw InputError(fmt::format("--grid {}: is for --dims 3; in 2-D each rank has rows",
                                 options.grid));
  }
  if (options.has("partial-blocks") && options.dims == 3) {
    throw InputError("--variant partial-blocks: is for --dims 2");
  }
  if (options.has("library") && options.timed) {
    throw InputError("--variant library: cannot sleep; leave out --kernels timed");
  }
  if (options.has("library") && !Library::is_there()) {
    throw InputError("--variant library: this program was built without FFTW's library for MPI "
                     "(on Debian libfftw3-mpi-dev, with its Open MPI)");
  }
}

}  // namespace

bool Options::has(const std::string& variant) const {
  return std::ranges::find(variants, variant) != variants.end();
}

Options parse_options(int argc, char** argv) {
  Options options;
  bool no_check = false;
  CommandLine line("fft",
                   "Transforms a field of complex numbers over MPI ranks, in 2 or 3 dimensions: "
                   "lines\nby FFTW, between them transpositions, with which computation overlaps "
                   "or not.");
  options.cuts.chunks = 0;  // not given
  add_problem(line, options);
  add_variants(line, options);
  add_rest(line, options, no_check);
  line.parse(argc, argv);
  options.check = !no_check;
  if (options.cuts.chunks == 0) options.cuts.chunks = options.cuts.parts;
  line.needs({"--line-us"}, options.timed, "--kernels timed");
  check(options);
  return options;
}

namespace {

void check_divides(std::int64_t n, int by, const char* what) {
  if (n % by == 0) return;
  throw InputError(fmt::format("--n {}: must be a multiple of the {}, which is {}: take {} or {}",
                               n, what, by, std::max<std::int64_t>(n / by, 1) * by,
                               (n / by + 1) * by));
}

}  // namespace

tiled::Grid check_sizes(const Options& options, const int ranks) {
  tiled::Grid grid{1, ranks};
  if (options.dims == 2) {
    check_divides(options.n, ranks, "number of ranks");
  } else {
    grid = options.grid.empty() ? tiled::nearly_square(ranks)
                                : tiled::parse_grid(options.grid, ranks);
    check_divides(options.n, grid.rows, "number of rows of the grid of ranks");
    check_divides(options.n, grid.columns, "number of columns of the grid of ranks");
    if (options.n > 65536) {
      throw InputError(fmt::format("--n {}: at most 65536 in 3-D", options.n));
    }
    if (options.has("library")) {
      check_divides(options.n, ranks, "number of ranks for --variant library");
    }
  }
  const double block = static_cast<double>(options.n) * static_cast<double>(options.n) *
                       static_cast<double>(options.dims == 3 ? options.n : 1) / ranks;
  if (block / static_cast<double>(options.n) > 2e9) {
    throw InputError(fmt::format("--n {}: a rank would have {:.0f} lines; at most 2e9: take more "
                                 "ranks", options.n, block / static_cast<double>(options.n)));
  }
  return grid;
}

}  // namespace fft
