// SPDX-License-Identifier: BSD-3-Clause
#include "trace/trace.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "imbrex/error.hpp"
#include "trace/symbols.hpp"

namespace imbrex::trace {
namespace {

TEST(Recorder, sums_the_time_of_each_activity) {
  Recorder recorder;
  TimeBase time;
  time.start();
  recorder.enable(true, false, 0);
  recorder.enter(Activity::task);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  recorder.enter(Activity::idle);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  recorder.enter(Activity::overhead);
  time.stop();
  EXPECT_NEAR(time.seconds(recorder.ticks_in(Activity::task)), 0.020, 0.015);
  EXPECT_GE(time.seconds(recorder.ticks_in(Activity::idle)), 0.004);
  EXPECT_LT(time.seconds(recorder.ticks_in(Activity::overhead)), 0.004);
}

TEST(Recorder, keeps_nothing_when_it_is_off) {
  Recorder recorder;
  recorder.enable(false, false, 0);
  recorder.enter(Activity::task);
  recorder.enter(Activity::idle);
  EXPECT_EQ(recorder.ticks_in(Activity::task), 0u);
}

TEST(Files, hold_every_record_and_the_names) {
  const std::string directory = testing::TempDir() + "imbrex_trace_test";
  std::filesystem::remove_all(directory);
  TimeBase time;
  time.start();
  Recorder recorder;
  recorder.enable(true, true, 3);
  recorder.record(Kind::task_begin, 17, intern("a \"name\"", nullptr), 0, 0);
  recorder.record(Kind::task_end, 17, 0, 0, 0);
  time.stop();
  const Header header{
      .rank = 2, .ranks = 4, .workers = 1, .policy = "fifo", .processors = {3, 5}};
  write_files(directory, header, time, {&recorder});
  EXPECT_EQ(std::filesystem::file_size(directory + "/rank-2.events"), 2 * sizeof(Record));
  std::ifstream file(directory + "/rank-2.json");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(text.find(R"("events": 2)"), std::string::npos);
  EXPECT_NE(text.find(R"(a \"name\")"), std::string::npos);
  EXPECT_NE(text.find(R"("processors": [3, 5])"), std::string::npos);
  const std::string own = testing::internal::GetArgvs().at(0);
  EXPECT_NE(text.find("\"command\": [\"" + own + '"'), std::string::npos);
  std::filesystem::remove_all(directory);
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
  write_files(directory, {.rank = 0, .ranks = 1, .workers = 1, .policy = ""}, time, {&recorder});
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
    const std::uint64_t until = base::ticks();
    time.stop();
    write_files(directory,
                {.rank = 0, .ranks = 1, .workers = 1, .policy = "", .cut = "x", .until = until},
                time, {&recorder});
    std::ifstream file(directory + "/rank-0.events", std::ios::binary);
    Record record{};
    std::uint64_t count = 0;
    while (file.read(reinterpret_cast<char*>(&record), sizeof record)) {
      ASSERT_EQ(record.task, ++count);  // in order, and whole
    }
    EXPECT_GE(count + 1, there);
    EXPECT_LE(record.time, time.end_ns() + 1'000'000);
  }
  stop = true;
  thread.join();
  std::filesystem::remove_all(directory);
}

TEST(Files, that_cannot_be_written_are_an_error_that_names_them) {
  TimeBase time;
  try {
    write_files("/proc/no/such", {.rank = 0, .ranks = 1, .workers = 1, .policy = ""}, time, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/proc/no/such"), std::string::npos);
  }
}

}  // namespace
}  // namespace imbrex::trace
