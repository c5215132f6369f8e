// SPDX-License-Identifier: BSD-3-Clause
// Phasers and accumulators over ranks.
#include "imbrex/mpi_phaser.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "imbrex/accumulator.hpp"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

// The number of phases that each rank has signalled. All ranks see it at once: they share a
// machine.
class Progress {
 public:
  explicit Progress(const Ring& ring) : size_(ring.size) {
    MPI_Comm_split_type(ring.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine_);
    MPI_Win_allocate_shared(sizeof(Count), sizeof(Count), MPI_INFO_NULL, machine_,
                            static_cast<void*>(&mine_), &window_);
    ::new (mine_) Count(0);
    MPI_Barrier(machine_);
  }
  ~Progress() {
    MPI_Barrier(machine_);
    MPI_Win_free(&window_);
    MPI_Comm_free(&machine_);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance() const { mine_->fetch_add(1); }
  [[nodiscard]] std::int64_t least() const {
    std::int64_t least = INT64_MAX;
    for (int rank = 0; rank < size_; ++rank) {
      MPI_Aint bytes = 0;
      int unit = 0;
      Count* other = nullptr;
      MPI_Win_shared_query(window_, rank, &bytes, &unit, static_cast<void*>(&other));
      least = std::min(least, other->load());
    }
    return least;
  }

 private:
  using Count = std::atomic<std::int64_t>;
  int size_;
  MPI_Comm machine_ = MPI_COMM_NULL;
  MPI_Win window_ = MPI_WIN_NULL;
  Count* mine_ = nullptr;
};

// ---- barriers --------------------------------------------------------------------------------

void expect_barrier(const Ring& ring, const MpiPhaserOptions& options, const int tasks,
                    const int phases) {
  const Progress progress(ring);
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait, options);
    for (int i = 0; i < tasks; ++i) {
      task("part").phased(step).launch([&, tasks, phases] {
        for (int phase = 0; phase < phases; ++phase) {
          progress.advance();
          if ((phase + ring.rank) % 7 == 0) yield();
          Phaser::next_all();
          const std::int64_t least = progress.least();
          EXPECT_GE(least, std::int64_t{tasks} * (phase + 1));
          Phaser::next_all();  // no task advances before all have looked
        }
      });
    }
  });
}

TEST(MpiPhaser, is_a_barrier_of_all_tasks_of_all_ranks) {
  const Ring ring;
  expect_barrier(ring, {}, 1, 40);
  expect_barrier(ring, {}, 5, 40);
  expect_barrier(ring, {.ranks_may_leave = true}, 3, 20);
  expect_barrier(ring, {.key = 3}, 3, 20);
  expect_barrier(ring, {.fusion = Fusion::fuzzy}, 1, 20);  // of one task a rank, it is one
}

TEST(MpiPhaser, ranks_may_have_different_numbers_of_tasks) {
  const Ring ring;
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait);
    const Accumulator<int> tasks(step, op::sum);
    for (int i = 0; i <= ring.rank; ++i) {
      task("part").phased(step).launch([=, size = ring.size] {
        for (int phase = 0; phase < 20; ++phase) {
          tasks.put(1);
          Phaser::next_all();
          EXPECT_EQ(tasks.get(), size * (size + 1) / 2);
        }
      });
    }
  });
}

TEST(MpiPhaser, a_fuzzy_one_waits_for_one_task_of_other_ranks_only) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP();
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait, {.fusion = Fusion::fuzzy});
    task("early").phased(step).launch([&] {
      Phaser::next_all();
      if (ring.rank == 1) MPI_Send(nullptr, 0, MPI_BYTE, 0, 1, ring.comm);
      Phaser::next_all();
    });
    task("late").phased(step).launch([&] {
      // A strict phaser would never come here: rank 1 would wait for this task's signal.
      if (ring.rank == 0) MPI_Recv(nullptr, 0, MPI_BYTE, 1, 1, ring.comm, MPI_STATUS_IGNORE);
      Phaser::next_all();
      Phaser::next_all();
    });
  });
}

TEST(MpiPhaser, a_strict_one_waits_for_all_tasks_of_other_ranks) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP();
  std::atomic<bool> passed{false};
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait);
    task("early").phased(step).launch([&] {
      Phaser::next_all();
      passed.store(true);
    });
    task("late").phased(step).launch([&] {
      if (ring.rank == 0) sleep_ms(60);
      EXPECT_FALSE(passed.load());
      Phaser::next_all();
    });
  });
}

