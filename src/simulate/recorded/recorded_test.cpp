// SPDX-License-Identifier: BSD-3-Clause
// Recorded runs in the simulator: traces that the tests write record by record, and that
// rebuild_traces.py rebuilds by tools/imbrex_trace/steps.py.
#include "simulate/recorded/recorded_program.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "imbrex/error.hpp"
#include "simulate/engine/cluster.hpp"
#include "trace/trace.hpp"

namespace imbrex::simulate {
namespace {

using trace::Kind;
using Record = trace::Record;

const std::vector<std::string> policies = {"default", "steal", "fifo", "priority", "ma1",
                                           "ma2",     "ma3",   "sa",   "fa",       "ga"};
constexpr std::uint64_t main_id = 1000;
constexpr std::uint64_t reads = 0, writes = 1, follows = 5;

[[nodiscard]] std::uint64_t message(const int peer, const int tag) noexcept {
  return static_cast<std::uint32_t>(peer) |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(tag)) << 32;
}
[[nodiscard]] std::uint64_t request(const std::uint64_t number) noexcept { return number << 32; }

// The records of one rank; times are in microseconds.
class RankTrace {
 public:
  explicit RankTrace(const int workers = 1) : workers_(workers) {
    add(0, 0, Kind::task_suspend, main_id, 0);
    add(0, 0, Kind::task_resume, main_id);
  }
  void add(const std::uint64_t time_us, const std::uint32_t worker, const Kind kind,
           const std::uint64_t task, const std::uint64_t a = 0, const std::uint64_t b = 0,
           const std::uint64_t c = 0) {
    records.push_back({start + time_us * 1000, task, worker, kind, a, b, c});
  }
  void create(const std::uint64_t time_us, const std::uint64_t task, const std::uint64_t name,
              const std::vector<std::array<std::uint64_t, 3>>& accesses = {},
              const std::uint64_t parent = main_id) {
    add(time_us, 0, Kind::task_create, task, name, 0, parent);
    for (const auto& [a, b, c] : accesses) add(time_us, 0, Kind::task_access, task, a, b, c);
  }
  void run(const std::uint64_t begin_us, const std::uint64_t end_us, const std::uint64_t task,
           const std::uint64_t name) {
    add(begin_us, 0, Kind::task_begin, task, name, 0, main_id);
    add(end_us, 0, Kind::task_end, task);
  }
  [[nodiscard]] int workers() const noexcept { return workers_; }

  static constexpr std::uint64_t start = 1'700'000'000'000'000'000;
  std::vector<Record> records;

