// SPDX-License-Identifier: BSD-3-Clause
// Phasers over ranks whose collectives fail: every task that waits or signals is told.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>

#include "imbrex/accumulator.hpp"
#include "imbrex/mpi_phaser.hpp"
#include "mpi_test.hpp"

extern "C" void failing_after(int calls);  // preload/failing.cpp

// A failed collective may be open on another rank: its communicators are not freed.
extern "C" [[gnu::visibility("default")]] const char* __lsan_default_suppressions() {
  return "leak:imbrex::mpi::phasers::\nleak:ompi_comm_create_group";
}

namespace imbrex::test {
namespace {

// The number of tasks, of three that take `phases` phases, that MPI's error has reached. On all
// ranks alike: none waits for one whose collective has failed.
int reached(const Ring& ring, const MpiPhaserOptions& options, const bool accumulates,
            const int calls_before) {
  std::atomic<int> errors{0};
  Future<void> never;
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait, options);
    std::optional<Accumulator<int>> total;
    if (accumulates) total.emplace(step, op::sum);
    never = step.passed(100);
    failing_after(calls_before);
    for (int i = 0; i < 3; ++i) {
      task("part").phased(step).launch([&, total] {
        try {
          for (int phase = 0; phase < 6; ++phase) {
            if (total) total->put(1);
            Phaser::next_all();
            if (total) {
              EXPECT_EQ(total->get(), 3 * ring.size);
            }
          }
        } catch (const MpiError& error) {
          ++errors;
          EXPECT_EQ(error.code(), MPI_ERR_OTHER);
          EXPECT_NE(std::string(error.what()).find("faulty"), std::string::npos) << error.what();
        }
        EXPECT_THROW(Phaser::signal_all(), MpiError);
      });
    }
  });
  EXPECT_THROW(never.get(), MpiError);
  return errors.load();
}

TEST(PhaserErrors, reach_every_task) {
  const Ring ring;
  for (int calls = 0; calls < 4; ++calls) {
    EXPECT_EQ(reached(ring, {.name = "faulty"}, false, calls), 3);
    EXPECT_EQ(reached(ring, {.name = "faulty"}, true, calls), 3);
    EXPECT_EQ(reached(ring, {.name = "faulty", .fusion = Fusion::fuzzy}, false, calls), 3);
    EXPECT_EQ(reached(ring, {.name = "faulty", .ranks_may_leave = true}, true, calls), 3);
    EXPECT_EQ(reached(ring, {.name = "faulty", .key = 1}, false, calls), 3);
  }
}

TEST(PhaserErrors, errors_of_one_rank_reach_the_others) {
  const Ring ring;
  std::string told;
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait, {.name = "faulty"});
    task("part").phased(step).launch([&] {
      Phaser::next_all();
      if (ring.rank == 0) failing_after(0);
      try {
        Phaser::next_all();
      } catch (const Error& error) {
        told = error.what();
      }
    });
  });
  EXPECT_NE(told.find(ring.rank == 0 ? "faulty" : "rank 0"), std::string::npos) << told;
  finish([&] {  // of communicators that have not failed
    const MpiPhaser step(ring.comm, signal_wait);
    task("part").phased(step).launch([] { Phaser::next_all(); });
  });
}

}  // namespace
}  // namespace imbrex::test
