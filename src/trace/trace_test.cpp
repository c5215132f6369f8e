// SPDX-License-Identifier: BSD-3-Clause
#include "trace/trace.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "trace/symbols.hpp"

namespace imbrex::trace {
namespace {

// Methodology: the clock is read before and after each change, so that the time of an activity lies
// between two differences, however long the thread is kept from its processor.
TEST(Recorder, sums_the_time_of_each_activity) {
  struct Change {
    std::uint64_t before, after;
  };
  Recorder recorder;
  TimeBase time;
  const auto begin = std::chrono::steady_clock::now();
  time.start();
  const auto changed = [](auto&& change) {
    const std::uint64_t before = base::ticks();
    change();
    return Change{before, base::ticks()};
  };
  const auto enter = [&](const Activity activity) {
    return changed([&] { recorder.enter(activity); });
  };
  const auto expect_between = [&](const Activity activity, const Change& from, const Change& to) {
    EXPECT_GE(recorder.ticks_in(activity), to.before - from.after);
    EXPECT_LE(recorder.ticks_in(activity), to.after - from.before);
  };
  const Change on = changed([&] { recorder.enable(true, false, 0); });  // in overhead
  const Change work = enter(Activity::task);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const Change idle = enter(Activity::idle);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const Change search = enter(Activity::overhead);
  time.stop();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  expect_between(Activity::overhead, on, work);
  expect_between(Activity::task, work, idle);
  expect_between(Activity::idle, idle, search);
  // The rate of the ticks comes from the whole time, which includes the work.
  EXPECT_GE(time.seconds(recorder.ticks_in(Activity::task)), 0.015);
  EXPECT_LE(time.seconds(recorder.ticks_in(Activity::task)), elapsed.count());
}

TEST(Recorder, keeps_nothing_when_it_is_off) {
  Recorder recorder;
  recorder.enable(false, false, 0);
  recorder.enter(Activity::task);
  recorder.enter(Activity::idle);
  EXPECT_EQ(recorder.ticks_in(Activity::task), 0u);
}

TEST(Files, hold_every_record_and_the_names) {
  const std::string all = testing::TempDir() + "imbrex_trace_test";
  const std::string directory = all + "/below/it";  // each of the directories is made
  std::filesystem::remove_all(all);
  TimeBase time;
  time.start();
  Recorder recorder;
  recorder.enable(true, true, 3);
  recorder.record(Kind::task_begin, 17, intern("a \"name\"", nullptr), 0, 0);
  recorder.record(Kind::task_end, 17, 0, 0, 0);
  time.stop();
  const Header header{
      .rank = 2, .ranks = 4, .workers = 1, .policy = "fifo", .processors = {3, 5},
      .spare_workers = {1}};
  EXPECT_EQ(write_files(directory, header, time, {&recorder}), "");
  EXPECT_EQ(std::filesystem::file_size(directory + "/rank-2.events"), 2 * sizeof(Record));
  std::ifstream file(directory + "/rank-2.json");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(text.find(R"("events": 2)"), std::string::npos);
  EXPECT_NE(text.find(R"(a \"name\")"), std::string::npos);
  EXPECT_NE(text.find(R"("processors": [3, 5])"), std::string::npos);
  EXPECT_NE(text.find(R"("spare_workers": [1])"), std::string::npos);
  const std::string own = testing::internal::GetArgvs().at(0);
  EXPECT_NE(text.find("\"command\": [\"" + own + '"'), std::string::npos);
  std::filesystem::remove_all(all);
}

[[gnu::noinline]] int outlined(int value) { return value * 5 + 1; }

TEST(Files, name_functions_when_they_are_written_and_not_before) {
  const std::string directory = testing::TempDir() + "imbrex_trace_code";
  TimeBase time;
  time.start();
  Recorder recorder;
  recorder.enable(true, true, 0);
  const auto* const code = reinterpret_cast<const void*>(&outlined);
  const int nobody = 0;  // is no code
  const std::uint64_t name = intern_code(code, "task");
  EXPECT_EQ(intern_code(code, "task"), name);
  recorder.record(Kind::task_begin, 1, name, 0, 0);
  recorder.record(Kind::task_begin, 2, intern_code(&nobody, "nobody's"), 0, 0);
  time.stop();
  const Header header{.rank = 0, .ranks = 1, .workers = 1, .policy = ""};
  EXPECT_EQ(write_files(directory, header, time, {&recorder}), "");
  std::ifstream file(directory + "/rank-0.json");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::string found = symbol_of(code).name;  // empty without libbacktrace
  EXPECT_NE(text.find('"' + (found.empty() ? "task" : found) + '"'), std::string::npos) << text;
  EXPECT_NE(text.find("\"nobody's\""), std::string::npos);
  std::filesystem::remove_all(directory);
}

TEST(Files, may_be_written_while_a_thread_goes_on_recording) {
  const std::string directory = testing::TempDir() + "imbrex_trace_cut";
  Recorder recorder;
  recorder.enable(true, true, 0);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> most{0};
  std::thread thread([&] {
    const std::uint64_t name = intern("goes on", nullptr);
    while (!stop) {
      if (begun == most) continue;
      recorder.record(Kind::task_begin, begun + 1, name, 0, 0);
      ++begun;
    }
  });
  TimeBase time;
  time.start();
  for (int round = 0; round < 20; ++round) {
    most += 4000;
    while (begun + 3000 < most) std::this_thread::yield();
    const std::uint64_t there = begun;
    most += 500;
    while (begun < there + 500) std::this_thread::yield();  // processors' clocks differ a little
    const std::uint64_t until = base::ticks();
    time.stop();
    const Header header{
        .rank = 0, .ranks = 1, .workers = 1, .policy = "", .cut = "x", .until = until};
    EXPECT_EQ(write_files(directory, header, time, {&recorder}), "");
    std::ifstream file(directory + "/rank-0.events", std::ios::binary);
    Record record{};
    std::uint64_t count = 0;
    while (file.read(reinterpret_cast<char*>(&record), sizeof record)) {
      ASSERT_EQ(record.task, ++count);  // in order, and complete
    }
    EXPECT_GE(count, there);
    EXPECT_LE(record.time, time.end_ns() + 1'000'000);
  }
  stop = true;
  thread.join();
  std::filesystem::remove_all(directory);
}

TEST(Files, an_unwritable_file_is_named) {
  const std::string missing =
      write_files("/proc/no/such", {.rank = 7, .ranks = 9, .workers = 1, .policy = ""}, {}, {});
  EXPECT_NE(missing.find("/proc/no/such"), std::string::npos) << missing;
  EXPECT_NE(missing.find("rank 7"), std::string::npos) << missing;
}

// Methodology: the limit of the size of files replaces a full disk. It also sends a signal.
TEST(Files, hold_whole_records_as_far_as_there_is_room) {
  const std::string directory = testing::TempDir() + "imbrex_trace_full";
  Recorder recorder;
  recorder.enable(true, true, 0);
  constexpr std::uint64_t all = 5000;
  for (std::uint64_t task = 1; task <= all; ++task) {
    recorder.record(Kind::task_begin, task, intern("of many", nullptr), 0, 0);
  }
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  for (const rlim_t room : {rlim_t{100'000}, rlim_t{65'537}, rlim_t{10}}) {
    std::filesystem::remove_all(directory);
    const rlimit small{room, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const Header header{.rank = 0, .ranks = 1, .workers = 1, .policy = ""};
    const std::string missing = write_files(directory, header, {}, {&recorder});
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    EXPECT_NE(missing.find("File too large"), std::string::npos) << missing;
    if (room < 1000) {  // no room even for the names
      EXPECT_TRUE(std::filesystem::is_empty(directory));
      continue;
    }
    const std::uint64_t kept = room / sizeof(Record);
    EXPECT_EQ(std::filesystem::file_size(directory + "/rank-0.events"), kept * sizeof(Record));
    std::ifstream file(directory + "/rank-0.json");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_NE(text.find("\"events\": " + std::to_string(kept) + " "), std::string::npos) << text;
    EXPECT_NE(text.find("\"lost\": " + std::to_string(all - kept) + " "), std::string::npos);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace imbrex::trace