 private:
  int workers_;
};

// rebuild_traces.py, one process for all tests of this program.
class Rebuilding {
 public:
  Rebuilding() {
    int in[2], out[2];
    if (pipe(in) != 0 || pipe(out) != 0) throw Error("there are no pipes");
    if (fork() == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      for (const int end : {in[0], in[1], out[0], out[1]}) close(end);
      execl(IMBREX_TEST_PYTHON, IMBREX_TEST_PYTHON, "-B", IMBREX_TEST_REBUILD, nullptr);
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    folders_ = fdopen(in[1], "w");
    answers_ = fdopen(out[0], "r");
  }
  // Throws Error if the trace is refused.
  void rebuild(const std::string& folder) {
    fmt::print(folders_, "{}\n", folder);
    std::fflush(folders_);
    std::array<char, 4096> answer{};
    if (std::fgets(answer.data(), answer.size(), answers_) == nullptr) {
      ADD_FAILURE() << "rebuild_traces.py has died";
      throw Error("no answer");
    }
    if (answer[0] != '\n') throw Error(answer.data());
  }

 private:
  std::FILE* folders_;
  std::FILE* answers_;
};

// Written to a folder of its own, which is removed.
class Trace {
 public:
  explicit Trace(const int count) : ranks(static_cast<std::size_t>(count)) {
    folder_ = std::filesystem::temp_directory_path() /
              ("imbrex_recorded_" + std::to_string(std::random_device()()));
    std::filesystem::create_directories(folder_);
  }
  ~Trace() { std::filesystem::remove_all(folder_); }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void write() const {
    std::string list;
    for (const std::string& name : names) {
      list += list.empty() ? "" : ", ";
      list += fmt::format("{{\"name\": \"{}\", \"where\": \"\"}}", name);
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const auto& records = ranks[rank].records;
      const std::string path = (folder_ / fmt::format("rank-{}", rank)).string();
      std::ofstream(path + ".json") << fmt::format(
          "{{\"version\": {}, \"rank\": {}, \"ranks\": {}, \"workers\": {}, \"policy\": "
          "\"default\", \"host\": \"node\", \"start_ns\": {}, \"end_ns\": {}, \"names\": [{}], "
          "\"events\": {}}}",
          trace::format_version, rank, ranks.size(), ranks[rank].workers(), RankTrace::start,
          RankTrace::start, list, records.size());
      std::ofstream file(path + ".events", std::ios::binary);
      file.write(reinterpret_cast<const char*>(records.data()),
                 static_cast<std::streamsize>(records.size() * sizeof(Record)));
    }
  }
  void rebuild() const {
    static Rebuilding rebuilding;
    rebuilding.rebuild(folder_.string());
  }
  [[nodiscard]] Outcome simulate(const std::string& policy = "default", const int workers = 1,
                                 const double speed = 1) {
    write();
    rebuild();
    ClusterSetup setup;
    setup.ranks = static_cast<int>(ranks.size());
    setup.rank.workers = workers;
    setup.rank.policy = policy;
    setup.rank.creator_ns = 0;
    setup.rank.task_ns = 0;
    setup.network.latency_ns = 10'000;
    setup.network.ns_per_byte = 1;
    setup.network.eager_bytes = eager_bytes;
    setup.network.noise = noise;
    RecordedSetup recorded{.steps = (folder_ / "steps").string(), .ranks = setup.ranks,
                           .speed = speed, .times = {}};
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (times[i] >= 0) recorded.times.push_back({names[i], times[i]});
    }
    const auto program = make_recorded(recorded);
    return imbrex::simulate::simulate(*program, setup);
  }
  [[nodiscard]] std::string error() {
    try {
      (void)simulate();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }

  std::vector<RankTrace> ranks;
  std::vector<std::string> names = {"work", "MPI_Recv", "MPI_Allreduce", "MPI_Bcast",
                                    "MPI_Scatter"};
  std::vector<Time> times = {-1, -1, -1, -1, -1};
  std::int64_t eager_bytes = 1 << 20;
  double noise = 0;

 private:
  std::filesystem::path folder_;
};

[[nodiscard]] double us(const Outcome& outcome) {
  return static_cast<double>(outcome.time_ns) * 1e-3;
}

// ---- tasks -----------------------------------------------------------------------------------

// Three tasks of 100, 200 and 50 us: the second and the third follow the first, which writes.
void write_fork(RankTrace& rank) {
  rank.create(10, 1, 0, {{64, writes, 0}});
  rank.create(10, 2, 0, {{64, reads, 0}});
  rank.create(10, 3, 0, {{64, reads, 0}});
  rank.add(10, 0, Kind::task_suspend, main_id, 0);
  rank.run(10, 110, 1, 0);
  rank.run(110, 310, 2, 0);
  rank.run(310, 360, 3, 0);
  rank.add(360, 0, Kind::task_resume, main_id);
}

TEST(Recorded, tasks_take_as_long_as_measured_and_follow_their_accesses) {
  Trace trace(1);
  write_fork(trace.ranks[0]);
  for (const std::string& policy : policies) {
    for (const int workers : {1, 2, 8}) {
      const Outcome outcome = trace.simulate(policy, workers);
      EXPECT_EQ(outcome.sums.tasks, 3);
      EXPECT_EQ(outcome.sums.in_task_ns, 350'000);
      EXPECT_NEAR(us(outcome), workers == 1 ? 350 : 300, 5) << policy << ", " << workers;
    }
  }
}

TEST(Recorded, kernels_can_be_faster_or_have_a_time_of_their_own) {
  Trace trace(1);
  write_fork(trace.ranks[0]);
  EXPECT_NEAR(us(trace.simulate("default", 1, 2)), 175, 5);
  trace.times[0] = 20'000;
  EXPECT_NEAR(us(trace.simulate("default", 1, 2)), 60, 5);
}

TEST(Recorded, time_in_suspensions_in_idle_and_of_inner_tasks_is_not_computation) {
  Trace trace(1);
  RankTrace& rank = trace.ranks[0];
  rank.create(0, 1, 0);
  rank.create(0, 2, 0);
  rank.add(0, 0, Kind::task_suspend, main_id, 0);
  rank.add(0, 0, Kind::task_begin, 1, 0, 0, main_id);
  rank.add(10, 0, Kind::task_begin, 2, 0, 0, main_id);  // on the stack of task 1
  rank.add(30, 0, Kind::task_end, 2);
  rank.add(40, 0, Kind::idle_begin, 0);
  rank.add(100, 0, Kind::idle_end, 0);
  rank.add(101, 0, Kind::task_suspend, 1, 1);
  rank.add(500, 0, Kind::task_resume, 1);
  rank.add(504, 0, Kind::task_end, 1);
  EXPECT_EQ(trace.simulate().sums.in_task_ns, 20'000 + 10'000 + 10'000 + 1'000 + 4'000);
}

// Methodology: the trace has one worker and shows no suspension of main, as nothing was left to
// wait for. With a task that takes longer, main must wait.
TEST(Recorded, a_wait_that_found_nothing_to_wait_for_still_waits) {
  for (const bool by_future : {false, true}) {
    Trace trace(1);
    RankTrace& rank = trace.ranks[0];
    if (!by_future) rank.add(0, 0, Kind::scope_begin, main_id);
    rank.create(0, 1, 0);
    rank.run(1, 2, 1, 0);
    if (by_future) {
      rank.add(3, 0, Kind::future_awaited, main_id, 0, 1, 1);
    } else {
      rank.add(3, 0, Kind::scope_end, main_id);
    }
    rank.add(103, 0, Kind::scope_begin, main_id);  // after 100 us of main
    rank.add(103, 0, Kind::scope_end, main_id);
    trace.times[0] = 500'000;
    EXPECT_NEAR(us(trace.simulate("default", 2)), 600, 10) << by_future;
  }
}

TEST(Recorded, a_task_waits_for_a_future_that_another_task_sets) {
  Trace trace(1);
  RankTrace& rank = trace.ranks[0];
  rank.create(0, 1, 0);
  rank.create(0, 2, 0);
  rank.create(0, 3, 0, {{0, follows, 4096}});
  rank.add(0, 0, Kind::task_suspend, main_id, 0);
  rank.add(0, 0, Kind::task_begin, 1, 0, 0, main_id);
  rank.add(10, 0, Kind::future_awaited, 1, 0, 4096, 3);
  rank.add(10, 0, Kind::task_suspend, 1, 0, 4096, 3);
  rank.add(10, 0, Kind::task_begin, 2, 0, 0, main_id);
  rank.add(210, 0, Kind::future_set, 2, 0, 0, 4096);
  rank.add(310, 0, Kind::task_end, 2);
  rank.add(310, 0, Kind::task_resume, 1);
  rank.add(330, 0, Kind::task_end, 1);
  rank.run(330, 430, 3, 0);
  // The memory serves another future: this one is not set yet, the first one was.
  rank.create(430, 4, 0, {{0, follows, 4097}});
  rank.run(430, 431, 4, 0);
  for (const std::string& policy : policies) {
    EXPECT_NEAR(us(trace.simulate(policy, 4)), 300, 5) << policy;
    EXPECT_EQ(trace.simulate(policy, 1).sums.in_task_ns, 431'000) << policy;
  }
}

TEST(Recorded, a_tied_task_resumes_on_its_worker_and_all_tasks_run_once) {
  Trace trace(1);
  RankTrace& rank = trace.ranks[0];
  for (std::uint64_t task = 1; task <= 8; ++task) {
    rank.create(0, task, 0);
    rank.add(0, 0, Kind::task_bound, task, 0, 1);
  }
  rank.create(0, 9, 0);
  rank.add(0, 0, Kind::task_suspend, main_id, 0);
  std::uint64_t time = 0;
  for (std::uint64_t task = 1; task <= 8; ++task) {
    rank.add(time, 0, Kind::task_begin, task, 0, 0, main_id);
    rank.add(time + 10, 0, Kind::future_awaited, task, 0, 9, 1);
    rank.add(time += 10, 0, Kind::task_suspend, task, 0, 9, 1);
  }
  rank.run(time, time + 100, 9, 0);
  time += 100;
  for (std::uint64_t task = 1; task <= 8; ++task) {
    rank.add(time, 0, Kind::task_resume, task);
    rank.add(time += 5, 0, Kind::task_end, task);
  }
  for (const std::string& policy : policies) {
    const Outcome outcome = trace.simulate(policy, 3);
    EXPECT_EQ(outcome.sums.tasks, 9) << policy;
    EXPECT_EQ(outcome.sums.in_task_ns, 8 * 15'000 + 100'000) << policy;
  }
}

// The library makes a task, which no task of the program creates, when an event completes a task
// that has left something behind: between two tasks, and in a poll of a thread that is no worker.
TEST(Recorded, a_task_of_the_library_runs_although_no_task_creates_it) {
  for (const std::uint32_t worker : {0u, UINT32_MAX}) {
    Trace trace(1);
    RankTrace& rank = trace.ranks[0];
    rank.create(0, 1, 0);
    rank.add(0, 0, Kind::task_suspend, main_id, 0);
    rank.run(1, 11, 1, 0);
    rank.add(12, worker, Kind::task_create, 2, 1, 0, 0);
    rank.add(13, 0, Kind::task_begin, 2, 1, 0, 0);
    rank.add(43, 0, Kind::task_end, 2);
    rank.add(44, 0, Kind::task_resume, main_id);
    for (const std::string& policy : policies) {
      const Outcome outcome = trace.simulate(policy, 2);
      EXPECT_EQ(outcome.sums.tasks, 2) << policy << ", worker " << worker;
      EXPECT_EQ(outcome.sums.in_task_ns, 40'000) << policy << ", worker " << worker;
    }
  }
}

// Methodology: by its clock, worker 1 begins and ends tasks 1 and 2 before worker 0 creates them.
TEST(Recorded, clocks_of_workers_may_differ) {
  for (const std::uint64_t late_us : {0, 3, 30, 3000}) {
    Trace trace(1);
    RankTrace& rank = trace.ranks[0] = RankTrace(2);
    rank.create(late_us + 1, 1, 0, {{64, writes, 0}});
    rank.create(late_us + 2, 2, 0, {{64, reads, 0}, {128, writes, 0}});
    rank.create(late_us + 3, 3, 0, {{128, reads, 0}});
    rank.add(late_us + 3, 0, Kind::task_suspend, main_id, 0);
    rank.run(late_us + 30, late_us + 40, 3, 0);
    rank.add(late_us + 40, 0, Kind::task_resume, main_id);
    rank.add(2, 1, Kind::task_begin, 1, 0, 0, main_id);
    rank.add(12, 1, Kind::task_end, 1);
    rank.add(12, 1, Kind::task_begin, 2, 0, 0, main_id);
    rank.add(22, 1, Kind::task_end, 2);
    const Outcome outcome = trace.simulate("default", 2);
    EXPECT_EQ(outcome.sums.tasks, 3) << late_us;
    EXPECT_NEAR(us(outcome), 30, 3) << late_us;
  }
}

TEST(Recorded, two_workers_may_create_tasks_with_accesses_at_once) {
  Trace trace(1);
  RankTrace& rank = trace.ranks[0] = RankTrace(2);
  const auto create = [&rank](const std::uint64_t time_us, const std::uint32_t worker,
                              const std::uint64_t task, const std::uint64_t parent) {
    rank.add(time_us, worker, Kind::task_create, task, 0, 0, parent);
    rank.add(time_us + 2, worker, Kind::task_access, task, 64, writes, 0);
    rank.add(time_us + 4, worker, Kind::task_access, task, 128, reads, 0);
  };
  rank.create(0, 1, 0);
  for (std::uint64_t task = 10; task < 20; ++task) create(10 * task, 0, task, main_id);
  rank.add(200, 0, Kind::task_suspend, main_id, 0);
  for (std::uint64_t task = 10; task < 20; ++task) rank.run(100 * task, 100 * task + 50, task, 0);
  rank.add(3000, 0, Kind::task_resume, main_id);
  rank.add(1, 1, Kind::task_begin, 1, 0, 0, main_id);
  for (std::uint64_t task = 20; task < 30; ++task) create(10 * (task - 10) + 1, 1, task, 1);
  rank.add(201, 1, Kind::task_end, 1);
  for (std::uint64_t task = 20; task < 30; ++task) {
    rank.add(100 * task, 1, Kind::task_begin, task, 0, 0, 1);
    rank.add(100 * task + 50, 1, Kind::task_end, task);
  }
  EXPECT_EQ(trace.simulate("default", 2).sums.tasks, 21);
}

// ---- messages ----------------------------------------------------------------------------------

[[nodiscard]] std::uint64_t peer_and_tag(const std::uint64_t peer) { return peer + (7ull << 32); }
[[nodiscard]] std::uint64_t part_of(const std::uint64_t request) {
  return 0xffff'ffffull + (request << 32);
}

// Rank 0 sends a part of 100 us. Rank 1 passes it on to rank 2 in a poll. On both a task that takes
// 10 us follows the part, and main the whole collective. In the trace all is there at once.
TEST(Recorded, parts_of_collectives_arrive_as_messages_and_are_passed_on) {
  for (const std::uint32_t poller : {0u, UINT32_MAX}) {
    Trace trace(3);
    for (std::uint64_t number = 0; number < 3; ++number) {
      RankTrace& rank = trace.ranks[number];
      constexpr std::uint64_t incoming = 4096, outgoing = 8192, all = 12288;
      if (number > 0) {
        rank.add(0, 0, Kind::receive_posted, main_id, 100'000, peer_and_tag(number - 1),
                 part_of(1));
        rank.add(0, 0, Kind::request_given, main_id, 0, incoming, part_of(1));
        rank.add(0, 0, Kind::future_joins, incoming, 3, 0, all);
      }
      if (number < 2) rank.add(0, 0, Kind::future_joins, outgoing, 3, 0, all);
      if (number > 0) {
        rank.create(1, 1, 0, {{0, follows, incoming}});
        rank.add(2, poller, Kind::message_received, 0, 100'000, peer_and_tag(number - 1),
                 part_of(1));
        rank.add(2, poller, Kind::request_ended, main_id, 0, 0, part_of(1));
      }
      if (number < 2) {
        const std::uint64_t task = number == 0 ? main_id : 0;
        rank.add(2, number == 0 ? 0 : poller, Kind::message_sent, task, 100'000,
                 peer_and_tag(number + 1), part_of(2));
        rank.add(2, number == 0 ? 0 : poller, Kind::request_given, task, 0, outgoing, part_of(2));
      }
      rank.add(3, 0, Kind::future_awaited, main_id, 0, all, 3);
      if (number > 0) rank.run(4, 14, 1, 0);
    }
    for (const std::string& policy : policies) {
      EXPECT_NEAR(us(trace.simulate(policy)), 2 * 110 + 10, 12) << policy << ", " << poller;
      EXPECT_EQ(trace.simulate(policy).sums.tasks, 2) << policy;
    }
  }
}

// Rank 0 computes 50 us and sends; rank 1 begins a receive, computes 100 us, and waits.
void write_overlap(Trace& trace, const std::uint64_t bytes) {
  RankTrace& sends = trace.ranks[0];
  sends.create(0, 1, 0);
  sends.add(0, 0, Kind::task_suspend, main_id, 0);
  sends.add(0, 0, Kind::task_begin, 1, 0, 0, main_id);
  sends.add(50, 0, Kind::message_sent, 1, bytes, message(1, 7));
  sends.add(50, 0, Kind::task_end, 1);
  RankTrace& receives = trace.ranks[1];
  receives.create(0, 1, 0);
  receives.add(0, 0, Kind::task_suspend, main_id, 0);
  receives.add(0, 0, Kind::task_begin, 1, 0, 0, main_id);
  receives.add(0, 0, Kind::receive_posted, 1, bytes, message(0, 7), request(5));
  receives.add(100, 0, Kind::request_awaited, 1, 1, 0, request(5));
  receives.add(100, 0, Kind::task_suspend, 1, 1);
  receives.add(400, 0, Kind::task_resume, 1);
  receives.add(400, 0, Kind::message_received, 1, bytes, message(0, 7), request(5));
  receives.add(400, 0, Kind::request_ended, 1, 0, 0, request(5));
  receives.add(420, 0, Kind::task_end, 1);
}

TEST(Recorded, a_receive_that_has_begun_overlaps_with_computation) {
  Trace trace(2);
  write_overlap(trace, 20'000);
  const Outcome outcome = trace.simulate();
  EXPECT_EQ(outcome.messages, 1);
  EXPECT_EQ(outcome.messages_received, 1);
  EXPECT_EQ(outcome.bytes_received, 20'000);
  EXPECT_NEAR(us(outcome), 120, 5);  // it arrives at 80
  trace.ranks[0].records[5].a = trace.ranks[1].records[9].a = 100'000;
  EXPECT_NEAR(us(trace.simulate()), 50 + 10 + 100 + 20, 20);  // by chunks
  trace.eager_bytes = 10;  // an announcement and an answer, which an idle worker sees at once
  for (const std::string& policy : policies) {
    const Outcome by_rendezvous = trace.simulate(policy);
    EXPECT_EQ(by_rendezvous.bytes_received, 100'000) << policy;
    EXPECT_LT(us(by_rendezvous), 300) << policy;
  }
}

// Methodology: worker 0 finds the request complete, or a thread that is no worker.
void expect_dependents_wait_for_a_request(const std::uint32_t poller) {
  Trace trace(2);
  RankTrace& sends = trace.ranks[0];
  sends.add(0, 0, Kind::scope_begin, main_id);
  sends.add(500, 0, Kind::message_sent, main_id, 8, message(1, 3));
  sends.add(500, 0, Kind::scope_end, main_id);
  RankTrace& receives = trace.ranks[1];
  receives.create(0, 1, 0, {{64, writes, 0}});
  receives.create(0, 2, 0, {{64, reads, 0}});
  receives.add(0, 0, Kind::task_suspend, main_id, 0);
  receives.add(0, 0, Kind::task_begin, 1, 0, 0, main_id);
  receives.add(1, 0, Kind::receive_posted, 1, 8, message(0, 3), request(9));
  receives.add(1, 0, Kind::request_given, 1, 0, 8192, request(9));
  receives.add(1, 0, Kind::task_hold, 1, 0, 8192, 3);
  receives.add(2, 0, Kind::task_end, 1);
  receives.add(600, poller, Kind::message_received, 1, 8, message(0, 3), request(9));
  receives.add(600, poller, Kind::request_ended, 1, 0, 0, request(9));
  receives.add(600, poller, Kind::future_set, 0, 0, 0, 8192);
  receives.run(600, 700, 2, 0);
  for (const std::string& policy : policies) {
    const Outcome outcome = trace.simulate(policy, 2);
    EXPECT_NEAR(us(outcome), 500 + 10 + 100, 10) << policy;
    EXPECT_EQ(outcome.messages_received, 1) << policy;
  }
}
TEST(Recorded, dependents_wait_for_the_request_that_a_task_was_released_after) {
  for (const std::uint32_t poller : {0u, UINT32_MAX}) expect_dependents_wait_for_a_request(poller);
}

void write_collectives(Trace& trace, const Kind kind, const std::uint64_t name,
                       const std::uint64_t bytes, const std::uint64_t apart_us) {
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    RankTrace& here = trace.ranks[rank];
    const std::uint64_t bytes_and_root = bytes | (name >= 3 ? std::uint64_t{2} << 40 : 0);
    here.add(0, 0, Kind::scope_begin, main_id);
    here.add(apart_us * rank, 0, kind, main_id, name, bytes_and_root, request(rank + 1));
    if (kind == Kind::collective_begin) {
      here.add(1000, 0, Kind::idle_begin, 0);
      here.add(1000, 0, Kind::collective_end, main_id, name, bytes_and_root);
    } else {
      here.add(apart_us * rank, 0, Kind::request_ended, main_id, 0, 0, request(rank + 1));
    }
    here.add(1000, 0, Kind::scope_end, main_id);
  }
}

// Methodology: the closed form of a binomial tree, in which each rank sends to its largest subtree
// first, and then to the others in turn. Each level takes the announcement, its answer, the
// latency, and the time of the bytes: all of them, or those of the ranks of half of the tree above.
TEST(Recorded, a_long_broadcast_or_scatter_takes_the_time_of_a_binomial_tree) {
  constexpr std::uint64_t bytes = 1 << 22;
  for (const std::uint64_t name : {3, 4}) {
    for (const int ranks : {2, 4, 7, 8, 16, 32}) {
      for (const std::int64_t eager_bytes : {0, 1 << 30}) {
        for (const auto& [apart_us, noise] : {std::pair(0u, 0.0), {0u, 0.5}, {100u, 0.0}}) {
          Trace trace(ranks);
          trace.noise = noise;
          trace.eager_bytes = eager_bytes;
          write_collectives(trace, Kind::collective_begin, name, bytes, apart_us);
          int levels = 0;
          while ((1 << levels) < ranks) ++levels;
          const double of_all = 1e-3 * bytes * (name == 3 ? levels : ranks - 1);
          const double computes = 1000 + apart_us * (ranks - 1.0);  // before it waits, at most
          const double simulated = us(trace.simulate());
          const std::string where = trace.names[name] + " on " + std::to_string(ranks);
          EXPECT_LE(simulated, 1.03 * (levels * 3 * 10 + of_all) + computes) << where;
          EXPECT_GE(simulated, of_all) << where;
        }
      }
    }
  }
}

TEST(Recorded, collectives_meet_and_every_byte_arrives) {
  for (const Kind kind : {Kind::collective_begin, Kind::collective_posted}) {
    for (const std::uint64_t name : {2, 3}) {
      for (const int ranks : {1, 2, 3, 7, 8}) {
        Trace trace(ranks);
        write_collectives(trace, kind, name, 1000, 100);
        const Outcome outcome = trace.simulate();
        int rounds = 0;
        while ((1 << rounds) < ranks) ++rounds;
        EXPECT_EQ(outcome.messages, name == 2 ? ranks * rounds : ranks - 1);
        EXPECT_EQ(outcome.bytes_received, outcome.messages * 1000);
        if (name == 2) {
          EXPECT_GE(us(outcome), 100.0 * (ranks - 1));
        }
      }
    }
  }
}

// ---- traces that cannot be simulated ---------------------------------------------------------

TEST(Recorded, damaged_traces_are_refused_with_file_and_record) {
  const auto refused = [](const std::function<void(Trace&)>& damage, const std::string& text) {
    Trace trace(2);
    write_overlap(trace, 100);
    damage(trace);
    EXPECT_NE(trace.error().find(text), std::string::npos) << trace.error() << "\nnot: " << text;
  };
  using Records = std::vector<Record>;
  const auto records = [](Trace& trace, const std::size_t rank) -> Records& {
    return trace.ranks[rank].records;
  };
  refused([&](Trace& it) { records(it, 1).erase(records(it, 1).begin() + 9); },
          "rank-0.events: record 5: a message to rank 1 with tag 7 that no receive");
  refused([&](Trace& it) { records(it, 0).erase(records(it, 0).begin() + 5); },
          "a message of rank 0 with tag 7 that its trace does not send");
  refused([&](Trace& it) { records(it, 0)[5].task = 77; },
          "task 77, in a record of kind 7, was not created");
  refused([&](Trace& it) { records(it, 0)[4].a = 99; }, "record 4: name 99");
  refused([&](Trace& it) { records(it, 0)[4].kind = static_cast<Kind>(99); },
          "record 4: unknown kind 99");
  refused([&](Trace& it) { records(it, 0)[4].worker = 3; }, "record 4: worker 3");
  refused([&](Trace& it) { records(it, 0)[5].b = message(9, 7); }, "with rank 9, but there are 2");
  refused([&](Trace& it) { records(it, 0)[5].time = 1; }, "more than 100 days");
  refused([&](Trace& it) { it.ranks[0].add(60, 0, Kind::scope_end, main_id); },
          "a finish() ends that has not begun");
  refused([&](Trace& it) { it.ranks[0].add(60, 0, Kind::copy_sent, main_id); },
          "data with owners");
  refused([&](Trace& it) { it.ranks[0].add(60, 0, Kind::collective_begin, main_id, 2, 8); },
          "call 1 of MPI_Allreduce on its communicator is not in the trace of rank 1");
}

TEST(Recorded, tasks_that_wait_for_each_other_are_refused) {
  Trace trace(1);
  RankTrace& rank = trace.ranks[0];
  rank.create(0, 1, 0);
  rank.create(0, 2, 0);
  rank.add(0, 0, Kind::task_suspend, main_id, 0);
  for (const std::uint64_t task : {1, 2}) {
    rank.add(task, 0, Kind::task_begin, task, 0, 0, main_id);
    rank.add(task, 0, Kind::future_awaited, task, 0, 3 - task, 1);
    rank.add(task, 0, Kind::task_suspend, task, 0, 3 - task, 1);
  }
  EXPECT_NE(trace.error().find("deadlock"), std::string::npos) << trace.error();
}

TEST(Recorded, a_truncated_file_is_refused) {
  Trace trace(1);
  write_fork(trace.ranks[0]);
  trace.write();
  const auto path = trace.folder() / "rank-0.events";
  for (std::uintmax_t bytes = 0; bytes < std::filesystem::file_size(path); bytes += 16) {
    trace.write();
    std::filesystem::resize_file(path, bytes);
    EXPECT_THROW(trace.rebuild(), Error);
  }
}

// Methodology: fields of records get values that are strange, or those of other records; records
// vanish and change places. Each trace is simulated, with all tasks, or refused by Error.
TEST(Recorded, no_damage_crashes_or_hangs_the_simulator) {
  constexpr std::uint64_t strange[] = {0, 1, 2, 3, 7, 31, 64, 65, std::uint64_t{1} << 32,
                                       std::uint64_t{5} << 32, UINT32_MAX, UINT64_MAX, main_id};
  int simulated = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](const std::size_t limit) { return random() % limit; };
    Trace trace(2);
    write_overlap(trace, 5000);
    for (RankTrace& rank : trace.ranks) {
      rank.create(421, 11, 0, {{64, writes, 0}, {128, reads, 64}});
      rank.create(421, 12, 0, {{64, reads, 0}, {0, follows, 4096}, {11, follows, 0}});
      rank.run(422, 430, 11, 0);
      rank.add(430, 0, Kind::future_set, main_id, 0, 0, 4096);
      rank.run(431, 440, 12, 0);
      rank.add(440, 0, Kind::future_joins, 11, 1, seed % 2, 8192);
      rank.add(440, 0, Kind::future_joins, 12, 1, seed % 2, 8192);
      rank.add(441, 0, Kind::future_awaited, main_id, 0, 8192, 3);
      rank.add(442, 0, Kind::scope_begin, main_id);
      rank.add(443, 0, Kind::children_awaited, main_id, seed % 2);
      rank.add(444, 0, Kind::scope_end, main_id);
    }
    write_collectives(trace, Kind::collective_begin, 2, 1000, 100);
    for (std::size_t count = 1 + below(3); count > 0; --count) {
      auto& records = trace.ranks[below(2)].records;
      Record& record = records[below(records.size())];
      const Record& other = records[below(records.size())];
      const std::uint64_t value = below(2) == 0 ? strange[below(std::size(strange))] : 0;
      switch (below(8)) {
        case 0: record.task = value != 0 ? value : other.task; break;
        case 1: record.a = value != 0 ? value : other.a; break;
        case 2: record.b = value != 0 ? value : other.b; break;
        case 3: record.c = value != 0 ? value : other.c; break;
        case 4: record.kind = value != 0 ? static_cast<Kind>(below(34)) : other.kind; break;
        case 5: record.time = other.time; break;
        case 6: std::swap(record, records[below(records.size())]); break;
        default: records.erase(records.begin() + static_cast<std::ptrdiff_t>(
                                                     below(records.size())));
      }
    }
    try {
      const Outcome outcome = trace.simulate(policies[seed % policies.size()], 2);
      EXPECT_EQ(outcome.sums.ended, outcome.sums.created) << seed;
      EXPECT_EQ(outcome.messages, outcome.messages_received) << seed;
      ++simulated;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(simulated, 50);
  EXPECT_LT(simulated, 560);
}

TEST(Recorded, one_trace_gives_one_result_bit_by_bit) {
  for (const std::string& policy : policies) {
    Trace trace(7);
    write_collectives(trace, Kind::collective_begin, 2, 1000, 100);
    for (RankTrace& rank : trace.ranks) write_fork(rank);
    const Outcome first = trace.simulate(policy, 3);
    const Outcome second = trace.simulate(policy, 3);
    EXPECT_EQ(first.time_ns, second.time_ns) << policy;
    EXPECT_EQ(first.events, second.events) << policy;
  }
}

}  // namespace
}  // namespace imbrex::simulate
