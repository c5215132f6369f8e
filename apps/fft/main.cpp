// SPDX-License-Identifier: BSD-3-Clause
// fft: transforms a field over MPI ranks, in several ways, checks and prints what came out.
// Exit codes: 0 well; 1 wrong input; 2 a spectrum that is wrong. All ranks exit alike.
#include <fmt/format.h>
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../harness/runs.hpp"
#include "../no_any_tag.hpp"
#include "../tiled/setup.hpp"
#include "field.hpp"
#include "options.hpp"
#include "variants.hpp"

namespace fft {
namespace {

// Collective. Throws InputError.
void check_memory(const Options& options, double points, int ranks) {
  double copies = options.dims;  // the steps
  if (options.packs()) copies += 2;
  if (options.has("library")) copies += 1;
  const double mine = copies * sizeof(Complex) * points / ranks;
  tiled::check_memory(MPI_COMM_WORLD, mine, fmt::format("--n {}: needs", options.n),
                      "fewer points");
}

struct Named {
  const char* name;
  std::optional<double> value;
};

// `transpose_s`: of the rank with most; -1: not known.
apps::Run result_of(double seconds, double transpose_s, const Errors& errors) {
  apps::Run run{.seconds = seconds, .right = errors.largest() <= error_limit};  // not NaN either
  if (transpose_s >= 0) {
    run.text = fmt::format("   transposing {:.6f} s", transpose_s);
    run.figures["transpose_s"] = transpose_s;
  }
  for (const auto& [name, value] :
       {Named{"whole", errors.whole}, Named{"wave", errors.wave}, Named{"energy", errors.energy},
        Named{"round trip", errors.round_trip}, Named{"moved", errors.moved}}) {
    if (!value) continue;
    run.figures["errors"][name] = *value;
    run.text += !errors.moved ? fmt::format("   {} {:.3f}", name, *value)
                              : *value == 0 ? "   all points moved right"
                                            : "   points moved WRONG";
  }
  return run;
}

class Benchmark {
 public:
  Benchmark(const tiled::Team& team, const Options& options, const Field& field, double sleep_s)
      : options_(options),
        field_(field),
        pipeline_(team, options.dims, options.n, options.cuts, false),
        back_(team, options.dims, options.n, options.cuts, true),
        progress_(pipeline_.lines() * pipeline_.steps(), "lines",
                  team.rank() == 0 ? options.progress_s : 0),
        lines_(options.n, options.planning, sleep_s, progress_),
        pieces_(options.n, options.dims == 2 ? pipeline_.stages().front().transposition.ranks : 1,
                options.planning, sleep_s, progress_) {
    for (int step = 0; step < pipeline_.steps(); ++step) {
      steps_.push_back(allocate(pipeline_.points()));
    }
    if (options.packs()) {
      packed_[0] = allocate(pipeline_.points());
      packed_[1] = allocate(pipeline_.points());
    }
    if (options.has("library")) {
      library_ = std::make_unique<Library>(options.dims, options.n, options.planning);
    }
  }

