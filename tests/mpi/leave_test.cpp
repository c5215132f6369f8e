// SPDX-License-Identifier: BSD-3-Clause
// An exception leaves the scope of an object whose end is collective: the catch block is reached,
// and other ranks get an Error that names the rank instead of waiting for it.
#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "imbrex/data.hpp"
#include "imbrex/future_space.hpp"
#include "imbrex/work_pool.hpp"
#include "mpi_test.hpp"

namespace {

using imbrex::Error;
using imbrex::FutureSpace;
using imbrex::Space;
using imbrex::View;
using imbrex::WorkPool;
using imbrex::test::Ring;
using imbrex::test::thrown_by;

// The exception of the program.
struct Thrown : std::runtime_error {
  Thrown() : std::runtime_error("thrown by the program") {}
};

// Which ranks an exception takes out of the object.
enum class Who { last, first, all };
bool leaves(const Who who, const Ring& ring) {
  return who == Who::all || ring.rank == (who == Who::last ? ring.size - 1 : 0);
}
std::string leaver(const Who who, const Ring& ring) {
  return "on rank " + std::to_string(who == Who::last ? ring.size - 1 : 0);
}

class Leave : public testing::TestWithParam<Who> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Leave, testing::Values(Who::last, Who::first, Who::all));

// A chain of tasks over all ranks, of which the leaving rank may have inserted only a part.
void insert_chain(Space& space, const std::vector<imbrex::Data<double>>& data, const int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < data.size(); ++i) {
      const auto& from = data[i];
      const auto& to = data[(i + 1) % data.size()];
      if (&from == &to) continue;
      space.task("step").in(from).inout(to).launch(
          [](View<const double> a, View<double> b) { b[0] += a[0]; });
    }
  }
}

