// SPDX-License-Identifier: BSD-3-Clause
// Accesses that end apart from their task: early, by release(), or when an event fires, by
// release_after(event.future(), object). Methodology: what a follower saw is compared with what
// must have happened before; a promise that stays open keeps what may not run yet from looking
// complete.
#include <array>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/on_runtime.hpp"

namespace imbrex::test {
namespace {

class ReleaseTest : public OnRuntime {};
INSTANTIATE_TEST_SUITE_P(All, ReleaseTest, testing::ValuesIn(every_setup()), name_of);

TEST_P(ReleaseTest, an_access_ends_at_its_event_and_not_with_the_task) {
  Promise<void> arrived;
  int buffer = 0, other = 0;
  std::atomic<int> read = 0;
  auto receive = task("receive").out(buffer).inout(other).spawn([&] {
    release_after(arrived.future(), buffer);
    other = 1;
    return 5;
  });
  EXPECT_EQ(receive.get(), 5);
  auto reader = task("reader").in(buffer).spawn([&] { return read = buffer; });
  auto next = task("next").in(other).spawn([&] { return other; });
  EXPECT_EQ(next.get(), 1);
  let_others_run();
  EXPECT_FALSE(reader.ready());
  std::thread thread([&] {
    buffer = 7;
    arrived.set();
  });
  EXPECT_EQ(reader.get(), 7);
  thread.join();
}

TEST_P(ReleaseTest, waiters_before_and_after_the_end_of_the_task_resume_once) {
  for (int round = 0; round < scaled(200); ++round) {
    Promise<void> arrived;
    int buffer = 0;
    std::atomic<int> sum = 0;
    std::thread thread;
    finish([&] {
      task("receive").out(buffer).launch([&] {
        release_after(arrived.future(), buffer);
        thread = std::thread([&] {
          buffer = 1;
          arrived.set();
        });
      });
      for (int i = 0; i < 5; ++i) {
        task("reader").in(buffer).launch([&] { sum += buffer; });
        if (i % 2 == round % 2) yield();
      }
      task("writer").inout(buffer).launch([&] { sum += 10 * buffer; });
    });
    thread.join();
    EXPECT_EQ(sum.load(), 15);
  }
}

TEST_P(ReleaseTest, finish_waits_for_the_event_and_taskwait_does_not) {
  Promise<void> arrived;
  int buffer = 0;
  std::atomic<bool> over = false;
  std::thread thread;
  finish([&] {
    task("receive").out(buffer).launch([&] { release_after(arrived.future(), buffer); });
    taskwait();
    EXPECT_FALSE(arrived.future().ready());
    thread = std::thread([&] {
      EXPECT_TRUE(comes_true([&over] { return over || waits("main", "finish"); }));
      EXPECT_FALSE(over);
      buffer = 3;
      arrived.set();
    });
  });
  over = true;
  EXPECT_EQ(buffer, 3);
  thread.join();
}

TEST_P(ReleaseTest, a_table_that_is_swept_keeps_who_is_held) {
  Promise<void> arrived;
  int buffer = 0;
  std::vector<int> cells(1000);
  task("receive").out(buffer).launch([&] { release_after(arrived.future(), buffer); });
  taskwait();  // all are complete: tables forget
  for (int& cell : cells) task("other").inout(cell).launch([] {});
  taskwait();
  auto reader = task("reader").in(buffer).spawn([&] { return buffer; });
  let_others_run();
  EXPECT_FALSE(reader.ready());
  buffer = 9;
  arrived.set();
  EXPECT_EQ(reader.get(), 9);
}

TEST_P(ReleaseTest, several_events_hold_one_access_and_one_event_several_accesses) {
  std::array<Promise<void>, 3> events;
  std::array<int, 2> buffers{};
  task("receive").out(buffers[0], buffers[1]).spawn([&] {
    release_after(events[0].future(), buffers[0]);
    release_after(events[1].future(), buffers[0]);
    release_after(events[2].future(), buffers[1]);
    release_after(events[2].future(), buffers[0]);
  }).get();  // else the events may have ended an access before it is held again
  auto both = task("both").in(buffers[0], buffers[1]).spawn([] {});
  auto second = task("second").in(buffers[1]).spawn([] {});
  events[2].set();
  second.get();
  events[0].set();
  let_others_run();
  EXPECT_FALSE(both.ready());
  events[1].set();
  both.get();
}

TEST_P(ReleaseTest, an_event_that_has_fired_ends_the_access_at_once) {
  Promise<void> fired;
  fired.set();
  int buffer = 0;
  Promise<void> go_on;
  auto holder = task("holder").out(buffer).spawn([&] {
    release_after(fired.future(), buffer);
    go_on.future().get();
  });
  task("reader").in(buffer).spawn([] {}).get();
  EXPECT_FALSE(holder.ready());
  go_on.set();
  holder.get();
}

TEST_P(ReleaseTest, ranges_and_mutexes_are_held_as_well) {
  Promise<void> arrived;
  std::vector<int> block(100);
  int counter = 0;
  auto holder = task("holder").out(range(block)).mutexinoutset(counter).spawn([&] {
    release_after(arrived.future(), range(block));
    release_after(arrived.future(), counter);
  });
  holder.get();
  auto part = task("part").in(range(&block[50], 10)).spawn([&] { return block[55]; });
  auto neighbour = task("neighbour").mutexinoutset(counter).spawn([&] { return ++counter; });
  let_others_run();
  EXPECT_FALSE(part.ready());
  EXPECT_FALSE(neighbour.ready());
  block[55] = 4;
  arrived.set();
  EXPECT_EQ(part.get(), 4);
  EXPECT_EQ(neighbour.get(), 1);
}

TEST_P(ReleaseTest, dependents_inherit_the_failure_of_the_event_and_finish_throws_it) {
  Promise<void> message;
  int buffer = 0, other = 0;
  const auto run = [&] {
    finish([&] {
      auto receive = task("receive").out(buffer, other).spawn([&, future = message.future()] {
        release_after(future, buffer);
        return 1;
      });
      EXPECT_EQ(receive.get(), 1);
      auto reader = task("reader").in(buffer).spawn([] {});
      auto next = task("next").in(other).spawn([] { return 2; });
      EXPECT_EQ(next.get(), 2);
      message.set_exception(std::make_exception_ptr(std::runtime_error("lost")));
      EXPECT_THROW(reader.get(), DependencyFailed);
    });
  };
  EXPECT_THROW(run(), std::runtime_error);
}

TEST_P(ReleaseTest, a_body_that_throws_fails_what_is_held) {
  Promise<void> arrived;
  int buffer = 0;
  const auto run = [&] {
    finish([&] {
      auto receive = task("receive").out(buffer).spawn([&] {
        release_after(arrived.future(), buffer);
        throw std::runtime_error("broken");
      });
      auto reader = task("reader").in(buffer).spawn([] {});
      receive.wait();
      arrived.set();
      EXPECT_THROW(reader.get(), DependencyFailed);
    });
  };
  EXPECT_THROW(run(), std::runtime_error);
}

TEST_P(ReleaseTest, an_access_that_cannot_be_held_is_refused) {
  Promise<void> event;
  int declared = 0, not_declared = 0, released = 0;
  task("holder").out(declared, released).spawn([&] {
    EXPECT_THROW(release_after(event.future(), not_declared), Error);
    release(released);
    const auto message_for = [&event](int& object) {
      try {
        release_after(event.future(), object);
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    EXPECT_NE(message_for(not_declared).find("declares no access"), std::string::npos);
    EXPECT_NE(message_for(released).find("has ended already"), std::string::npos);
    release_after(event.future(), declared);
    release(declared);  // it ends by the event
  }).get();
  auto reader = task("reader").in(declared).spawn([] {});
  let_others_run();
  EXPECT_FALSE(reader.ready());
  event.set();
  reader.get();
  EXPECT_THROW(release_after(event.future(), declared), Error);  // main has none
}

// Each block of many goes to its reader as soon as it is there, in whatever order.
TEST_P(ReleaseTest, many_blocks_are_released_one_by_one) {
  const int count = scaled(4000);
  std::vector<int> blocks(static_cast<std::size_t>(count));
  std::vector<Promise<void>> arrived(static_cast<std::size_t>(count));
  std::atomic<int> wrong = 0;
  finish([&] {
    TaskBuilder exchange = task("exchange");
    for (int& block : blocks) (void)exchange.out(block);
    exchange.launch([&] {
      for (int i = 0; i < count; i += 2) release_after(arrived[i].future(), blocks[i]);
      for (int i = count - 1 - count % 2; i > 0; i -= 2) {
        blocks[i] = i + 1;
        release(blocks[i]);
        if (i % 64 == 1) yield();
      }
    });
    for (int i = 0; i < count; ++i) {
      task("reader").in(blocks[i]).launch([&, i] {
        if (blocks[i] != i + 1) ++wrong;
      });
    }
    std::thread thread([&] {
      for (int i = 0; i < count; i += 2) {
        blocks[i] = i + 1;
        arrived[i].set();
      }
    });
    thread.join();
  });
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace imbrex::test
