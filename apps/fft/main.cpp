// SPDX-License-Identifier: BSD-3-Clause
// fft: transforms a field over MPI ranks, in several ways, checks and prints what came out.
// Exit codes: 0 well; 1 wrong input; 2 a spectrum that is wrong. All ranks exit alike.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../no_any_tag.hpp"
#include "../tiled/setup.hpp"
#include "field.hpp"
#include "options.hpp"
#include "variants.hpp"

namespace fft {
namespace {

struct Run {
  std::string variant;
  double seconds = 0;       // from a barrier to the last rank's end
  double transpose_s = -1;  // of that in transpositions, of the rank with most; -1: not known
  Errors errors;
  bool checked = false;
};

// Collective. Throws InputError.
void check_memory(const Options& options, double points, int ranks) {
  double copies = options.dims;  // the steps
  if (options.packs()) copies += 2;
  if (options.has("library")) copies += 1;
  const double mine = copies * sizeof(Complex) * points / ranks;
  tiled::check_memory(MPI_COMM_WORLD, mine, fmt::format("--n {}: needs", options.n),
                      "fewer points");
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

  Run run(const std::string& variant, int number, bool check) {
    const bool library = variant == "library";
    // Points that are only moved are where they would be without pieces.
    const bool dealt = variant == "partial-blocks" && !options_.timed;
    fill(field_, library ? library_->input() : dealt ? pipeline_.dealt_input() : pipeline_.input(),
         library ? library_->points() : steps_[0].get());
    progress_.begin(fmt::format("fft: run {}, {}", number, variant));
    Run run;
    run.variant = variant;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    run.transpose_s = carry_out(variant);
    run.seconds = MPI_Wtime() - start;
    MPI_Allreduce(MPI_IN_PLACE, &run.seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &run.transpose_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (check) {
      run.errors = library ? fft::check(field_, library_->output(), library_->points(), false)
                           : fft::check(field_, pipeline_.output(), steps_.back().get(),
                                        lines_.sleep());
      run.checked = true;
    }
    return run;
  }

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

 private:
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

struct Named {
  const char* name;
  std::optional<double> value;
};
std::vector<Named> named(const Errors& errors) {
  return {{"whole", errors.whole},
          {"wave", errors.wave},
          {"energy", errors.energy},
          {"round trip", errors.round_trip},
          {"moved", errors.moved}};
}

void print_run(const Run& run, int number) {
  fmt::print("run {:<3} {:<15} {:10.6f} s", number, run.variant, run.seconds);
  if (run.transpose_s >= 0) fmt::print("   transposing {:.6f} s", run.transpose_s);
  for (const auto& [name, value] : named(run.errors)) {
    if (!value) continue;
    if (run.errors.moved) {
      fmt::print("   {}", *value == 0 ? "all points moved right" : "points moved WRONG");
    } else {
      fmt::print("   {} {:.3f}", name, *value);
    }
  }
  fmt::print("\n");
  std::fflush(stdout);
}

nlohmann::json to_json(const Run& run) {
  nlohmann::json record{{"variant", run.variant}, {"seconds", run.seconds}};
  if (run.transpose_s >= 0) record["transpose_s"] = run.transpose_s;
  for (const auto& [name, value] : named(run.errors)) {
    if (value) record["errors"][name] = *value;
  }
  return record;
}

double median_of(const std::vector<Run>& runs, const std::string& variant) {
  std::vector<double> values;
  for (const Run& run : runs) {
    if (run.variant == variant) values.push_back(run.seconds);
  }
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void print_problem(const Options& options, const tiled::Grid& grid, double line_s) {
  fmt::print("Field     {} points, {}\n", options.dims == 2
                 ? fmt::format("{0} x {0}", options.n)
                 : fmt::format("{0} x {0} x {0}", options.n),
             options.timed ? "numbered"
             : options.input == Field::Kind::wave ? "a plane wave"
                                                  : "random");
  fmt::print("Ranks     {}{}, {} worker{} each\n", grid.rows * grid.columns,
             options.dims == 3 ? fmt::format(" in a grid of {} x {}", grid.rows, grid.columns) : "",
             imbrex::worker_count(), imbrex::worker_count() == 1 ? "" : "s");
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

void print_medians(const Options& options, const std::vector<Run>& runs) {
  fmt::print("\nmedians  ");
  const double first = median_of(runs, options.variants.front());
  for (const std::string& variant : options.variants) {
    const double median = median_of(runs, variant);
    fmt::print(" {} {:.6f} s", variant, median);
    if (variant != options.variants.front()) {
      fmt::print(" ({:+.1f} %)", 100 * (median / first - 1));
    }
  }
  fmt::print("\n");
}

void write_json(const Options& options, const tiled::Grid& grid, double line_s,
                const std::vector<Run>& runs) {
  nlohmann::json document{{"benchmark", "fft"},
                          {"dims", options.dims},
                          {"n", options.n},
                          {"ranks", grid.rows * grid.columns},
                          {"grid", {grid.rows, grid.columns}},
                          {"workers", imbrex::worker_count()},
                          {"parts", options.cuts.parts},
                          {"chunks", options.cuts.chunks},
                          {"pack", options.pack},
                          {"kernels", options.timed ? "timed" : "real"}};
  if (options.timed) document["line_us"] = 1e6 * line_s;
  for (const Run& run : runs) document["runs"].push_back(to_json(run));
  for (const std::string& variant : options.variants) {
    document["medians"][variant] = median_of(runs, variant);
  }
  std::ofstream stream(options.json);
  stream << document.dump(2) << "\n";
  stream.close();
  if (!stream) throw std::runtime_error("--json " + options.json + ": cannot be written");
}

// The exit code.
int run_all(const Options& options, const tiled::Team& team, const Field& field, double line_s) {
  Benchmark benchmark(team, options, field, options.timed ? line_s : 0);
  std::vector<Run> runs;
  int code = 0;
  for (int repetition = 1; repetition <= options.repeat; ++repetition) {
    for (const std::string& variant : options.variants) {
      const bool last = repetition == options.repeat;
      const auto number = static_cast<int>(runs.size()) + 1;
      Run run = benchmark.run(variant, number, last && options.check);
      if (run.checked && !options.timed && variant != "library") {
        run.errors.round_trip = benchmark.go_back();
      }
      if (!(run.errors.largest() <= error_limit)) code = 2;  // NaN too
      if (team.rank() == 0) print_run(run, number);
      runs.push_back(std::move(run));
    }
  }
  if (team.rank() != 0) return code;
  if (runs.size() > 1) print_medians(options, runs);
  if (code == 2) fmt::print(stderr, "fft: an error is above {}\n", error_limit);
  if (!options.json.empty()) write_json(options, team.grid(), line_s, runs);
  return code;
}

int run(int argc, char** argv) {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::string help;
  const Options options = parse_options(argc, argv, help);
  if (tiled::print_help(help)) return 0;
  const Field field{options.timed ? Field::Kind::numbers : options.input, options.dims, options.n,
                    options.seed};
  const tiled::Team team(check_sizes(options, ranks));
  tiled::check_json(team, options.json);
  check_memory(options, field.points(), ranks);
  for (MPI_Comm comm : {team.my_row(), team.my_column()}) promise_no_any_tag(comm);
  double line_s = 0;
  if (options.timed) {
    line_s = options.line_us ? 1e-6 * *options.line_us : 0;
    if (!options.line_us && team.rank() == 0) line_s = measure_line(options.n, options.planning);
    MPI_Bcast(&line_s, 1, MPI_DOUBLE, 0, team.all());
  }
  if (team.rank() == 0) print_problem(options, team.grid(), line_s);
  return run_all(options, team, field, line_s);
}

}  // namespace
}  // namespace fft

int main(int argc, char** argv) { return tiled::run_program("fft", argc, argv, &fft::run); }
