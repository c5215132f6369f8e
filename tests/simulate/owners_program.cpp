// SPDX-License-Identifier: BSD-3-Clause
// A program on data with owners that uses each kind of access and movement. Rank 0 prints the
// counters of all ranks, and owners_test.py compares them with those of a simulation. `random`
// draws sequences of insertions, `loop` plans one period once, `lead` has a copy that leads to a
// send; other arguments do what cannot be simulated.
#include <imbrex/data.hpp>
#include <imbrex/imbrex.hpp>
#include <imbrex/work_pool.hpp>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using imbrex::Data;
using imbrex::Space;
using imbrex::View;

using Counters = std::array<std::uint64_t, 6>;
constexpr std::array<const char*, 6> names{"tasks",            "versions_sent", "broadcasts",
                                           "copies_from_root", "bytes_sent",    "bytes_received"};

void read_on_all(Space& space, const Data<double>& datum, const std::vector<Data<double>>& parts) {
  for (const Data<double>& part : parts) {
    space.task("look").in(datum).inout(part).priority(1).launch(
        [](View<const double> from, View<double> to) { to[0] = from[0]; });
  }
}

void insert_round(Space& space, const int round, const std::vector<Data<double>>& parts,
                  const Data<double>& largest, const Data<double>& big,
                  const Data<double>& passing) {
  const int ranks = space.size();
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& part = parts[static_cast<std::size_t>(rank)];
    space.task("fill").out(part).launch(
        [](View<double> to) { std::fill(to.begin(), to.end(), 1.0); });
    space.task("largest").in(part).reduce(largest, imbrex::op::max).on(rank).launch(
        [](View<const double> from, View<double> to) { to[0] = std::max(to[0], from[0]); });
  }
  read_on_all(space, largest, parts);  // combines the elements first
  space.task("stretch").inout(big).launch([](View<double> to) { to[0] += 1; });
  read_on_all(space, big, parts);
  space.move(big, round % ranks);
  space.task("stretch").inout(big).launch([](View<double> to) { to[0] += 1; });
  space.task("make").out(passing).on((round + 1) % ranks).launch(
      [](View<double> to) { to[0] = 1; });
  space.task("take").in(passing, big).inout(parts[0]).launch(
      [](View<const double>, View<const double>, View<double>) {});
  space.discard(passing);
  space.flush(largest);
}

// Ranks 1, 2 and 3 read a version of rank 0, and rank 1 needs the result of rank 3.
void insert_a_lead(Space& space) {
  const auto version = space.data<double>(0, 25'000);  // one segment
  std::vector<Data<double>> results;
  for (int rank = 0; rank < 4; ++rank) results.push_back(space.data<double>(rank, 1));
  space.task("make").out(version).launch([](View<double> to) { to[0] = 1; });
  for (const std::size_t rank : {1, 2, 3}) {
    space.task("look").in(version).inout(results[rank]).launch(
        [](View<const double> from, View<double> to) { to[0] = from[0]; });
  }
  space.task("take").in(results[3]).inout(results[1]).launch(
      [](View<const double> from, View<double> to) { to[0] += from[0]; });
}

[[nodiscard]] Counters counters_of(const Space& space) {
  const imbrex::SpaceCounters counters = space.counters();
  return {counters.tasks,
          counters.versions_sent,
          counters.broadcasts,
          counters.copies_from_root,
          counters.bytes_sent,
          counters.bytes_received};
}

void print_all(const Counters& mine) {
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<Counters> all(static_cast<std::size_t>(ranks));
  MPI_Gather(mine.data(), static_cast<int>(mine.size()), MPI_UINT64_T, all.data(),
             static_cast<int>(mine.size()), MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  for (const Counters& counters : all) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::printf("%s=%llu ", names[i], static_cast<unsigned long long>(counters[i]));
    }
    std::printf("\n");
  }
}

// ---- random sequences ------------------------------------------------------------------------

// Inserts what it draws; every rank draws the same.
class Drawn {
 public:
  Drawn(Space& space, const unsigned seed) : space_(space), draw_(seed) {
    for (int i = 0; i < 6; ++i) {
      // Sizes of 8 bytes to 256 KiB: within a message, in one piece, in segments.
      const std::size_t count = std::size_t{1} << below(i < 3 ? 10 : 16);
      const bool is_temporary = below(4) == 0;
      data_.push_back(is_temporary ? space.temporary<double>(count)
                                   : space.data<double>(rank(), count));
      has_value_.push_back(!is_temporary);
    }
  }
  void insert() {
    const std::size_t which = below(data_.size());
    switch (below(12)) {
      case 0: space_.move(data_[which], rank()); break;
      case 1: discard(which); break;
      case 2: flush(which); break;
      case 3:
      case 4: reduce(which); break;
      case 5: space_.finish(); break;
      default: task(); break;
    }
  }

