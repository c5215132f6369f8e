// SPDX-License-Identifier: BSD-3-Clause
// A program on data with owners that uses each kind of access and movement. Rank 0 prints the
// counters of all ranks, which owners_test.py compares with those of a simulation. With an argument
// the program does what cannot be simulated.
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
#include <stdexcept>
#include <string_view>
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
    space.task("look").read(datum).update(part).priority(1).insert(
        [](View<const double> from, View<double> to) { to[0] = from[0]; });
  }
}

void insert_round(Space& space, const int round, const std::vector<Data<double>>& parts,
                  const Data<double>& largest, const Data<double>& big,
                  const Data<double>& passing) {
  const int ranks = space.size();
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& part = parts[static_cast<std::size_t>(rank)];
    space.task("fill").write(part).insert(
        [](View<double> to) { std::fill(to.begin(), to.end(), 1.0); });
    space.task("largest").read(part).reduce(largest, imbrex::op::max).on(rank).insert(
        [](View<const double> from, View<double> to) { to[0] = std::max(to[0], from[0]); });
  }
  read_on_all(space, largest, parts);  // combines the elements first
  space.task("stretch").update(big).insert([](View<double> to) { to[0] += 1; });
  read_on_all(space, big, parts);
  space.move(big, round % ranks);
  space.task("stretch").update(big).insert([](View<double> to) { to[0] += 1; });
  space.task("make").write(passing).on((round + 1) % ranks).insert(
      [](View<double> to) { to[0] = 1; });
  space.task("take").read(passing, big).update(parts[0]).insert(
      [](View<const double>, View<const double>, View<double>) {});
  space.discard(passing);
  space.flush(largest);
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

void run(const std::string_view mistake) {
  if (mistake == "code") std::atexit([] { std::_Exit(3); });
  if (mistake == "pool") imbrex::WorkPool<int> pool(MPI_COMM_WORLD);
  Space space(MPI_COMM_WORLD, {.window = mistake == "window" ? 3 : -1, .name = "test"});
  std::vector<Data<double>> parts;
  for (int rank = 0; rank < space.size(); ++rank) parts.push_back(space.data<double>(rank, 1000));
  const auto largest = space.data<double>(space.size() - 1, 1);
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
  imbrex::open_messages();
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
