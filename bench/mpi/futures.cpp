// SPDX-License-Identifier: BSD-3-Clause
// Distributed futures and remote calls beside MPI_Send and MPI_Recv in the same run, between two
// ranks, by turns; the best of 15 rounds each:
//   future_to_home    8 bytes, from put() to the start of a task on the value's home
//   future_to_reader  8 bytes, from put() at home to the start of a task that has asked before
//   call              8 bytes there and back: an argument and a result
//   future_bandwidth  8 MiB, from put() at home to a reader that has asked before
//
//   mpirun -n 2 future_messages [workers]
// Or what many futures of 8 bytes take: time, and memory of both ranks while all are there
//   mpirun -n 2 future_messages [workers] futures [given_back]
#include <imbrex/future_space.hpp>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>
#include <imbrex/remote.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "pair.hpp"
#include "raw_mpi.hpp"

namespace {

using pair::Best;
using pair::rounds;

constexpr std::uint64_t trips = 1000;
constexpr std::size_t words = (8U << 20) / sizeof(std::uint64_t);

void raw_send(const void* buffer, const std::size_t bytes, const int to) {
  RAW_MPI(Send)(buffer, static_cast<int>(bytes), MPI_BYTE, to, 0, MPI_COMM_WORLD);
}
void raw_receive(void* buffer, const std::size_t bytes, const int from) {
  RAW_MPI(Recv)(buffer, static_cast<int>(bytes), MPI_BYTE, from, 0, MPI_COMM_WORLD,
                MPI_STATUS_IGNORE);
}
void require_value(const char* what, const std::uint64_t is, const std::uint64_t should_be) {
  require_equal(what, static_cast<long>(is), static_cast<long>(should_be));
}

// Nanoseconds there and back.
double raw_trip(const int rank) {
  std::uint64_t value = 0;
  RAW_MPI(Barrier)(MPI_COMM_WORLD);
  const double start = now_ns();
  for (std::uint64_t i = 0; i < trips; ++i) {
    if (rank == 0) raw_send(&value, sizeof value, 1);
    raw_receive(&value, sizeof value, 1 - rank);
    if (rank == 1) raw_send(&value, sizeof value, 0);
  }
  return (now_ns() - start) / trips;
}

// A game: future i is put by rank i % 2, and read by a task of the other one, which puts the next.
// Half of the futures are read, and their tasks made, before the first is put.
Best measure_start(const int rank, const bool home_reads) {
  constexpr std::uint64_t throws = 2 * trips;
  const auto mine = static_cast<std::uint64_t>(rank);
  Best best;
  for (int round = 0; round < rounds; ++round) {
    best.raw = std::min(best.raw, raw_trip(rank) / 2);
    std::atomic<std::uint64_t> caught{0};
    imbrex::FutureSpace<std::uint64_t> space(
        MPI_COMM_WORLD, {.home = [home_reads](const std::uint64_t guid) {
                           return static_cast<int>((guid + (home_reads ? 1 : 0)) % 2);
                         },
                         .name = "game"});
    double ns = 0;
    imbrex::finish([&] {
      for (std::uint64_t guid = 1 - mine; guid < throws; guid += 2) {
        const auto future = space[guid];
        imbrex::task("catch").in(future).launch([&, future, guid] {
          if (future.get() == guid * guid) caught.fetch_add(1, std::memory_order_relaxed);
          if (guid + 1 < throws) space.set(guid + 1, (guid + 1) * (guid + 1));
        });
      }
      MPI_Barrier(MPI_COMM_WORLD);  // what has been asked for comes with it, or soon after
      const auto last = space[throws - 1];
      const double start = now_ns();
      if (rank == 0) {
        space.set(0, 0);
        (void)last.get();
      }
      ns = now_ns() - start;
    });
    space.close();
    require_value("futures that were read well", caught.load(), trips);
    if (rank == 0) best.ours = std::min(best.ours, ns / throws);
  }
  return best;
}

std::uint64_t successor(const std::uint64_t value) { return value + 1; }

Best measure_call(const int rank) {
  Best best;
  for (int round = 0; round < rounds; ++round) {
    best.raw = std::min(best.raw, raw_trip(rank));
    if (rank == 0) {
      std::uint64_t value = 0;
      const double start = now_ns();
      for (std::uint64_t i = 0; i < trips; ++i) value = imbrex::call(1, successor, value).get();
      best.ours = std::min(best.ours, (now_ns() - start) / trips);
      require_value("calls", value, trips);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  return best;
}

// Both move a vector whose pages have been touched to another such one. The time begins where the
// reader says that it is ready: that takes some of the microseconds, of hundreds.
Best measure_bandwidth(const int rank) {
  constexpr std::size_t bytes = words * sizeof(std::uint64_t);
  Best best;
  imbrex::FutureSpace<std::vector<std::uint64_t>> space(
      MPI_COMM_WORLD, {.home = [](std::uint64_t) { return 1; },
                       .size = [](std::uint64_t) { return bytes; },
                       .readers = [](std::uint64_t) { return 1; },
                       .name = "long values"});
  std::uint64_t ready = 0;
  imbrex::FutureSpace<int> ended(MPI_COMM_WORLD, {.home = [](std::uint64_t) { return 1; }});
  for (std::uint64_t round = 0; round < rounds; ++round) {
    if (std::vector<std::uint64_t> data(words, rank == 1 ? round : 0); true) {
      RAW_MPI(Barrier)(MPI_COMM_WORLD);
      const double start = now_ns();
      if (rank == 0) {
        raw_send(&ready, sizeof ready, 1);
        raw_receive(data.data(), bytes, 1);
        best.raw = std::min(best.raw, (now_ns() - start) / bytes);
      } else {
        raw_receive(&ready, sizeof ready, 0);
        raw_send(data.data(), bytes, 0);
      }
      require_value("a word", data.back(), round);
    }
    if (rank == 0) {
      const auto future = space[round];
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = now_ns();
      MPI_Send(&ready, sizeof ready, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
      const std::vector<std::uint64_t>& value = future.get();
      best.ours = std::min(best.ours, (now_ns() - start) / bytes);
      require_value("words", value.size(), words);
      require_value("words that are right",
                    static_cast<std::uint64_t>(std::ranges::count(value, round + 1)), words);
      ended.set(round, 1);
    } else {
      std::vector<std::uint64_t> data(words, round + 1);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Recv(&ready, sizeof ready, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      space.set(round, std::move(data));
      (void)ended[round].get();
    }
  }
  return best;
}

void measure(const int rank) {
  const Best to_home = measure_start(rank, true);
  const Best to_reader = measure_start(rank, false);
  const Best call = measure_call(rank);
  const Best bandwidth = measure_bandwidth(rank);
  if (rank != 0) return;
  pair::print_ns({"future_to_home"}, to_home);
  pair::print_ns({"future_to_reader"}, to_reader);
  pair::print_ns({"call"}, call);
  pair::print_rate({"future_bandwidth"}, "bytes_per_s", bandwidth);
}

// ---- many of them ----------------------------------------------------------------------------

// Bytes that this process has in memory.
double memory_bytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * 4096;
}
double of_both(const double mine, const MPI_Op op) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
  return all;
}

// Each rank puts half of the futures, in turn, at home, and reads the other half, a thousand at a
// time. With `given_back` home keeps no value that the other one has read.
void measure_many(const int rank, const std::uint64_t futures, const bool given_back) {
  constexpr std::uint64_t at_once = 1000;
  imbrex::FutureSpaceOptions options;
  options.home = [](const std::uint64_t guid) { return static_cast<int>(guid % 2); };
  if (given_back) options.readers = [](std::uint64_t) { return std::size_t{1}; };
  options.name = "many";
  const double before = of_both(memory_bytes(), MPI_SUM);
  const double start = now_ns();
  double while_open = 0;
  {
    imbrex::FutureSpace<std::uint64_t> space(MPI_COMM_WORLD, options);
    const auto mine = static_cast<std::uint64_t>(rank);
    std::uint64_t wrong = 0;
    for (std::uint64_t first = 0; first < futures; first += at_once) {
      std::vector<imbrex::Future<std::uint64_t>> some;
      const std::uint64_t end = std::min(futures, first + at_once);
      for (std::uint64_t guid = first; guid < end; ++guid) {
        if (guid % 2 == mine) {
          space.set(guid, guid * guid);
        } else {
          some.push_back(space[guid]);
        }
      }
      std::uint64_t guid = first + (first % 2 == mine ? 1 : 0);
      for (const auto& future : some) {
        if (future.get() != guid * guid) ++wrong;
        guid += 2;
      }
    }
    require_value("futures that were read wrong", wrong, 0);
    while_open = of_both(memory_bytes(), MPI_SUM);
    space.close();
  }
  const double seconds = of_both((now_ns() - start) * 1e-9, MPI_MAX);
  if (rank != 0) return;
  std::printf("{\"benchmark\": \"many_futures\", \"system\": \"imbrex\", \"futures\": %llu, "
              "\"given_back\": %d, \"seconds\": %.3g, \"bytes_each\": %.4g}\n",
              static_cast<unsigned long long>(futures), given_back ? 1 : 0, seconds,
              (while_open - before) / static_cast<double>(futures));
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t futures = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  pair::run(argc, argv, argc > 1 ? argv[1] : nullptr,
            [futures, given_back = argc > 3](const int rank) {
    if (futures == 0) return measure(rank);
    measure_many(rank, futures, given_back);
  });
}
