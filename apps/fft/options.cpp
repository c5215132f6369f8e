// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "../tiled/timed_options.hpp"
#include "variants.hpp"

namespace fft {
namespace {

constexpr int parts_max = 64;  // what a partial collective has on every MPI

// The text of the command line before it is checked.
struct Text {
  std::string input = "random";
  std::string planning = "measure";
  std::string kernels = "real";
  int chunks = 0;  // 0: as parts
  bool no_check = false;
};

void add_problem(CLI::App& app, Options& options, Text& text) {
  app.add_option("--dims", options.dims, "Of the field: 2 or 3")
      ->check(CLI::IsMember({2, 3}))
      ->capture_default_str();
  app.add_option("--n", options.n,
                 "Points of the field in each dimension: a multiple of the number of ranks in 2-D, "
                 "of the rows and of the columns of the grid in 3-D")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 26));
  app.add_option("--grid", options.grid, "3-D: ROWSxCOLUMNS of ranks; nearly square if not given");
  app.add_option("--input", text.input,
                 "random, or wave: a plane wave, whose spectrum is a single point")
      ->check(CLI::IsMember({"random", "wave"}))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of a random field")->capture_default_str();
}

void add_variants(CLI::App& app, Options& options, Text& text) {
  apps::add_list(app, "--variant", options.variants,
                 "One or more, in turn, with commas: blocking (MPI_Alltoall), test "
                 "(MPI_Ialltoall for each part, MPI_Test after each line), scatters "
                 "(MPI_Iscatter from each rank), partial-blocks (2-D: blocking, but what comes "
                 "from a rank is computed as it arrives, with IMBREX_PARTIAL=on), partial-receive "
                 "(the same of each part, by imbrex::alltoall), messages (tasks, with a message "
                 "for each chunk of each part), partial (the same by imbrex::alltoall), library "
                 "(FFTW's own for MPI)")
      ->check(CLI::IsMember({"blocking", "test", "scatters", "partial-blocks",
                             "partial-receive", "messages", "partial", "library"}))
      ->capture_default_str();
  app.add_flag("--pack", options.pack,
               "Blocking: pack into buffers by loops, instead of derived datatypes");
  app.add_option("--parts", options.cuts.parts,
                 "Groups of lines that are transposed, and computed, together")
      ->check(CLI::Range(1, parts_max))
      ->capture_default_str();
  app.add_option("--chunks", text.chunks,
                 "Messages, 2-D: groups of rows that leave together; as --parts if not given")
      ->check(CLI::Range(1, parts_max));
  app.add_option("--repetitions,--repeat", options.repeat, "Runs of each variant")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
}

void add_rest(CLI::App& app, Options& options, Text& text, double& line_us) {
  app.add_option("--kernels", text.kernels,
                 "real, or timed: each line sleeps as long as it would compute, so that ranks may "
                 "share processors; then only it is checked that all points are moved right")
      ->check(CLI::IsMember({"real", "timed"}))
      ->capture_default_str();
  app.add_option("--line-us", line_us, "Timed: microseconds of a line; measured if not given")
      ->check(CLI::Range(1.0, 1e7));
  app.add_option("--plan", text.planning,
                 "measure, or estimate: how FFTW chooses its algorithm, before the time is taken")
      ->check(CLI::IsMember({"measure", "estimate"}))
      ->capture_default_str();
  app.add_flag("--no-check", text.no_check, "Do not check the last run of each variant");
  app.add_option("--progress", options.progress_s, "Seconds after which a run says how far it is")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the figures there too");
}

// Refuses options that contradict each other.
void check(const Options& options, bool has_line_us) {
  if (options.n == 0) {
    throw InputError("--n: how many points in each dimension? (--help lists the options)");
  }
  if (!options.grid.empty() && options.dims == 2) {
    throw InputError(fmt::format("--grid {}: is for --dims 3; in 2-D each rank has rows",
                                 options.grid));
  }
  if (has_line_us && !options.timed) throw InputError("--line-us: needs --kernels timed");
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

Options parse_options(int argc, char** argv, std::string& help) {
  Options options;
  Text text;
  double line_us = 0;
  CLI::App app("Transforms a field of complex numbers over MPI ranks, in 2 or 3 dimensions: lines\n"
               "by FFTW, between them transpositions, with which computation overlaps or not.",
               "fft");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  add_problem(app, options, text);
  add_variants(app, options, text);
  add_rest(app, options, text, line_us);
  if (!apps::parse(app, argc, argv, help)) return options;
  options.check = !text.no_check;
  options.timed = text.kernels == "timed";
  options.planning = text.planning == "measure" ? Planning::measure : Planning::estimate;
  options.input = text.input == "wave" ? Field::Kind::wave : Field::Kind::random;
  options.cuts.chunks = text.chunks != 0 ? text.chunks : options.cuts.parts;
  check(options, line_us != 0);
  if (line_us != 0) options.line_us = line_us;
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