  apps::Run run(const apps::Turn& turn) {
    const std::string& variant = options_.variants[turn.variant];
    const bool library = variant == "library";
    // Points that are only moved are where they would be without pieces.
    const bool dealt = variant == "partial-blocks" && !options_.timed;
    fill(field_, library ? library_->input() : dealt ? pipeline_.dealt_input() : pipeline_.input(),
         library ? library_->points() : steps_[0].get());
    progress_.begin(fmt::format("fft: run {}, {}", turn.number, variant));
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    double took[2] = {carry_out(variant), 0};
    took[1] = MPI_Wtime() - start;
    MPI_Allreduce(MPI_IN_PLACE, took, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    Errors errors;
    if (turn.last && options_.check) {
      errors = library ? check(field_, library_->output(), library_->points(), false)
                       : check(field_, pipeline_.output(), steps_.back().get(), lines_.sleep());
      if (!options_.timed && !library) errors.round_trip = go_back();
    }
    return result_of(took[1], took[0], errors);
  }

 private:
  // Transforms back the spectrum that the last run left, and returns its distance from the input.
  // The run must be of one of this program's own variants. Leaves no spectrum.
  double go_back() {
    Complex* const spectrum = steps_.back().get();
    for (std::int64_t i = 0; i < pipeline_.points(); ++i) spectrum[i] = std::conj(spectrum[i]);
    std::vector<Complex*> steps{spectrum};
    for (std::size_t step = 0; step + 1 < steps_.size(); ++step) {
      steps.push_back(steps_[step].get());
    }
    progress_.begin("fft: back");
    Work work{back_, lines_, steps, false, {}};
    (void)run_blocking(work);
    return check_round_trip(field_, pipeline_.input(), steps.back());
  }

  // Seconds in transpositions, or -1.
  double carry_out(const std::string& variant) {
    Work work{pipeline_, lines_, {}, options_.pack, {packed_[0].get(), packed_[1].get()}};
    for (const Points& step : steps_) work.steps.push_back(step.get());
    if (variant == "blocking") return run_blocking(work);
    if (variant == "test") {
      run_test(work);
    } else if (variant == "scatters") {
      run_scatters(work);
    } else if (variant == "partial-blocks") {
      run_partial_blocks(work, pieces_);
    } else if (variant == "partial-receive") {
      run_partial_receive(work);
    } else if (variant == "messages") {
      run_messages(work);
    } else if (variant == "partial") {
      run_partial(work);
    } else {
      library_->run();
    }
    return -1;
  }

  const Options& options_;
  const Field& field_;
  Pipeline pipeline_, back_;
  Progress progress_;
  const Lines lines_;
  const Pieces pieces_;
  std::vector<Points> steps_;
  Points packed_[2];
  std::unique_ptr<Library> library_;
};

void print_problem(const Options& options, const tiled::Grid& grid, double line_s) {
  fmt::print("Field     {} points, {}\n", options.dims == 2
                 ? fmt::format("{0} x {0}", options.n)
                 : fmt::format("{0} x {0} x {0}", options.n),
             options.timed ? "numbered"
             : options.input == Field::Kind::wave ? "a plane wave"
                                                  : "random");
  fmt::print("Ranks     {}{}, {} each\n", grid.rows * grid.columns,
             options.dims == 3 ? fmt::format(" in a grid of {} x {}", grid.rows, grid.columns) : "",
             apps::counted(imbrex::worker_count(), "worker"));
  fmt::print("Parts     {} of the lines{}\n", options.cuts.parts,
             options.dims == 2 ? fmt::format(", {} chunks of the rows", options.cuts.chunks) : "");
  if (options.timed) {
    fmt::print("Kernels   sleep {:.1f} us for each line, {}; nothing is transformed\n",
               1e6 * line_s, options.line_us ? "as given" : "as measured on rank 0");
  }
  if (options.has("blocking")) {
    fmt::print("Blocking  {}\n", options.pack ? "packs into buffers" : "with derived datatypes");
  }
  fmt::print("Errors    relative, over eps log2(points); at most {} is right\n\n", error_limit);
  std::fflush(stdout);
}

void print_medians(const apps::Runs& runs) {
  fmt::print("\nmedians  ");
  for (std::size_t i = 0; i < runs.variants().size(); ++i) {
    fmt::print(" {} {:.6f} s", runs.variants()[i], runs.median(i));
    if (i > 0) fmt::print(" ({:+.1f} %)", 100 * (runs.median(i) / runs.median(0) - 1));
  }
  fmt::print("\n");
}

void write(const Options& options, const tiled::Grid& grid, double line_s,
           const apps::Runs& runs) {
  nlohmann::json document{{"benchmark", "fft"},
                          {"dims", options.dims},
                          {"n", options.n},
                          {"ranks", grid.rows * grid.columns},
                          {"grid", {grid.rows, grid.columns}},
                          {"workers", imbrex::worker_count()},
                          {"parts", options.cuts.parts},
                          {"chunks", options.cuts.chunks},
                          {"pack", options.pack},
                          {"kernels", options.timed ? "timed" : "real"},
                          {"runs", runs.figures()}};
  if (options.timed) document["line_us"] = 1e6 * line_s;
  for (std::size_t i = 0; i < runs.variants().size(); ++i) {
    document["medians"][runs.variants()[i]] = runs.median(i);
  }
  apps::write_json(options.json, document);
}

int run(int argc, char** argv) {
  const int ranks = apps::ranks_of_all();
  const Options options = parse_options(argc, argv);
  const Field field{options.timed ? Field::Kind::numbers : options.input, options.dims, options.n,
                    options.seed};
  const tiled::Team team(check_sizes(options, ranks));
  apps::check_writable(team.all(), "--json", options.json);
  check_memory(options, field.points(), ranks);
  for (MPI_Comm comm : {team.my_row(), team.my_column()}) promise_no_any_tag(comm);
  double line_s = 0;
  if (options.timed) {
    line_s = options.line_us ? 1e-6 * *options.line_us : 0;
    if (!options.line_us && team.rank() == 0) line_s = measure_line(options.n, options.planning);
    MPI_Bcast(&line_s, 1, MPI_DOUBLE, 0, team.all());
  }
  if (team.rank() == 0) print_problem(options, team.grid(), line_s);
  Benchmark benchmark(team, options, field, options.timed ? line_s : 0);
  constexpr int digits = 6;
  apps::Runs runs(options.variants, options.repeat, team.rank() == 0, digits);
  runs.measure([&](const apps::Turn& turn) { return benchmark.run(turn); });
  if (team.rank() == 0) {
    if (runs.figures().size() > 1) print_medians(runs);
    if (!runs.right()) fmt::print(stderr, "fft: an error is above {}\n", error_limit);
    write(options, team.grid(), line_s, runs);
  }
  return runs.right() ? 0 : 2;
}

}  // namespace
}  // namespace fft

int main(int argc, char** argv) { return tiled::run_program("fft", argc, argv, &fft::run); }