TEST_P(Leave, a_space_with_outstanding_tasks) {
  const Ring ring;
  for (const std::size_t elements : {std::size_t{1}, std::size_t{50'000}}) {
    std::string error;
    std::string again;
    bool caught = false;
    std::vector<double> memory(elements, 1.0);
    try {
      Space space(ring.comm, {.name = "chain"});
      std::vector<imbrex::Data<double>> data;
      for (int owner = 0; owner < ring.size; ++owner) {
        data.push_back(space.data<double>(owner, elements, memory.data()));
      }
      insert_chain(space, data, 4);
      if (leaves(GetParam(), ring)) throw Thrown();
      insert_chain(space, data, 4);
      error = thrown_by([&] { space.finish(); });
      again = thrown_by([&] { space.finish(); });
    } catch (const Thrown&) {
      caught = true;
    }
    EXPECT_EQ(caught, leaves(GetParam(), ring));
    if (caught) continue;
    EXPECT_NE(error.find("space of data \"chain\" " + leaver(GetParam(), ring)), std::string::npos)
        << error;
    EXPECT_EQ(error, again);
  }
}

// The variables that a body refers to are destroyed by the exception: it must have ended.
TEST_P(Leave, a_space_whose_bodies_have_begun_waits_for_them) {
  const Ring ring;
  int ended = 0;
  int begun_later = 0;
  std::string error;
  try {
    std::atomic<bool> begun = false;
    std::optional<int> local = 1;
    Space space(ring.comm);
    std::vector<imbrex::Data<int>> all;
    for (int owner = 0; owner < ring.size; ++owner) all.push_back(space.data<int>(owner, 1));
    for (const auto& one : all) {
      space.task("long").out(one).launch([&](View<int>) {
        begun = true;
        for (int i = 0; i < 20; ++i) {
          imbrex::test::sleep_ms(1);
          imbrex::yield();
        }
        ended += local.value();
      });
      space.task("after").inout(one).launch([&](View<int>) { ++begun_later; });
    }
    if (leaves(GetParam(), ring)) {
      while (!begun) imbrex::yield();
      throw Thrown();
    }
    error = thrown_by([&] { space.finish(); });
  } catch (const Thrown&) {
    EXPECT_EQ(begun_later, 0);
  }
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(error.empty(), leaves(GetParam(), ring)) << error;
}

TEST_P(Leave, a_space_that_belongs_to_a_task) {
  const Ring ring;
  const bool leaving = leaves(GetParam(), ring);
  std::string error;
  bool caught = false;
  try {
    imbrex::finish([&] {
      imbrex::task("owner").launch([&] {
        Space space(ring.comm, {.name = "inner"});
        const auto data = space.data<int>(0, 1);
        space.task("set").out(data).launch([](View<int> x) { x[0] = 5; });
        for (int other = 1; other < ring.size; ++other) {
          space.task("get").in(data).on(other).launch([](View<const int>) {});
        }
        if (leaving) throw Thrown();
        error = thrown_by([&] { space.finish(); });
      });
    });
  } catch (const Thrown&) {
    caught = true;
  }
  EXPECT_EQ(caught, leaving);
  EXPECT_EQ(error.find("\"inner\"") == std::string::npos, leaving) << error;
}

// finish() has thrown on every rank: every rank leaves, and none is reported for it.
TEST(Left, an_error_of_finish_ends_the_space_on_all_ranks) {
  const Ring ring;
  std::string error;
  try {
    Space space(ring.comm);
    const auto data = space.data<int>(ring.size - 1, 1);
    space.task("fails").out(data).launch([](View<int>) { throw Error("imbrex: no input"); });
    space.finish();
  } catch (const Error& thrown) {
    error = thrown.what();
  }
  EXPECT_NE(error.find("no input"), std::string::npos) << error;
}

// What is made and ended in a destructor that an exception runs ends as always.
TEST(Left, an_object_that_ends_well_during_an_exception_is_collective) {
  const Ring ring;
  struct AtEnd {
    const Ring& ring;
    std::optional<int>& seen;
    ~AtEnd() {
      Space space(ring.comm);
      const auto data = space.data<int>(0, 1);
      space.task("set").out(data).launch([](View<int> x) { x[0] = 7; });
      const auto copy = space.data<int>(ring.size - 1, 1);
      space.task("copy").in(data).out(copy).launch(
          [](View<const int> from, View<int> to) { to[0] = from[0]; });
      space.finish();
      if (ring.rank == ring.size - 1) seen = copy.view()[0];
      FutureSpace<int> futures(ring.comm, {.home = [](auto) { return 0; }});
      if (ring.rank == 0) futures.set(1, 3);
      EXPECT_EQ(futures[1].get(), 3);
    }
  };
  std::optional<int> seen;
  try {
    const AtEnd at_end{ring, seen};
    throw Thrown();
  } catch (const Thrown&) {
  }
  EXPECT_EQ(seen.value_or(0), ring.rank == ring.size - 1 ? 7 : 0);
}

TEST_P(Leave, a_space_of_futures) {
  const Ring ring;
  const bool leaving = leaves(GetParam(), ring);
  std::string of_get, of_set, of_ask, of_close;
  bool caught = false;
  for (const std::size_t elements : {std::size_t{1}, std::size_t{100'000}}) {
    try {
      const int ranks = ring.size;
      // The functions refer to variables that the exception destroys.
      const std::optional<int> alive = 1;
      FutureSpace<std::vector<int>> space(
          ring.comm, {.home = [&](const std::uint64_t guid) {
                        return static_cast<int>(guid) % ranks * alive.value();
                      },
                      .readers = [&](std::uint64_t) -> std::size_t { return 99u + alive.value(); },
                      .name = "parts"});
      std::vector<imbrex::Future<std::vector<int>>> asked;
      for (int home = 0; home < ranks; ++home) asked.push_back(space[home]);
      imbrex::finish([&] {  // one value is put, by a rank that stays if there is one
        const int putting = GetParam() == Who::first ? ranks - 1 : 0;
        if (ring.rank == putting) space.set(100 * ranks, std::vector<int>(elements, 4));
      });
      MPI_Barrier(ring.comm);  // else space[] could throw above
      if (leaving) throw Thrown();
      for (auto& one : asked) {
        of_get = thrown_by([&] { (void)one.get(); });
        EXPECT_NE(of_get.find("\"parts\" " + leaver(GetParam(), ring)), std::string::npos)
            << of_get;
      }
      of_set = thrown_by([&] { space.set(5, std::vector<int>(elements, 1)); });
      of_ask = thrown_by([&] { (void)space[7]; });
      of_close = thrown_by([&] { space.close(); });
    } catch (const Thrown&) {
      caught = true;
    }
    EXPECT_EQ(caught, leaving);
    if (leaving) continue;
    for (const std::string& one : {of_set, of_ask, of_close}) {
      EXPECT_NE(one.find("\"parts\" " + leaver(GetParam(), ring)), std::string::npos) << one;
    }
  }
}

TEST_P(Leave, a_pool) {
  const Ring ring;
  const bool leaving = leaves(GetParam(), ring);
  bool caught = false;
  std::string error, again;
  std::atomic<int> items = 0;
  try {
    WorkPool<int> pool(ring.comm, {.name = "tree"});
    const auto work = [&](const int depth, imbrex::Emit<int>& emit) {
      ++items;
      if (depth < 6) {
        emit(depth + 1);
        emit(depth + 1);
      }
    };
    pool.push(0);
    pool.process(work);  // all ranks take part
    pool.push(0);
    if (leaving) throw Thrown();
    error = thrown_by([&] { pool.process(work); });
    again = thrown_by([&] { pool.process(work); });
  } catch (const Thrown&) {
    caught = true;
  }
  EXPECT_EQ(caught, leaving);
  int sum = items.load();
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, ring.comm);
  EXPECT_GE(sum, 127 * ring.size);
  if (leaving) return;
  EXPECT_NE(error.find("\"tree\" " + leaver(GetParam(), ring)), std::string::npos) << error;
  EXPECT_EQ(error, again);
}

TEST(Left, an_error_of_a_function_ends_the_pool_on_all_ranks) {
  const Ring ring;
  bool caught = false;
  try {
    WorkPool<int> pool(ring.comm);
    pool.push(0);
    pool.process([](int, imbrex::Emit<int>&) { throw Error("imbrex: a wrong item"); });
  } catch (const Error&) {
    caught = true;
  }
  EXPECT_TRUE(caught);
}

}  // namespace