TEST(MpiPhaser, in_two_steps_with_work_between) {
  const Ring ring;
  const Progress progress(ring);
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait);
    for (int i = 0; i < 3; ++i) {
      task("part").phased(step).launch([&] {
        for (int phase = 0; phase < 30; ++phase) {
          progress.advance();
          Phaser::signal_all();
          yield();
          Phaser::wait_all();
          EXPECT_GE(progress.least(), 3 * (phase + 1));
          Phaser::next_all();
        }
      });
    }
  });
}

TEST(MpiPhaser, producers_run_ahead_as_far_as_they_may) {
  const Ring ring;
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait, {.ahead = 3});
    const Accumulator<int> amount(step, op::sum);
    task("producer").phased(step, signal_only).launch([=] {
      for (int phase = 0; phase < 50; ++phase) {
        amount.put(phase);
        Phaser::signal_all();
      }
    });
    task("consumer").phased(step, wait_only).launch([=, size = ring.size] {
      for (int phase = 0; phase < 50; ++phase) {
        Phaser::wait_all();
        EXPECT_EQ(amount.get(), size * phase);
      }
    });
    step.drop();
  });
}

TEST(MpiPhaser, a_function_of_single_runs_on_each_rank_when_all_have_signalled) {
  const Ring ring;
  const Progress progress(ring);
  std::atomic<int> runs{0};
  finish([&] {
    const MpiPhaser step(ring.comm, single);
    for (int i = 0; i < 4; ++i) {
      task("part").phased(step).launch([&] {
        for (int phase = 0; phase < 20; ++phase) {
          progress.advance();
          Phaser::next_all(single, [&] {
            EXPECT_GE(progress.least(), 4 * (phase + 1));
            ++runs;
          });
          EXPECT_EQ(runs.load(), phase + 1);
          Phaser::next_all();
        }
      });
    }
  });
  EXPECT_EQ(runs.load(), 20);
}

TEST(MpiPhaser, an_exception_of_single_is_thrown_where_it_ran_and_others_go_on) {
  const Ring ring;
  std::atomic<int> thrown{0};
  finish([&] {
    const MpiPhaser step(ring.comm, single);
    for (int i = 0; i < 3; ++i) {
      task("part").phased(step).launch([&] {
        try {
          Phaser::next_all(single, [] { throw std::runtime_error("of the function"); });
        } catch (const std::runtime_error&) {
          ++thrown;
        }
        Phaser::next_all();
      });
    }
  });
  EXPECT_EQ(thrown.load(), 1);
}

TEST(MpiPhaser, passed_is_a_future_for_tasks_that_are_not_registered) {
  const Ring ring;
  Future<void> third;
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait);
    third = step.passed(2);
    task("observer").in(third).launch([step] { EXPECT_GE(step.phase(), 3u); });
    task("part").phased(step).launch([step] {
      for (int phase = 0; phase < 3; ++phase) Phaser::next_all();
      EXPECT_TRUE(step.passed(2).ready());
      EXPECT_FALSE(step.passed(3).ready());
    });
  });
  EXPECT_TRUE(third.ready());
}

TEST(MpiPhaser, two_advance_in_different_orders_on_different_ranks) {
  const Ring ring;
  finish([&] {
    const MpiPhaser one(ring.comm, signal_wait, {.name = "one"});
    const MpiPhaser two(ring.comm, signal_wait, {.name = "two"});
    const Accumulator<int> sum_one(one, op::sum);
    const Accumulator<int> sum_two(two, op::sum);
    const auto run = [&ring](const Phaser& phaser, const Accumulator<int>& values,
                             const bool slow) {
      for (int phase = 0; phase < 30; ++phase) {
        if (slow) yield();
        values.put(phase + 1);
        phaser.next();
        EXPECT_EQ(values.get(), ring.size * (phase + 1));
      }
    };
    const bool odd = ring.rank % 2 != 0;
    task("a").phased(one).launch([=] { run(one, sum_one, odd); });
    task("b").phased(two).launch([=] { run(two, sum_two, !odd); });
  });
}

// ---- accumulators ------------------------------------------------------------------------------

