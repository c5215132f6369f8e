// SPDX-License-Identifier: BSD-3-Clause
// Priority that flows to what precedes a task while workers run: the order under each policy that
// does it, and that nothing runs twice or too early when all raise at once. (The priorities
// themselves are pinned in src/sched/policy/policy_test.cpp.)
#include <array>
#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "core/on_runtime.hpp"
#include "imbrex/detail/plug_ins.hpp"

namespace imbrex::test {
namespace {

const std::vector<const char*> policies_of_the_paper{"fifo", "ma1", "ma2", "ma3", "sa", "fa", "ga"};

// One worker: it runs nothing before main waits, so that the order is the policy's. Policies that
// learn have tests of their own.
class LineageOrderTest : public OnRuntime {
 protected:
  [[nodiscard]] static bool is(const char* policy) {
    return std::string(GetParam().policy) == policy;
  }
  [[nodiscard]] static bool flows_upward() { return is("ma2") || is("ma3") || is("sa"); }
};
INSTANTIATE_TEST_SUITE_P(OneWorker, LineageOrderTest,
                         testing::ValuesIn(setups({1}, {"fifo", "ma1", "ma2", "ma3", "sa"})),
                         name_of);

class LineageStressTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, LineageStressTest,
                         testing::ValuesIn(setups({1, 2, 4, 8}, policies_of_the_paper)), name_of);

using Entries = std::vector<int>;

TEST_P(LineageOrderTest, predecessors_of_a_send_go_before_tasks_created_earlier) {
  Log log;
  int x = 0;
  finish([&] {
    for (int i = 0; i < 2; ++i) task("other").launch([&log, i] { log.add(i); });
    task("first").inout(x).launch([&log] { log.add(10); });
    task("second").inout(x).launch([&log] { log.add(11); });
    task("send").in(x).priority(5).launch([&log] { log.add(12); });
  });
  EXPECT_EQ(log.entries(), flows_upward() ? Entries({10, 11, 12, 0, 1})
                                          : Entries({0, 1, 10, 11, 12}));
}

TEST_P(LineageOrderTest, the_send_that_is_nearer_goes_first_where_depth_counts) {
  Log log;
  int x = 0, y = 0;
  finish([&] {
    task("far").inout(x).launch([&log] { log.add(0); });
    task("far").inout(x).launch([&log] { log.add(1); });
    task("send").in(x).priority(1).launch([&log] { log.add(2); });
    task("near").inout(y).launch([&log] { log.add(10); });
    task("send").in(y).priority(1).launch([&log] { log.add(11); });
  });
  EXPECT_EQ(log.entries(), is("ma3") || is("sa") ? Entries({10, 11, 0, 1, 2})
                                                 : Entries({0, 1, 2, 10, 11}));
}

TEST_P(LineageOrderTest, a_future_that_a_task_depends_on_precedes_it) {
  Log log;
  finish([&] {
    for (int i = 0; i < 2; ++i) task("other").launch([&log, i] { log.add(i); });
    const Future<void> value = task("value").spawn([&log] { log.add(10); });
    task("send").in(value).priority(1).launch([&log] { log.add(11); });
  });
  EXPECT_EQ(log.entries(), flows_upward() ? Entries({10, 11, 0, 1}) : Entries({0, 1, 10, 11}));
}

TEST_P(LineageOrderTest, children_and_predecessors_of_a_send_follow_it_under_sa_alone) {
  Log log;
  Future<void> value;
  finish([&] {
    for (int i = 0; i < 2; ++i) task("other").launch([&log, i] { log.add(i); });
    value = task("value").spawn([&log] { log.add(10); });
    task("send").priority(1).launch([&log, &value] {
      value.get();
      task("child").launch([&log] { log.add(11); });
      taskwait();
    });
    task("later").launch([&log] { log.add(2); });
  });
  EXPECT_EQ(log.entries(), is("sa") ? Entries({10, 11, 0, 1, 2}) : Entries({0, 1, 10, 2, 11}));
}

// Under fa and ga a task that was about to send tells which tasks do.
class LearningTest : public OnRuntime {
 protected:
  static void send() { detail::about_to_send(); }
  // Creates two tasks that lead to no third one, and then the first task of a chain.
  static void others_and_first(Log& log, int& x) {
    for (int i = 0; i < 2; ++i) task("other").launch([&log, i] { log.add(i); });
    task("first").inout(x).launch([&log] { log.add(10); });
  }
  // A rank that waits for its first message has nothing to run, so its creator goes on.
  static void expect_that_a_send_teaches_tasks_created_before(const int tasks_between) {
    Log log;
    Promise<void> message("message");
    const Future<void> arrived = message.future();
    int x = 0, y = 0, z = 0;
    const auto receive_and_pass_on = [&](int& field, const int number) {
      task("receive").in(arrived).inout(field).launch([&log, number] { log.add(number); });
      task("send").in(field).launch([&log, number] {
        log.add(number + 1);
        send();
      });
    };
    finish([&] {
      receive_and_pass_on(x, 0);
      task("other").in(arrived).launch([&log] { log.add(2); });
      receive_and_pass_on(y, 10);
      for (int i = 0; i < tasks_between; ++i) {
        task("later").in(arrived).inout(z).launch([] {});
      }
      message.set();
    });
    EXPECT_EQ(log.entries(), Entries({0, 1, 10, 11, 2})) << tasks_between;
  }
};
INSTANTIATE_TEST_SUITE_P(OneWorker, LearningTest,
                         testing::ValuesIn(setups({1}, {"fa", "ga"})), name_of);

TEST_P(LearningTest, tasks_of_a_kind_that_has_sent_go_first_with_what_precedes_them) {
  Log log;
  int x = 0;
  const auto iterate = [&] {
    finish([&] {
      others_and_first(log, x);
      task("send").in(x).launch([&log] {
        log.add(11);
        send();
      });
    });
  };
  iterate();
  iterate();
  EXPECT_EQ(log.entries(), Entries({0, 10, 11, 1, 10, 11, 0, 1}));
}

TEST_P(LearningTest, a_marked_task_that_never_sends_goes_by_creation_after_a_trial) {
  Log log;
  int x = 0;
  const auto iterate = [&] {
    finish([&] {
      others_and_first(log, x);
      task("marked").in(x).priority(5).launch([&log] { log.add(11); });
    });
  };
  iterate();
  iterate();
  EXPECT_EQ(log.entries(), Entries({0, 10, 11, 1, 0, 1, 10, 11}));
}

TEST_P(LearningTest, a_task_that_sends_raises_tasks_created_before_it_ran) {
  Log log;
  int x = 0;
  finish([&] {
    for (int i = 0; i < 3; ++i) {
      if (i == 2) task("other").launch([&log] { log.add(0); });
      if (i == 2) task("first").inout(x).launch([&log] { log.add(1); });
      task("send").in(x).launch([&log, i] {
        log.add(10 + i);
        send();
      });
    }
  });
  EXPECT_EQ(log.entries(), Entries({10, 11, 1, 12, 0}));
}

TEST_P(LearningTest, a_task_that_sends_raises_tasks_created_thousands_before) {
  expect_that_a_send_teaches_tasks_created_before(5000);
}

// More tasks than the first size of what a policy remembers.
TEST_P(LearningTest, a_task_that_sends_raises_tasks_created_a_hundred_thousand_before) {
  expect_that_a_send_teaches_tasks_created_before(150'000);
}

TEST_P(LearningTest, a_task_whose_child_sends_is_next_to_one_that_does) {
  Log log;
  const auto iterate = [&](const int number) {
    finish([&] {
      task("other").launch([&log, number] { log.add(number); });
      task("parent").launch([&log, number] {
        log.add(10 + number);
        task("child").launch(send);
      });
    });
  };
  iterate(0);
  iterate(1);
  EXPECT_EQ(log.entries(), Entries({0, 10, 11, 1}));
}

// The diagonal of a Cholesky factorisation on one of several ranks: the only way to its first send
// leads through tasks that are created behind many of a kind that computes.
TEST_P(LearningTest, until_a_task_has_sent_kinds_that_have_not_begun_are_tried_early) {
  Log log;
  int x = 0, y = 0, z = 0;
  const auto update = [&log](int& field, const int number) {
    task("update").inout(field).launch([&log, number] { log.add(number); });
  };
  const auto pass_on = [&log](int& field, const int number) {
    task("send").in(field).launch([&log, number] {
      log.add(number);
      send();
    });
  };
  finish([&] {
    update(x, 0);
    for (int i = 1; i < 4; ++i) task("other").in(y).launch([&log, i] { log.add(i); });
    task("factor").inout(x).launch([&log] { log.add(10); });
    pass_on(x, 11);
    update(z, 12);
    pass_on(z, 13);
  });
  // "other" goes first once: when "update" has run, it is as unknown as "factor".
  EXPECT_EQ(log.entries(), Entries({0, 1, 10, 11, 12, 13, 2, 3}));
}

TEST_P(LearningTest, tasks_with_another_number_of_accesses_are_of_another_kind) {
  Log log;
  int x = 0, y = 0;
  const auto iterate = [&](const bool sends) {
    finish([&] {
      for (int i = 0; i < 2; ++i) {
        task("other").launch([&log, i] { log.add(i); });
        auto builder = task("send");
        (void)builder.in(x);
        if (i == 1) (void)builder.in(y);
        builder.launch([&log, i, sends] {
          log.add(10 + i);
          if (sends) send();
        });
      }
    });
  };
  iterate(false);
  EXPECT_EQ(log.entries(), Entries({0, 10, 11, 1}));
  iterate(true);
  EXPECT_EQ(log.entries(), Entries({0, 10, 11, 1, 0, 10, 1, 11}));
}

// Under ga other ranks tell how long the path is behind a message.
class PathTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(OneWorker, PathTest, testing::ValuesIn(setups({1}, {"ga"})), name_of);

// Two iterations of three sends, each to another rank, and what precedes them; between the two the
// average path behind messages to each rank becomes known.
Entries iterations(const std::array<float, 3>& behind_us) {
  Log log;
  std::array<int, 3> fields{};
  const auto iterate = [&] {
    finish([&] {
      for (int i = 0; i < 3; ++i) {
        auto& field = fields[static_cast<std::size_t>(i)];
        task("first").inout(field).launch([&log, i] { log.add(i); });
        task("send").in(field).launch([&log, i] {
          log.add(10 + i);
          detail::about_to_send();
          detail::message_leaves(static_cast<std::uint64_t>(i) << 32);
        });
      }
    });
  };
  iterate();
  for (int message = 0; message < 32; ++message) {
    for (std::uint64_t rank = 0; rank < behind_us.size(); ++rank) {
      // Paths of single messages tell little: only their average counts.
      detail::learn_path(rank << 32, message % 2 == 0 ? 0 : 2 * behind_us[rank]);
    }
  }
  iterate();
  return log.entries();
}

TEST_P(PathTest, the_send_to_the_rank_with_longer_paths_goes_first_with_what_precedes_it) {
  EXPECT_EQ(iterations({1e3F, 5e3F, 2e3F}), Entries({0, 10, 1, 11, 2, 12, 1, 11, 2, 12, 0, 10}));
}

TEST_P(PathTest, ranks_whose_paths_differ_by_less_than_half_are_alike) {
  EXPECT_EQ(iterations({1e3F, 1.2e3F, 1.3e3F}),
            Entries({0, 10, 1, 11, 2, 12, 0, 10, 1, 11, 2, 12}));
}

TEST_P(PathTest, a_message_is_told_the_longest_path_that_it_has_opened) {
  static std::vector<std::pair<std::uint64_t, float>> told;  // one worker
  told.clear();
  const auto work = [](const int ms) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  int x = 0, y = 0;
  detail::report_paths([](const std::uint64_t message, const float length_us) noexcept {
    told.emplace_back(message, length_us);
  });
  finish([&] {
    task("receive").out(x).launch([] { detail::message_arrives(42); });
    task("short").in(x).launch([&] { work(1); });
    task("long").in(x).out(y).launch([&] { work(5); });
    task("longer").in(y).launch([&] { work(5); });
  });
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].first, 42u);
  EXPECT_GE(told[0].second, 9.9e3F);  // the rate of ticks is measured in 0.2 ms
  EXPECT_LT(told[0].second, 10e6F);
}

