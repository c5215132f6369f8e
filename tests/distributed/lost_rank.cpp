// SPDX-License-Identifier: BSD-3-Clause
// lost_rank WHAT HOW: rank 0 of two, in fake_mpi, asks rank 1 for something and is not answered:
// what it sends there fails (send), what comes from there (receive), or MPI says that rank 1 has
// failed, and not which receive that concerns (death). CMakeLists.txt says what must be printed.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "fake_mpi.hpp"
#include "imbrex/future_space.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/remote.hpp"
#include "imbrex/work_pool.hpp"

namespace imbrex::test {
namespace {

struct Block {
  std::byte bytes[100'000];
};

template <class T>
void await_future() {
  const FutureSpace<T> space(MPI_COMM_WORLD, {.home = [](std::uint64_t) { return 1; },
                                              .name = "lost"});
  space[7].wait();
}

void process_pool() {
  WorkPool<int> pool(MPI_COMM_WORLD);
  (void)pool.process([](int, Emit<int>&) {});
}

int successor(const int value) { return value + 1; }

const std::map<std::string, std::function<void()>> cases = {
    {"future", &await_future<int>},
    {"long_future", &await_future<Block>},
    {"pool", &process_pool},
    {"call", [] { (void)call(1, successor, 1).get(); }},
};

// When rank 0 has sent something, that is how rank 1 ends.
void end_rank_1(const bool says_so) {
  std::vector<fake_mpi::Sent> sent;
  while ((sent = fake_mpi::sent()).empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (says_so) return fake_mpi::lose(1);
  fake_mpi::send({.comm = sent[0].comm, .source = 1, .tag = sent[0].tag, .bytes = {},
                  .error = MPI_ERR_OTHER});
}

}  // namespace
}  // namespace imbrex::test

int main(int argc, char** argv) {
  using namespace imbrex;
  const std::string what = argc == 3 ? argv[1] : "";
  const std::string how = argc == 3 ? argv[2] : "";
  if (!test::cases.contains(what)) {
    for (const auto& [name, run] : test::cases) {
      std::fprintf(stderr, "%s %s send|receive|death\n", argv[0], name.c_str());
    }
    return 2;
  }
  alarm(60);
  setenv("IMBREX_WORKERS", "2", 1);
  setenv("IMBREX_MPI_WARNING", "0", 1);  // it stands in this program
  fake_mpi::reset({.ranks = 2});
  MPI_Init(nullptr, nullptr);
  if (how == "send") {
    fake_mpi::fail("Isend", 0, MPI_ERR_OTHER);
  } else {
    std::thread(&test::end_rank_1, how == "death").detach();
  }
  test::cases.at(what)();
  std::puts("was answered");
  return 1;
}
