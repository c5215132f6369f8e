// SPDX-License-Identifier: BSD-3-Clause
// A task waits, its request completes, and MPI gives the handle to another request before the task
// has run again: under IMBREX_CHECK the wait for that one was "a second wait for one request". The
// engine is polled by hand here, between two steps of main, so that this happens every time.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "fake_mpi.hpp"
#include "fuzz/expect.hpp"
#include "imbrex/continue.h"
#include "imbrex/events.h"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"

namespace {

using imbrex::test::expect;

using Wait = std::function<int(std::vector<MPI_Request>&)>;

const std::map<std::string, Wait> ways{
    {"wait", [](auto& requests) { return MPI_Wait(&requests[0], MPI_STATUS_IGNORE); }},
    {"waitall",
     [](auto& requests) {
       return MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
     }},
    {"waitany",
     [](auto& requests) {
       int index = -1;
       return MPI_Waitany(static_cast<int>(requests.size()), requests.data(), &index,
                          MPI_STATUS_IGNORE);
     }},
    {"waitsome",
     [](auto& requests) {
       int found = 0;
       std::vector<int> indices(requests.size());
       return MPI_Waitsome(static_cast<int>(requests.size()), requests.data(), &found,
                           indices.data(), MPI_STATUSES_IGNORE);
     }},
};

void send_one(int tag) {
  imbrex::fake_mpi::send({.comm = MPI_COMM_WORLD,
                          .source = 1,
                          .tag = tag,
                          .bytes = std::vector<std::byte>(sizeof(int))});
  expect(imbrex::fake_mpi::arrive(MPI_COMM_WORLD, 1), "the message arrives");
}

// The engine, and nothing else.
void poll() {
  imbrex_mpi_event event;
  for (int round = 0; round < 3; ++round) expect(imbrex_mpi_event_poll(&event) == 0, "no event");
}

MPI_Request receive_one(int tag, int* value) {
  MPI_Request request;
  MPI_Irecv(value, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, &request);
  return request;
}

// One poll finds two requests complete, a thread is slow to tell of the first, and the second one's
// task does not know yet: without IMBREX_CHECK too, its handle was "waited for already".
void run_batch() {
  using namespace imbrex;
  struct Slow {
    std::atomic<bool> begun{false};
    std::atomic<bool> may_end{false};
  } slow;
  int values[3] = {-1, -1, -1};
  MPI_Request told = receive_one(1, &values[0]);
  imbrex_continue(
      &told,
      [](int, int, const MPI_Status*, void* argument) {
        Slow& its = *static_cast<Slow*>(argument);
        its.begun.store(true);
        while (!its.may_end.load()) std::this_thread::yield();
      },
      &slow);
  MPI_Request request = receive_one(2, &values[1]);
  const MPI_Request handle = request;
  bool stop = false;
  const Future<void> bustle = task("bustle").spawn([&] {
    while (!stop) yield();
  });
  const Future<int> waits =
      task("waits").spawn([&] { return MPI_Wait(&request, MPI_STATUS_IGNORE); });
  for (int round = 0; round < 20; ++round) yield();
  send_one(1);
  send_one(2);
  std::thread poller([&] {
    while (!slow.begun.load()) (void)imbrex_progress();
  });
  while (!slow.begun.load()) std::this_thread::yield();

  MPI_Request next = receive_one(3, &values[2]);
  expect(next == handle, "the handle is given again");
  send_one(3);
  expect(MPI_Wait(&next, MPI_STATUS_IGNORE) == MPI_SUCCESS, "that is no second wait");
  slow.may_end.store(true);
  poller.join();
  stop = true;
  expect(waits.get() == MPI_SUCCESS, "the first has ended too");
  expect(values[0] == 0 && values[1] == 0 && values[2] == 0, "all are received");
  bustle.wait();
}

void run(const Wait& wait) {
  using namespace imbrex;
  int first = -1;
  int second = -1;
  std::vector<MPI_Request> requests{receive_one(1, &first)};
  const MPI_Request handle = requests[0];
  bool stop = false;
  const Future<void> bustle = task("bustle").spawn([&] {
    while (!stop) yield();  // else the waiting task would wait in place
  });
  const Future<int> waits = task("waits").spawn([&] { return wait(requests); });
  for (int round = 0; round < 20; ++round) yield();
  send_one(1);
  poll();
  expect(!waits.ready(), "the task has not run since");

  std::vector<MPI_Request> next{receive_one(2, &second)};
  expect(next[0] == handle, "the handle is given again");
  send_one(2);
  expect(wait(next) == MPI_SUCCESS, "that it is waited for is no second wait");
  expect(next[0] == MPI_REQUEST_NULL && second == 0, "it is received");
  stop = true;
  expect(waits.get() == MPI_SUCCESS && first == 0, "so is the first");
  bustle.wait();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc == 2 ? argv[1] : "";
  const auto chosen = ways.find(name);
  const bool batch = name == "batch";
  if (chosen == ways.end() && !batch) {
    std::fprintf(stderr, "usage: handles_again wait|waitall|waitany|waitsome|batch\n");
    return 2;
  }
  setenv("IMBREX_CHECK", batch ? "0" : "1", 1);
  setenv("IMBREX_PROGRESS", "poll", 1);
  setenv("IMBREX_WORKERS", "1", 1);
  imbrex::fake_mpi::reset({.handles_again = true});
  MPI_Init(nullptr, nullptr);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (batch) {
    run_batch();
  } else {
    run(chosen->second);
  }
  MPI_Finalize();
  expect(imbrex::fake_mpi::breaches().empty(), "MPI's rules are kept");
  return imbrex::test::failures == 0 ? 0 : 1;
}