// Control edges that no access declares. One worker; the send is created when the others wait.
class ControlTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(OneWorker, ControlTest, testing::ValuesIn(setups({1}, {"sa"})), name_of);

TEST_P(ControlTest, predecessors_of_a_joint_future_precede_its_dependents) {
  Log log;
  finish([&] {
    for (int i = 0; i < 2; ++i) task("other").launch([&log, i] { log.add(i); });
    std::vector<Future<void>> parts;
    for (int i = 10; i < 12; ++i) {
      parts.push_back(task("part").spawn([&log, i] { log.add(i); }));
    }
    const auto all = when_all(parts);
    task("send").in(all).priority(1).launch([&log] { log.add(12); });
  });
  EXPECT_EQ(log.entries(), Entries({10, 11, 12, 0, 1}));
}

TEST_P(ControlTest, the_event_of_a_held_task_goes_first_when_a_send_depends_on_the_task) {
  Log log;
  int x = 0;
  finish([&] {
    for (int i = 0; i < 2; ++i) task("other").launch([&log, i] { log.add(i); });
    const Future<void> value = task("value").spawn([&log] { log.add(11); });
    task("held").out(x).launch([&log, value] {
      log.add(10);
      release_after(value);
    });
    task("send").in(x).priority(1).launch([&log] { log.add(12); });
  });
  EXPECT_EQ(log.entries(), Entries({10, 11, 12, 0, 1}));
}