 private:
  [[nodiscard]] std::size_t below(const std::size_t end) { return draw_() % end; }
  [[nodiscard]] int rank() {
    return static_cast<int>(below(static_cast<std::size_t>(space_.size())));
  }
  void discard(const std::size_t which) {
    space_.discard(data_[which]);
    has_value_[which] = false;
  }
  void flush(const std::size_t which) {
    if (has_value_[which]) space_.flush(data_[which]);
  }
  void reduce(const std::size_t which) {
    std::vector<Data<double>> read;
    const std::size_t other = below(data_.size());
    if (other != which && has_value_[other]) read.push_back(data_[other]);
    space_.task("reduce").in(read).reduce(data_[which], imbrex::op::sum).on(rank()).launch(
        [](imbrex::Views<const double>, View<double>) {});
    has_value_[which] = true;
  }
  void task() {
    std::vector<Data<double>> read, written, updated;
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const std::size_t access = below(8);
      if (access < 3 && has_value_[i]) read.push_back(data_[i]);
      if (access == 3) written.push_back(data_[i]);
      if (access == 4 && has_value_[i]) updated.push_back(data_[i]);
      if (access == 3) has_value_[i] = true;
    }
    const auto has_owner = [](const Data<double>& datum) { return datum.owner() >= 0; };
    const bool by_owner = below(2) == 0 && (std::ranges::any_of(written, has_owner) ||
                                            std::ranges::any_of(updated, has_owner));
    auto builder = space_.task("task").in(read).out(written).inout(updated).priority(
        static_cast<int>(below(3)));
    const auto body = [](imbrex::Views<const double>, imbrex::Views<double>,
                         imbrex::Views<double>) {};
    if (by_owner) {
      std::move(builder).launch(body);
    } else {
      std::move(builder).on(rank()).launch(body);
    }
  }

  Space& space_;
  std::mt19937 draw_;
  std::vector<Data<double>> data_;
  std::vector<bool> has_value_;
};

void run_random() {
  constexpr unsigned sequences = 40;
  constexpr int insertions = 80;
  constexpr std::array<int, 4> windows{4096, 0, 1, 3};
  Counters all{};
  for (unsigned seed = 1; seed <= sequences; ++seed) {
    Space space(MPI_COMM_WORLD, {.tasks_ahead = windows[seed % windows.size()], .name = "random"});
    Drawn drawn(space, seed);
    for (int i = 0; i < insertions; ++i) drawn.insert();
    space.finish();
    const Counters counters = counters_of(space);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += counters[i];
  }
  print_all(all);
}

// The body inserts `what`, which no loop can repeat.
void insert_refused_loop(Space& space, const std::string_view what, const Data<double>& datum) {
  space.iterate(4, [&](std::int64_t) {
    space.task("make").out(datum).launch([](View<double>) {});
    if (what == "finish") space.finish();
    if (what == "datum") (void)space.data<double>(0, 1);
    if (what == "move") space.move(datum, 0);
  });
}

// Each kind of access and movement, in every iteration. No value of a period goes to another rank
// in the next one, so the last period of a run sends no more than that of a simulation.
void insert_loop(Space& space, const std::vector<Data<double>>& parts,
                 const Data<double>& largest) {
  const int ranks = space.size();
  const auto sum = space.data<double>(0, 1);
  const auto big = space.matrix<double>(0, 200, 200);
  const auto passing = space.temporary<double>(600);
  space.iterate(4, [&](std::int64_t) {
    space.task("make").out(largest).launch([](View<double> to) { to[0] = 1; });
    read_on_all(space, largest, parts);
    for (int rank = 0; rank < ranks; ++rank) {
      space.task("largest").in(parts[static_cast<std::size_t>(rank)]).reduce(sum, imbrex::op::sum)
          .on(rank).launch([](View<const double> from, View<double> to) { to[0] += from[0]; });
    }
    read_on_all(space, sum, parts);
    space.task("stretch").inout(big).launch([](View<double> to) { to[0] += 1; });
    space.move(big, 1);
    space.task("stretch").inout(big).launch([](View<double> to) { to[0] += 1; });
    space.move(big, 0);
    space.task("make").out(passing).on(ranks - 1).launch([](View<double> to) { to[0] = 1; });
    space.task("take").in(passing, big).inout(parts[0]).launch(
        [](View<const double>, View<const double>, View<double>) {});
    space.discard(passing);
    space.task("stretch").inout(largest).on(0).launch([](View<double> to) { to[0] += 1; });
    space.flush(largest);
  });
}

void run(const std::string_view mistake) {
  if (mistake == "random") return run_random();
  if (mistake == "code") std::atexit([] { std::_Exit(3); });
  if (mistake == "pool") imbrex::WorkPool<int> pool(MPI_COMM_WORLD);
  Space space(MPI_COMM_WORLD, {.name = "test"});
  if (mistake == "lead") {
    insert_a_lead(space);
    space.finish();
    return print_all(counters_of(space));
  }
  std::vector<Data<double>> parts;
  for (int rank = 0; rank < space.size(); ++rank) parts.push_back(space.data<double>(rank, 1000));
  const auto largest = space.data<double>(space.size() - 1, 1);
  if (mistake == "loop") {
    insert_loop(space, parts, largest);
    space.finish();
    return print_all(counters_of(space));
  }
  if (mistake.starts_with("loop ")) insert_refused_loop(space, mistake.substr(5), largest);
  const auto big = space.matrix<double>(0, 200, 200);
  const auto passing = space.temporary<double>(600);
  for (int round = 0; round < 3; ++round) {
    insert_round(space, round, parts, largest, big, passing);
    space.finish();
    if (mistake == "looks" && parts[0].view()[0] > 5) break;
    if (mistake == "throws") throw std::runtime_error("the program has thrown");
    if (mistake == "stops" && parts[0].view()[0] < 5) break;
  }
  print_all(counters_of(space));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int code = 0;
  try {
    run(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    code = 1;
  }
  MPI_Finalize();
  return code;
}
