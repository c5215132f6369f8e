// SPDX-License-Identifier: BSD-3-Clause
// Programs that make mistakes with data with owners, on three ranks; CMakeLists.txt says what each
// must print.
#include <mpi.h>

#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases.hpp"
#include "imbrex/data.hpp"
#include "imbrex/future.hpp"
#include "imbrex/imbrex.hpp"

namespace {

using imbrex::Data;
using imbrex::Space;
using imbrex::View;

int rank = 0;
int ranks = 1;

// Prints in one piece and at once, so that no launcher mixes the lines of two ranks.
void print_line(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

// Prints what `call` throws.
template <class F>
void say(F&& call) {
  std::string seen = "nothing was thrown";
  try {
    call();
  } catch (const std::exception& error) {
    seen = error.what();
  }
  print_line("rank " + std::to_string(rank) + ": " + seen);
}

// Waits for a message that no rank sends.
void wait_for_ever() {
  int value = 0;
  MPI_Recv(&value, 1, MPI_INT, rank == 0 ? 1 : 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void write(Space& space, const Data<double>& data) {
  space.task("writes").out(data).launch([](const View<double> to) {
    for (double& element : to) element = 1;
  });
}
void read(Space& space, const Data<double>& data, const int where) {
  space.task("reads").in(data).on(where).launch([](View<const double>) {});
}

// The writer of what all others read waits for ever.
void stuck_writer() {
  Space space(MPI_COMM_WORLD, {.name = "factor"});
  const auto pivot = space.data<double>(0, 1000, nullptr, "pivot");
  space.task("finds the pivot").out(pivot).launch([](View<double>) { wait_for_ever(); });
  for (int other = 1; other < ranks; ++other) read(space, pivot, other);
  space.finish();
}

// The others have no reader for what is sent to them, and no room for all of it.
void no_readers() {
  Space space(MPI_COMM_WORLD, {.tasks_ahead = 0, .name = "factor"});
  std::vector<Data<double>> data;
  for (int i = 0; i < 20; ++i) data.push_back(space.data<double>(0, 40'000));
  if (rank != 0) wait_for_ever();
  for (const auto& one : data) {
    write(space, one);
    for (int other = 1; other < ranks; ++other) read(space, one, other);
  }
  space.finish();
}

void different_sequences() {
  Space space(MPI_COMM_WORLD, {.name = "s"});
  const auto a = space.data<double>(0, 10, nullptr, "a");
  write(space, a);
  if (rank == 1) {
    space.discard(a);
  } else {
    write(space, a);
  }
  say([&] { space.finish(); });
}

// Rank 1 has one insertion less than the others.
void shorter_sequence() {
  Space space(MPI_COMM_WORLD, {.name = "s"});
  const auto a = space.data<double>(0, 10, nullptr, "a");
  write(space, a);
  if (rank != 1) write(space, a);
  say([&] { space.finish(); });
}

// Rank 0 waits for what rank 1 does not know that it has to send.
void different_reads() {
  Space space(MPI_COMM_WORLD, {.name = "s"});
  const auto a = space.data<double>(0, 10, nullptr, "a");
  const auto b = space.data<double>(1, 10, nullptr, "b");
  write(space, a);
  write(space, b);
  if (rank == 0) {
    space.task("copies").in(b).inout(a).launch([](View<const double>, View<double>) {});
    space.task("after it").inout(a).launch([](View<double>) {});
  }
  say([&] { space.finish(); });
  say([&] { space.finish(); });  // nothing is left to wait for
}

// Ranks that call it more often meet the others in the end of their space.
void unequal_finish() {
  {
    Space space(MPI_COMM_WORLD, {.name = "s"});
    const auto a = space.data<double>(1, 100'000);
    write(space, a);
    for (int other = 0; other < ranks; ++other) read(space, a, other);
    for (int i = 0; i <= rank; ++i) space.finish();
  }
  print_line("went on");
}

// Rank 1 calls it, and the others never come to it.
void finish_of_one() {
  Space space(MPI_COMM_WORLD, {.name = "s"});
  if (rank != 1) wait_for_ever();
  space.finish();
}

// All ranks leave by an exception while tasks run and data are on their way.
void thrown_by_all() {
  std::optional<int> seen;
  say([&] {
    Space space(MPI_COMM_WORLD, {.name = "s"});
    const auto a = space.data<double>(0, 300'000);
    write(space, a);
    for (int other = 0; other < ranks; ++other) read(space, a, other);
    space.task("looks").in(a).on(2).launch(
        [&seen](const View<const double> from) { seen = static_cast<int>(from[299'999]); });
    throw std::runtime_error("no more input");
  });
  if (rank == 2) print_line("seen " + std::to_string(seen.value_or(0)));
}

// Rank 1 leaves before it has inserted what the others need: they do not wait for it.
void thrown_by_one() {
  say([] {
    Space space(MPI_COMM_WORLD, {.name = "s"});
    const auto a = space.data<double>(1, 10, nullptr, "a");
    if (rank == 1) throw std::runtime_error("no more input");
    space.task("writes").out(a).launch([](View<double>) {});
    read(space, a, 0);
  });
}

// Rank 1 leaves instead of running the loop in which it decides: no decision arrives.
void loop_left_by_one() {
  say([] {
    Space space(MPI_COMM_WORLD, {.name = "s"});
    const auto a = space.data<double>(1, 10, nullptr, "a");
    space.iterate(1'000'000, [&](std::int64_t) {
      if (rank == 1) throw std::runtime_error("no more input");
      space.task("decides").inout(a).decides().launch([](View<double>) {});
      read(space, a, 0);
    });
    space.finish();
  });
}

// A deciding task that never ends keeps all ranks from their next iteration.
void stuck_decision() {
  Space space(MPI_COMM_WORLD, {.name = "s"});
  const auto a = space.data<double>(0, 10, nullptr, "a");
  space.iterate(10, [&](std::int64_t) {
    space.task("decides").inout(a).decides().launch([](View<double>) { wait_for_ever(); });
  });
}

void forgotten_flush() {
  Space space(MPI_COMM_WORLD, {.name = "s"});
  const auto a = space.data<double>(0, 10, nullptr, "a");
  space.task("elsewhere").inout(a).on(1).launch([](View<double>) {});
  space.finish();
  say([&] { (void)a.view(); });
}

// Rank 2 leaves out its reader, though the data come.
void reader_left_out() {
  Space space(MPI_COMM_WORLD, {.name = "s"});
  const auto a = space.data<double>(0, 300'000, nullptr, "a");
  write(space, a);
  read(space, a, 1);
  if (rank != 2) read(space, a, 2);
  MPI_Barrier(MPI_COMM_WORLD);
}

// No mistake: a chain over all ranks, and a copy of eight bytes from the last.
void broadcast() {
  Space space(MPI_COMM_WORLD, {.name = "factor"});
  const auto pivot = space.data<double>(0, 300'000, nullptr, "pivot");
  const auto small = space.data<double>(2, 1);
  imbrex::Promise<void> all_inserted;
  space.task("writes").out(pivot).launch([&](View<double>) { all_inserted.future().get(); });
  for (int other = 1; other < ranks; ++other) read(space, pivot, other);
  write(space, small);
  read(space, small, 0);
  all_inserted.set();
  space.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const imbrex::test::Cases cases{{"stuck_writer", stuck_writer},
                                  {"no_readers", no_readers},
                                  {"different_sequences", different_sequences},
                                  {"different_reads", different_reads},
                                  {"shorter_sequence", shorter_sequence},
                                  {"unequal_finish", unequal_finish},
                                  {"finish_of_one", finish_of_one},
                                  {"thrown_by_all", thrown_by_all},
                                  {"thrown_by_one", thrown_by_one},
                                  {"loop_left_by_one", loop_left_by_one},
                                  {"stuck_decision", stuck_decision},
                                  {"forgotten_flush", forgotten_flush},
                                  {"reader_left_out", reader_left_out},
                                  {"broadcast", broadcast}};
  const auto& chosen = imbrex::test::chosen(cases, argc, argv);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  chosen.second();
  MPI_Finalize();
  return 0;
}
