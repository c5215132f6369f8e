// SPDX-License-Identifier: BSD-3-Clause
// The flight recorder from the store of an event to what a reader sees after the writer was killed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>

#include "explain/gathered.hpp"
#include "explain/top.hpp"
#include "flight/folder.hpp"
#include "flight/writer.hpp"
#include "imbrex/error.hpp"

namespace imbrex::explain {
namespace {

namespace fs = std::filesystem;
using detail::FlightEvent;

class Flight : public ::testing::Test {
 protected:
  Flight() {
    std::string name = testing::TempDir() + "imbrex-flight-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~Flight() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  // Runs `code` in a process that has a file with two workers, and ends it by `end`.
  void write(const std::function<void()>& code, const int end = SIGKILL) {
    const pid_t child = fork();
    if (child == 0) {
      if (!flight::open(2, folder_).empty()) _exit(99);
      code();
      if (end == 0) {
        flight::close(true);
        _exit(0);
      }
      raise(end);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), end);
  }
  [[nodiscard]] Recording only() const {
    const std::vector<std::string> files = find_files({folder_});
    EXPECT_EQ(files.size(), 1u);
    return read_recording(files.front());
  }

  static void wait(const std::uint64_t stack, const std::uint64_t task, const char* const name,
                   const detail::WaitReason& reason) {
    flight::begin(*flight::wait_of(stack), task, name, std::source_location::current(), reason);
  }
  static void be_rank(const int rank, const int ranks) {
    flight::head()->rank.store(static_cast<std::uint64_t>(rank));
    flight::head()->ranks.store(static_cast<std::uint64_t>(ranks));
    flight::head()->world.store(7);
  }
  static detail::WaitReason receives_from(const int peer, const int tag) {
    return {.kind = detail::WaitKind::mpi, .what = "MPI_Recv", .peer = peer, .tag = tag,
            .bytes = 64, .communicator = 7};
  }