TEST_P(ControlTest, a_rise_reaches_what_a_task_waits_for_already) {
  Log log;
  Promise<void> go;
  int x = 0, z = 0;
  finish([&] {
    task("gate").out(z).launch([&go] { go.future().get(); });
    for (int i = 0; i < 2; ++i) task("other").in(z).launch([&log, i] { log.add(i); });
    task("waits").out(x).launch([&log, &go] {
      int y = 0;
      task("blocker").out(y).launch([&go] { go.future().get(); });
      task("value").in(y).spawn([&log] { log.add(10); }).get();
    });
    yield();
    task("send").in(x).priority(1).launch([&log] { log.add(11); });
    go.set();
  });
  EXPECT_EQ(log.entries(), Entries({10, 11, 0, 1}));
}

// Creators spawn graphs of their own at once, which also depend on one chain of common tasks, while
// workers run them: priorities rise in tasks that become ready, begin, wait, release the data that
// they read, and end.
TEST_P(LineageStressTest, all_run_once_and_in_order_while_priorities_rise) {
  const int creators = 4;
  const int count = scaled(4000);
  constexpr int objects = 6;
  std::vector<Future<void>> common;
  int chain = 0;
  std::atomic<int> ran = 0;
  std::atomic<int> wrong = 0;
  finish([&] {
    for (int i = 0; i < 32; ++i) {
      common.push_back(task("common").inout(chain).spawn([&chain, &wrong, i] {
        if (chain++ != i) ++wrong;
      }));
    }
    for (int creator = 0; creator < creators; ++creator) {
      task("creator").launch([&, creator] {
        std::mt19937 random(static_cast<unsigned>(creator));
        std::array<int, objects> versions{};
        std::array<int, objects> written{};
        for (int i = 0; i < count; ++i) {
          const auto from = random() % objects;
          const auto to = (from + 1 + random() % (objects - 1)) % objects;
          const int given = random() % 8 == 0 ? 1 : 0;
          const int read = written[from];
          const int before = written[to]++;
          const auto body = [&versions, &common, &ran, &wrong, from, to, read, before] {
            if (versions[from] != read || versions[to]++ != before) ++wrong;
            if (before % 16 == 0) detail::about_to_send();
            if (before % 4 == 0) detail::message_arrives(static_cast<std::uint64_t>(before));
            if (before % 4 == 1) release(versions[from]);
            if (before % 32 == 2) common[from].get();
            ran.fetch_add(1, std::memory_order_relaxed);
          };
          if (random() % 4 == 0) {
            task("late").in(versions[from], common[random() % common.size()]).inout(versions[to])
                .priority(given).launch(body);
          } else {
            task("node").in(versions[from]).inout(versions[to]).priority(given).launch(body);
          }
        }
        taskwait();
      });
    }
  });
  EXPECT_EQ(ran.load(), creators * count);
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace imbrex::test