struct Extremes {
  double low;
  double high;
  std::int16_t count;
};
struct Widen {
  Extremes operator()(const Extremes& a, const Extremes& b) const {
    return {std::min(a.low, b.low), std::max(a.high, b.high),
            static_cast<std::int16_t>(a.count + b.count)};
  }
};

TEST(MpiAccumulator, every_operation_and_kind_gives_the_right_value) {
  const Ring ring;
  const int size = ring.size;
  for (const Accumulation how :
       {Accumulation::lazy, Accumulation::shared, Accumulation::reproducible}) {
    finish([&] {
      const MpiPhaser step(ring.comm, signal_wait);
      const Accumulator<std::int64_t> total(step, op::sum, how);
      const Accumulator<double> factor(step, op::product, how);
      const Accumulator<int> least(step, op::min, how);
      const Accumulator<std::uint8_t> most(step, op::max, how);
      const Accumulator<int> some(step, op::any, how);
      const Accumulator<Extremes> range(step, Widen(), {1e9, -1e9, 0}, how);
      const int offset = 10;
      const Accumulator<int> caught(
          step, [offset](const int a, const int b) { return a + b - offset; }, offset, how);
      for (int i = 0; i < 3; ++i) {
        task("part").phased(step).launch([=, &ring] {
          for (int phase = 0; phase < 5; ++phase) {
            total.put(ring.rank + phase);
            factor.put(2);
            least.put(i - ring.rank);
            most.put(static_cast<std::uint8_t>(100 + ring.rank + i));
            if (ring.rank == 0) some.put(7);
            range.put({-1.0 * ring.rank - i, 1.0 * ring.rank, 1});
            caught.put(offset + 1);
            Phaser::next_all();
            EXPECT_EQ(total.get(), 3 * (size * (size - 1) / 2 + size * phase));
            EXPECT_EQ(factor.get(), static_cast<double>(std::uint64_t{1} << (3 * size)));
            EXPECT_EQ(least.get(), 1 - size);
            EXPECT_EQ(most.get(), 101 + size);
            EXPECT_EQ(some.get(), 7);
            EXPECT_EQ(range.get().low, -1.0 * size - 1);
            EXPECT_EQ(range.get().high, size - 1.0);
            EXPECT_EQ(range.get().count, 3 * size);
            EXPECT_EQ(caught.get(), offset + 3 * size);
            Phaser::next_all();
            EXPECT_EQ(some.get(), 0);  // no task put anything
          }
        });
      }
    });
  }
}

TEST(MpiAccumulator, answers_after_the_finish) {
  const Ring ring;
  std::unique_ptr<Accumulator<int>> total;
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait);
    total = std::make_unique<Accumulator<int>>(step, op::sum);
    for (int i = 0; i < 4; ++i) {
      task("part").phased(step).launch([values = *total] { values.put(1); });  // and ends
    }
  });
  EXPECT_EQ(total->get(), 4 * ring.size);
}

TEST(MpiAccumulator, an_operation_that_throws_is_an_error_on_every_rank) {
  const Ring ring;
  const int culprit = ring.size - 1;
  std::atomic<int> caught{0};
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait);
    const Accumulator<int> value(
        step,
        [&ring, culprit](const int a, const int b) {
          if (ring.rank == culprit) throw std::runtime_error("no sum today");
          return a + b;
        },
        0, Accumulation::reproducible);
    for (int i = 0; i < 3; ++i) {
      task("part").phased(step).launch([=, &ring, &caught] {
        // With the lock of this kind, put() calls the operation and throws as well.
        if (thrown_by([&] { value.put(1); }) != "") ++caught;
        Phaser::next_all();
        const std::string error = thrown_by([&] { (void)value.get(); });
        if (ring.rank == culprit) {
          EXPECT_EQ(error, "no sum today");
        } else {
          EXPECT_SAYS(error, "rank " + std::to_string(culprit));
        }
      });
    }
  });
}

TEST(MpiAccumulator, a_type_that_cannot_be_sent_is_refused) {
  const Ring ring;
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait);
    const std::string error = thrown_by([&] {
      const Accumulator<std::string> text(
          step, [](const std::string& a, const std::string& b) { return a + b; }, "");
    });
    EXPECT_SAYS(error, "trivially copyable");
  });
}