  std::string folder_;
};

TEST_F(Flight, a_killed_process_leaves_its_waits_and_last_events) {
  write([] {
    be_rank(1, 4);
    flight::Ring ring = flight::ring_of(1);
    for (int i = 0; i < 3000; ++i) {
      ring.add(FlightEvent::sent, 5, "MPI_Send", flight::pack_where(2, i), 16);
    }
    wait(0, 1, "main", {.kind = detail::WaitKind::finish});
    wait(70, 9, "receive halo", receives_from(3, 20));
    wait(71, 10, "has gone on", receives_from(3, 21));
    flight::wait_of(71)->task.store(0);
    flight::tick();
  });
  const Recording it = only();
  EXPECT_EQ(it.life, Life::gone);
  EXPECT_EQ(std::pair(it.rank, it.ranks), std::pair(1, 4));
  ASSERT_EQ(it.waits.size(), 2u);
  EXPECT_EQ(it.waits[0].call, "finish");
  EXPECT_NE(it.waits[1].task.text.find("\"receive halo\" (explain_test.cpp:"), std::string::npos);
  EXPECT_EQ(text_of(it.waits[1]), "MPI_Recv from 3, tag 20, 64 bytes, on MPI_COMM_WORLD");
  ASSERT_EQ(it.workers.size(), 2u);
  EXPECT_EQ(it.workers[1].all_events, 3000u);
  const ShownEvent& last = it.workers[1].events.back();
  EXPECT_EQ(last.what, "MPI_Send");
  EXPECT_EQ(std::pair(last.peer, last.tag), std::pair(2, 2999));
}

TEST_F(Flight, phasers_and_complete_operations_are_shown) {
  write([] {
    be_rank(0, 2);
    flight::ring_of(0).add(FlightEvent::phaser, 5, "next()", flight::pack_where(-1, -1), 3);
    flight::ring_of(flight::Beside::completed)
        .add(FlightEvent::completed, 6, "MPI_Irecv", flight::pack_where(1, 20));
    flight::ring_of(flight::Beside::resumed)
        .add(FlightEvent::resumed, 7, "MPI_Recv", flight::pack_where(1, 21));
    flight::head()->in_flight.store(12);
    flight::tick();
  });
  EXPECT_EQ(only().in_flight, 12u);
  const std::string text = text_of(gather(find_files({folder_})));
  for (const char* const line : {"task 5 came to next() in phase 3",
                                 "task 6 completed MPI_Irecv from 1, tag 20",
                                 "task 7 went on after MPI_Recv from 1, tag 21"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST_F(Flight, a_run_that_ends_well_leaves_nothing) {
  write([] { flight::tick(); }, 0);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Flight, a_text_that_is_not_there_any_more_is_left_out) {
  write([] {
    const auto* const gone = reinterpret_cast<const char*>(std::uintptr_t{0x1000});
    wait(64, 3, gone, {.kind = detail::WaitKind::event});
    flight::tick();
  });
  EXPECT_EQ(only().waits.size(), 1u);
}

TEST_F(Flight, a_child_of_fork_stores_nowhere) {
  write([] {
    wait(64, 3, "of the parent", {.kind = detail::WaitKind::event});
    flight::tick();
    const pid_t child = fork();
    if (child == 0) {
      flight::Wait* const shown = flight::wait_of(64);
      flight::forget();
      shown->task.store(0);  // a stack of the parent still knows its place
      EXPECT_EQ(flight::head(), nullptr);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  });
  ASSERT_EQ(only().waits.size(), 1u);
  EXPECT_NE(only().waits[0].task.text.find("of the parent"), std::string::npos);
}

// Each byte may be anything: the writer may have died at any moment, and the disk may be full.
TEST_F(Flight, damaged_files_are_read_or_refused) {
  write([] {
    flight::Ring ring = flight::ring_of(0);
    for (int i = 0; i < 100; ++i) ring.add(FlightEvent::resumed, 5, "MPI_Wait");
    for (std::uint64_t i = 0; i < 80; ++i) wait(i, i + 1, "waits", receives_from(1, 1));
    flight::keep_facts("facts");
    flight::tick();
  });
  const std::string whole = find_files({folder_}).front();
  std::ifstream in(whole, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::mt19937 random(17);
  const std::string path = folder_ + "/damaged.flight";
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string copy = bytes;
    // the head, the tables and the waits hold what a reader must not believe
    const std::size_t within = round % 3 == 0 ? 400 : copy.size();
    for (int i = 0; i < 200; ++i) copy[random() % within] = static_cast<char>(random());
    if (round % 5 == 0) copy.resize(random() % copy.size());
    std::ofstream(path, std::ios::binary).write(copy.data(), std::ssize(copy));
    try {
      (void)text_of(gather({path}));
      (void)json_of(gather({path}));
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 30);
  EXPECT_LT(refused, 270);
}

TEST_F(Flight, the_rank_that_died_first_is_the_cause) {
  write([] {
    be_rank(1, 2);
    wait(64, 3, "sends", {.kind = detail::WaitKind::mpi, .what = "MPI_Send", .peer = 0, .tag = 1});
    flight::tick();
  });
  write([] {
    be_rank(0, 2);
    wait(64, 3, "receives", receives_from(1, 1));
    flight::tick();
    flight::head()->tenths.fetch_add(100);  // it has lived for ten seconds more
  });
  const Gathered it = gather(find_files({folder_}));
  ASSERT_EQ(it.all.size(), 2u);
  ASSERT_FALSE(it.findings.empty());
  EXPECT_EQ(it.findings.front().cause, diagnosis::Cause::dead_rank);
  EXPECT_EQ(it.findings.front().ranks, std::vector{1});
  EXPECT_TRUE(text_of(it).starts_with("cause: ")) << text_of(it);
}

TEST_F(Flight, only_the_job_that_ran_last_is_looked_at) {
  setenv("PMIX_NAMESPACE", "first", 1);
  write([] { be_rank(0, 2); });
  setenv("PMIX_NAMESPACE", "second", 1);
  write([] {
    be_rank(1, 2);
    flight::head()->tenths.fetch_add(10);
  });
  unsetenv("PMIX_NAMESPACE");
  const Gathered it = gather(find_files({folder_}));
  ASSERT_EQ(it.all.size(), 1u);
  EXPECT_EQ(it.all.front().job, "second");
  EXPECT_EQ(it.missing, std::vector{0});
}

TEST_F(Flight, files_of_dead_processes_are_bounded) {
  for (int i = 1; i <= 300; ++i) {
    std::ofstream(fmt::format("{}/{}.{}.flight", folder_, flight::host_name(), 4'000'000 + i));
  }
  std::ofstream(folder_ + "/another-host.12.flight");
  write([] {}, 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 257);
  EXPECT_TRUE(fs::exists(folder_ + "/another-host.12.flight"));
}

// The last process of a job removes its folder, and another one may just begin.
TEST_F(Flight, processes_of_one_job_begin_and_end_at_the_same_time) {
  setenv("TMPDIR", folder_.c_str(), 1);
  setenv("PMIX_NAMESPACE", "job", 1);
  constexpr int processes = 4, rounds = 200;
  for (int i = 0; i < processes; ++i) {
    if (fork() != 0) continue;
    for (int round = 0; round < rounds; ++round) {
      if (!flight::open(1, "").empty()) _exit(1);
      flight::close(true);
      flight::forget();
    }
    _exit(0);
  }
  for (int i = 0; i < processes; ++i) {
    int status = 0;
    ::wait(&status);
    EXPECT_EQ(status, 0);
  }
  unsetenv("TMPDIR");
  unsetenv("PMIX_NAMESPACE");
}

TEST_F(Flight, the_folder_of_a_user_is_private) {
  setenv("TMPDIR", folder_.c_str(), 1);
  const std::string base = fmt::format("{}/imbrex-{}", folder_, geteuid());
  const flight::Folder made = flight::make_folder("");
  EXPECT_TRUE(made.path.starts_with(base)) << made.path;
  struct stat state{};
  ASSERT_EQ(stat(made.path.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0700u);
  chmod(base.c_str(), 0755);
  EXPECT_NE(flight::make_folder("").problem.find("others may look into it"), std::string::npos);
  fs::remove_all(base);
  fs::create_directory_symlink("/tmp", base);
  EXPECT_NE(flight::make_folder("").problem.find("is no folder"), std::string::npos);
  unsetenv("TMPDIR");
}

// A store beyond the limit would end the process by a signal.
TEST_F(Flight, a_limit_of_the_size_of_files_is_named) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit small{65536, 65536};
    setrlimit(RLIMIT_FSIZE, &small);
    const std::string problem = flight::open(2, folder_);
    _exit(problem.find("ulimit -f allows 65536") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Flight, a_folder_that_cannot_be_written_is_named) {
  EXPECT_NE(flight::open(1, "/proc/no/such").find("/proc/no/such"), std::string::npos);
  EXPECT_EQ(flight::head(), nullptr);
  EXPECT_EQ(flight::wait_of(0), nullptr);
  flight::ring_of(0).add(FlightEvent::sent, 1, "MPI_Send");  // goes nowhere
  flight::tick();
}

TEST(Top, shares_are_those_since_the_last_look) {
  Recording before{.path = "a", .rank = 3, .process = 12, .program = "./solver"};
  before.workers.resize(1);
  before.workers[0] = {.tasks = 100, .in_task = 50, .idle = 0, .overhead = 0};
  Recording now = before;
  now.workers[0] = {.task = {7, "\"sweep\" (heat.cpp:12)"}, .tasks = 130, .in_task = 80,
                    .idle = 60, .overhead = 10};
  now.waits.push_back({.call = "MPI_Recv", .peer = 2});
  now.in_flight = 9;
  const std::string table = table_of({before}, {now}, 40, 200);
  EXPECT_NE(table.find("  worker 0       30    60       10        30  \"sweep\" (heat.cpp:12)"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("9 operations in flight, 1 waits: 1 MPI_Recv (2)"), std::string::npos)
      << table;
  EXPECT_NE(table_of({}, {now, now, now}, 5, 30).find("... and 4 more lines"), std::string::npos);
}

}  // namespace
}  // namespace imbrex::explain
