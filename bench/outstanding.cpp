// SPDX-License-Identifier: BSD-3-Clause
// What one message of 8 bytes costs its receiver while many receives are outstanding, each with a
// tag of its own. Rank 1 sends to some of them, in an order drawn from a seed, and says in shared
// memory when they are on their way; only then rank 0 looks at its clock, receives them and makes
// each receive anew. So it is the receiver's work that is measured, not the sender's nor the wait.
//
//   mpirun -n 2 outstanding <system> <receives> [batches]
//
// Systems: `testsome` is MPI alone, one MPI_Testsome over all. `imbrex` gives each request to
// imbrex_continue(). `tasks` has one task for each receive, blocked in MPI_Recv.
#include <imbrex/continue.h>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <sched.h>

#include "measure.h"
#include "raw_mpi.hpp"

namespace {

constexpr int batch_size = 8;
constexpr std::int64_t last = -1;  // instead of the tag: no more will come

// Both ranks' view of one page.
struct Shared {
  std::atomic<long> wanted{0};  // rank 0: batches asked for
  std::atomic<long> sent{0};    // rank 1: batches sent
};

struct Bench {
  int receives;
  long warm_up;  // batches that are not timed
  long batches;
  Shared* shared;
  std::vector<std::int64_t> values;
  // One worker, so no race.
  std::vector<int> complete;  // tags whose continuations have run
  long arrived = 0;
};

void wait_for(const std::atomic<long>& counter, long value) {
  while (counter.load(std::memory_order_acquire) < value) sched_yield();
}

void send_all(const Bench& bench) {
  std::mt19937 random(4711);
  std::vector<int> tags(static_cast<std::size_t>(bench.receives));
  std::iota(tags.begin(), tags.end(), 0);
  std::size_t next = tags.size();
  for (long batch = 1; batch <= bench.warm_up + bench.batches; ++batch) {
    wait_for(bench.shared->wanted, batch);
    for (int i = 0; i < batch_size; ++i) {
      if (next == tags.size()) {
        std::shuffle(tags.begin(), tags.end(), random);
        next = 0;
      }
      const std::int64_t value = tags[next];
      RAW_MPI(Send)(&value, 8, MPI_BYTE, 0, tags[next], MPI_COMM_WORLD);
      ++next;
    }
    bench.shared->sent.store(batch, std::memory_order_release);
  }
  wait_for(bench.shared->wanted, bench.warm_up + bench.batches + 1);
  for (int tag = 0; tag < bench.receives; ++tag) {
    RAW_MPI(Send)(&last, 8, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
  }
}

// `receive_batch` returns when eight more have arrived.
template <class Receive>
std::vector<double> time_batches(const Bench& bench, Receive receive_batch) {
  std::vector<double> times;
  for (long batch = 1; batch <= bench.warm_up + bench.batches; ++batch) {
    bench.shared->wanted.store(batch, std::memory_order_release);
    wait_for(bench.shared->sent, batch);
    const double start = now_ns();
    receive_batch();
    const double ns = (now_ns() - start) / batch_size;
    if (batch > bench.warm_up) times.push_back(ns);
  }
  bench.shared->wanted.store(bench.warm_up + bench.batches + 1, std::memory_order_release);
  return times;
}

std::vector<double> with_testsome(Bench& bench) {
  std::vector<MPI_Request> requests(bench.values.size());
  std::vector<int> indices(bench.values.size());
  const auto post = [&](int tag) {
    RAW_MPI(Irecv)(&bench.values[tag], 8, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &requests[tag]);
  };
  for (int tag = 0; tag < bench.receives; ++tag) post(tag);
  auto times = time_batches(bench, [&] {
    for (int left = batch_size; left > 0;) {
      int found = 0;
      RAW_MPI(Testsome)(bench.receives, requests.data(), &found, indices.data(),
                        MPI_STATUSES_IGNORE);
      for (int i = 0; i < found; ++i) post(indices[i]);
      left -= found;
      bench.arrived += found;
    }
  });
  RAW_MPI(Waitall)(bench.receives, requests.data(), MPI_STATUSES_IGNORE);
  return times;
}

void receive_with_event(Bench& bench, int tag) {
  MPI_Request request;
  MPI_Irecv(&bench.values[tag], 8, MPI_BYTE, 1, tag, MPI_COMM_WORLD, &request);
  imbrex_continue(
      &request,
      [](int, int, const MPI_Status* status, void* its_bench) {
        static_cast<Bench*>(its_bench)->complete.push_back(status->MPI_TAG);
      },
      &bench);
}

std::vector<double> with_events(Bench& bench) {
  for (int tag = 0; tag < bench.receives; ++tag) receive_with_event(bench, tag);
  auto times = time_batches(bench, [&] {
    for (const long all = bench.arrived + batch_size; bench.arrived < all;) {
      imbrex_progress();
      for (const int tag : bench.complete) receive_with_event(bench, tag);
      bench.arrived += std::ssize(bench.complete);
      bench.complete.clear();
    }
  });
  while (std::ssize(bench.complete) < bench.receives) imbrex_progress();
  return times;
}

std::vector<double> with_tasks(Bench& bench) {
  for (int tag = 0; tag < bench.receives; ++tag) {
    imbrex::task("receive").launch([&bench, tag] {
      for (;;) {
        MPI_Recv(&bench.values[tag], 8, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (bench.values[tag] == last) return;
        ++bench.arrived;
      }
    });
  }
  imbrex::yield();  // until all wait
  auto times = time_batches(bench, [&] {
    for (const long all = bench.arrived + batch_size; bench.arrived < all;) imbrex::yield();
  });
  imbrex::taskwait();
  return times;
}

std::vector<double> measure(const std::string& system, Bench& bench) {
  if (system == "testsome") return with_testsome(bench);
  if (system == "tasks") return with_tasks(bench);
  return with_events(bench);
}

// The median, and the number of messages of each tag, are what the record says.
void print(const std::string& system, const Bench& bench, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const std::string benchmark = system == "tasks" ? "outstanding_tasks_" : "outstanding_";
  std::printf("{\"benchmark\": \"%s%d\", \"system\": \"%s\", \"workers\": 1, \"ns\": %.3f, "
              "\"operations\": %ld, \"p10\": %.3f, \"p90\": %.3f}\n",
              benchmark.c_str(), bench.receives, system == "testsome" ? "testsome" : "imbrex",
              times[times.size() / 2], bench.arrived, times[times.size() / 10],
              times[times.size() * 9 / 10]);
  std::fflush(stdout);
}

Shared* make_shared(int rank, MPI_Win* window) {
  void* memory = nullptr;
  MPI_Win_allocate_shared(rank == 0 ? sizeof(Shared) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                           static_cast<void*>(&memory), window);
  if (rank == 0) return new (memory) Shared;
  MPI_Aint bytes = 0;
  int unit = 0;
  MPI_Win_shared_query(*window, 0, &bytes, &unit, static_cast<void*>(&memory));
  return static_cast<Shared*>(memory);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string system = argc > 2 ? argv[1] : "";
  Bench bench{};
  bench.receives = argc > 2 ? std::atoi(argv[2]) : 0;
  bench.batches = argc > 3 ? std::atol(argv[3]) : 2000;
  // Each receive once: what it touches at its first message is new memory, and from then on the
  // receives that MPI has stand in the order of the messages and no more of memory. MPI_Testsome
  // over very many would take minutes for that.
  constexpr int passes_max = 4096;
  const bool passes = system != "testsome" || bench.receives <= passes_max;
  bench.warm_up = 10 + (passes ? bench.receives / batch_size : 0);
  if ((system != "testsome" && system != "imbrex" && system != "tasks") || bench.receives < 1) {
    std::fprintf(stderr, "usage: mpirun -n 2 %s testsome|imbrex|tasks <receives> [batches]\n",
                 argv[0]);
    return 2;
  }
  setenv("IMBREX_WORKERS", "1", 1);
  setenv("IMBREX_PROGRESS", "poll", 1);  // continuations run on the thread that is measured
  setenv("IMBREX_TASKS_AHEAD", "0", 1);  // tasks that wait for messages are no backlog
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  require_equal("ranks (mpirun -n 2)", ranks, 2);

  MPI_Win window;
  bench.shared = make_shared(rank, &window);
  bench.values.resize(static_cast<std::size_t>(bench.receives));
  RAW_MPI(Barrier)(MPI_COMM_WORLD);
  if (rank == 1) {
    send_all(bench);
  } else {
    print(system, bench, measure(system, bench));
    require_equal("messages", bench.arrived, (bench.warm_up + bench.batches) * batch_size);
  }
  MPI_Finalize();
}