TEST(MpiAccumulator, an_accumulator_of_some_ranks_is_an_error_on_all) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP();
  std::atomic<int> errors{0};
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait, {.name = "uneven"});
    std::unique_ptr<Accumulator<double>> extra;
    if (ring.rank == 0) extra = std::make_unique<Accumulator<double>>(step, op::sum);
    for (int i = 0; i < 2; ++i) {
      task("part").phased(step).launch([&] {
        const std::string error = thrown_by([] { Phaser::next_all(); });
        EXPECT_SAYS(error, "accumulators");
        EXPECT_SAYS(error, "uneven");
        ++errors;
        EXPECT_NE(thrown_by([] { Phaser::signal_all(); }), "");
      });
    }
  });
  EXPECT_EQ(errors.load(), 2);
  expect_barrier(ring, {}, 2, 5);
}

// ---- ranks that leave --------------------------------------------------------------------------

TEST(MpiPhaser, names_the_rank_that_has_left_to_all_who_wait_for_it) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP();
  for (const Fusion fusion : {Fusion::strict, Fusion::fuzzy}) {
    const int leaver = ring.size - 1;
    std::atomic<int> errors{0};
    Future<void> never;
    finish([&] {
      const MpiPhaser step(ring.comm, signal_wait, {.name = "torn", .fusion = fusion});
      never = step.passed(4);
      for (int i = 0; i < 3; ++i) {
        task("part").phased(step).launch([&] {
          const int phases = ring.rank == leaver ? 3 : 6;
          for (int phase = 0; phase < phases; ++phase) {
            const std::string error = thrown_by([] { Phaser::next_all(); });
            if (error == "") continue;
            ++errors;
            EXPECT_EQ(phase, 3);
            EXPECT_SAYS(error, "for rank " + std::to_string(leaver));
            EXPECT_SAYS(error, "in phase 3");
            EXPECT_SAYS(error, "torn");
            EXPECT_SAYS(error, "ranks_may_leave");
            break;
          }
        });
      }
    });
    EXPECT_EQ(errors.load(), ring.rank == leaver ? 0 : 3);
    if (ring.rank != leaver) {
      EXPECT_SAYS(thrown_by([&] { never.get(); }), "torn");
    }
    expect_barrier(ring, {}, 2, 5);  // the communicator serves on
  }
}

TEST(MpiPhaser, a_task_that_throws_leaves) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP();
  const auto run = [&ring] {
    finish([&] {
      const MpiPhaser step(ring.comm, signal_wait);
      task("part").phased(step).launch([&] {
        Phaser::next_all();
        if (ring.rank == 0) throw std::runtime_error("rank 0 has failed");
        Phaser::next_all();
      });
    });
  };
  EXPECT_SAYS(thrown_by(run), ring.rank == 0 ? "rank 0 has failed" : "for rank 0");
}

TEST(MpiPhaser, goes_on_without_ranks_that_may_leave) {
  const Ring ring;
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait, {.ranks_may_leave = true});
    const Accumulator<int> present(step, op::sum);
    for (int i = 0; i < 2; ++i) {
      task("part").phased(step).launch([=, &ring] {
        for (int phase = 0; phase < 3 * (ring.rank + 1); ++phase) {
          present.put(1);
          Phaser::next_all();
          EXPECT_EQ(present.get(), 2 * (ring.size - phase / 3));
        }
      });
    }
  });
}

TEST(MpiPhaser, a_rank_may_have_no_task_at_all) {
  const Ring ring;
  const MpiPhaserOptions options{.ranks_may_leave = true};
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait, options);
    if (ring.rank != 0) return;
    task("part").phased(step).launch([] {
      for (int phase = 0; phase < 10; ++phase) Phaser::next_all();
    });
  });
  finish([&] { const MpiPhaser nobody_uses_it(ring.comm, signal_wait); });
}

TEST(MpiPhaser, a_slow_rank_is_no_error) {  // the others ask meanwhile whether it has left
  const Ring ring;
  finish([&] {
    const MpiPhaser step(ring.comm, signal_wait);
    task("part").phased(step).launch([&] {
      for (int phase = 0; phase < 3; ++phase) {
        if (ring.rank == 0) sleep_ms(250);
        Phaser::next_all();
      }
    });
  });
  expect_barrier(ring, {}, 2, 10);
}

// ---- communicators -----------------------------------------------------------------------------

TEST(MpiPhaser, its_communicator_may_be_freed_before_it_ends) {
  const Ring ring;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(ring.comm, &comm);
  finish([&] {
    const MpiPhaser step(comm, signal_wait);
    const MpiPhaser other(comm, signal_wait, {.key = 0});
    MPI_Comm_free(&comm);
    task("part").phased(step).phased(other).launch([] {
      for (int phase = 0; phase < 10; ++phase) Phaser::next_all();
    });
  });
}

TEST(MpiPhaser, three_hundred_after_each_other) {
  const Ring ring;
  for (int i = 0; i < 300; ++i) {
    MpiPhaserOptions options;
    if (i % 3 == 0) options.key = i % 9;
    finish([&] {
      const MpiPhaser step(ring.comm, signal_wait, options);
      task("part").phased(step).launch([] { Phaser::next_all(); });
    });
  }
}

TEST(MpiPhaser, many_communicators_have_one_each) {
  const Ring ring;
  for (int i = 0; i < 60; ++i) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(ring.comm, ring.rank % 2, 0, &comm);
    expect_barrier(ring, {.key = 1}, 1, 1);
    finish([&] {
      const MpiPhaser step(comm, signal_wait);
      task("part").phased(step).launch([] { Phaser::next_all(); });
    });
    MPI_Comm_free(&comm);
  }
}

TEST(MpiPhaser, tasks_make_phasers_of_keys_in_any_order) {
  const Ring ring;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(ring.comm, &comm);
  finish([&] {
    for (int i = 0; i < 6; ++i) {
      const int key = ring.rank % 2 == 0 ? i : 5 - i;
      task("owner").launch([&, key] {
        if ((key + ring.rank) % 3 == 0) yield();
        finish([&] {
          const MpiPhaser step(comm, signal_wait, {.key = key});
          const Accumulator<int> keys(step, op::sum);
          task("part").phased(step).launch([=, &ring] {
            for (int phase = 0; phase < 10; ++phase) {
              keys.put(key);
              Phaser::next_all();
              EXPECT_EQ(keys.get(), key * ring.size);
            }
          });
        });
      });
    }
  });
  MPI_Comm_free(&comm);
}

TEST(MpiPhaser, made_in_another_order_names_two_ranks) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP();
  const auto make = [&ring](const bool first) {
    const MpiPhaser step(ring.comm, signal_wait, {.name = first ? Name("cells") : Name("edges")});
  };
  finish([&] {
    const std::string error = thrown_by([&] { make(ring.rank != ring.size - 1); });
    EXPECT_SAYS(error, "rank 0 makes MpiPhaser \"cells\"");
    EXPECT_SAYS(error, "rank " + std::to_string(ring.size - 1) + " makes MpiPhaser \"edges\"");
    const std::string keyed = thrown_by([&] {
      const MpiPhaser step(ring.comm, signal_wait,
                           {.fusion = ring.rank == 0 ? Fusion::fuzzy : Fusion::strict, .key = 4});
    });
    EXPECT_SAYS(keyed, "fuzzy");
  });
  expect_barrier(ring, {.key = 4}, 2, 5);
}

TEST(MpiPhaser, misuse_is_refused) {
  const Ring ring;
  finish([&] {
    EXPECT_SAYS(thrown_by([&] { const MpiPhaser p(ring.comm, wait_only); }), "wait_only");
    EXPECT_SAYS(thrown_by([&] { const MpiPhaser p(ring.comm, signal_wait, {.key = -1}); }), "-1");
    EXPECT_SAYS(thrown_by([&] { const MpiPhaser p(ring.comm, signal_wait, {.ahead = 70'000}); }),
                "70000");
    EXPECT_NE(thrown_by([&] { const MpiPhaser p(MPI_COMM_NULL, signal_wait); }), "");
  });
  if (ring.size > 1) {
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm between = MPI_COMM_NULL;
    const bool low = ring.rank < ring.size / 2;
    MPI_Comm_split(ring.comm, low ? 0 : 1, 0, &half);
    MPI_Intercomm_create(half, 0, ring.comm, low ? ring.size / 2 : 0, 9, &between);
    EXPECT_SAYS(thrown_by([&] { const MpiPhaser p(between, signal_wait); }), "inter-communicator");
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
  }
}

TEST(MpiPhaser, is_made_and_used_by_a_thread_of_the_programs_own) {
  const Ring ring;
  on_unknown_thread([&] {
    finish([&] {
      const MpiPhaser step(ring.comm, signal_wait);
      const Accumulator<int> total(step, op::sum);
      task("part").phased(step).launch([=] {
        total.put(1);
        Phaser::next_all();
      });
      total.put(1);
      Phaser::next_all();
      EXPECT_EQ(total.get(), 2 * ring.size);
    });
  });
}

// ---- random programs ---------------------------------------------------------------------------

// All ranks draw the same: which tasks each rank has, what they put and how they wait. Tasks may
// end early, but for the first of a rank, and register children on the way.
class RandomRun {
 public:
  RandomRun(const Ring& ring, const unsigned seed) : ring_(ring), random_(seed) {}

  void run() {
    const Accumulation how = static_cast<Accumulation>(below(3));
    MpiPhaserOptions options;
    options.fusion = below(3) == 0 ? Fusion::fuzzy : Fusion::strict;
    options.ranks_may_leave = below(3) == 0;
    options.ahead = below(3) == 0 ? 2 : 0;
    if (below(3) == 0) options.key = 7;
    phases_ = 1 + below(12);
    expected_.assign(static_cast<std::size_t>(phases_), 0);
    std::vector<Plan> plans;
    for (int rank = 0; rank < ring_.size; ++rank) {
      const int tasks = 1 + below(4);
      for (int i = 0; i < tasks; ++i) plans.push_back(draw(rank, 0, i == 0));
    }
    finish([&] {
      const MpiPhaser step(ring_.comm, signal_wait, options);
      const Accumulator<std::int64_t> total(step, op::sum, how);
      for (const Plan& plan : plans) {
        if (plan.rank == ring_.rank) launch(step, total, plan);
      }
    });
  }

 private:
  struct Plan;
  struct Step {
    std::int64_t value;
    int yields;
    bool in_two;
    std::vector<Plan> children;
  };
  struct Plan {
    int rank;
    int first;
    std::vector<Step> steps;
  };

  int below(const int most) { return static_cast<int>(random_() % static_cast<unsigned>(most)); }

  Plan draw(const int rank, const int first, const bool stays) {
    Plan plan{rank, first, {}};
    const int last = stays ? phases_ : first + below(phases_ - first + 1);
    for (int phase = first; phase < last; ++phase) {
      Step step{below(1000) - 500, below(3), below(3) == 0, {}};
      expected_[static_cast<std::size_t>(phase)] += step.value;
      if (below(8) == 0) step.children.push_back(draw(rank, phase, false));
      plan.steps.push_back(std::move(step));
    }
    return plan;
  }

  void launch(const Phaser& step, const Accumulator<std::int64_t>& total, const Plan& plan) {
    task("part").phased(step).launch([this, step, total, &plan] {
      int phase = plan.first;
      for (const Step& one : plan.steps) {
        for (const Plan& child : one.children) launch(step, total, child);
        total.put(one.value);
        for (int i = 0; i < one.yields; ++i) yield();
        if (one.in_two) {
          Phaser::signal_all();
          yield();
          Phaser::wait_all();
        } else {
          Phaser::next_all();
        }
        EXPECT_EQ(total.get(), expected_[static_cast<std::size_t>(phase)]);
        ++phase;
      }
    });
  }

  const Ring& ring_;
  std::mt19937 random_;
  int phases_ = 0;
  std::vector<std::int64_t> expected_;
};

TEST(MpiPhaser, random_programs_reduce_as_the_model_says) {
  const Ring ring;
  constexpr unsigned programs = IMBREX_TEST_SCALE > 1 ? 40 : 150;
  for (unsigned seed = 1; seed <= programs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomRun(ring, seed).run();
    if (testing::Test::HasFailure()) return;
  }
}

// ---- the end ---------------------------------------------------------------------------------

// Main is registered for good: MPI_Finalize leaves the phaser for it. This test must be the last.
TEST(MpiPhaserAtTheEnd, is_left_by_finalize) {
  const Ring ring;
  const MpiPhaser step(ring.comm, signal_wait);
  step.next();
  if (ring.rank == 0) step.signal();
}

}  // namespace
}  // namespace imbrex::test
