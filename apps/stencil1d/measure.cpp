// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include <fmt/format.h>
#include <imbrex/imbrex.hpp>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace stencil1d {

namespace {

// Work that takes a known time of this processor: a loop, calibrated once.
class Computation {
 public:
  explicit Computation(double microseconds) {
    constexpr std::int64_t trial = 1'000'000;
    double best = 1e9;
    for (int round = 0; round < 5; ++round) {
      const double begin = MPI_Wtime();
      spin(trial);
      best = std::min(best, MPI_Wtime() - begin);
    }
    turns_ = static_cast<std::int64_t>(microseconds * 1e-6 / best * trial);
  }
  void run(int share) const { spin(turns_ / share); }

 private:
  static void spin(std::int64_t turns) {
    std::uint64_t value = 1;
    for (std::int64_t turn = 0; turn < turns; ++turn) {
      value = value * 6364136223846793005 + 1442695040888963407;
      asm volatile("" : "+r"(value));  // the loop is its own purpose
    }
  }
  std::int64_t turns_ = 0;
};

class Exchange {
 public:
  Exchange(MPI_Comm comm, int peer, int bytes)
      : comm_(comm), peer_(peer), in_(static_cast<std::size_t>(bytes)), out_(in_.size()) {}

  void begin() {
    const auto bytes = static_cast<int>(in_.size());
    MPI_Irecv(in_.data(), bytes, MPI_BYTE, peer_, 0, comm_, &requests_[0]);
    MPI_Isend(out_.data(), bytes, MPI_BYTE, peer_, 0, comm_, &requests_[1]);
  }
  void wait() { MPI_Waitall(2, requests_, MPI_STATUSES_IGNORE); }
  [[nodiscard]] bool test() {
    int all = 0;
    MPI_Testall(2, requests_, &all, MPI_STATUSES_IGNORE);
    return all != 0;
  }

 private:
  MPI_Comm comm_;
  int peer_;
  std::vector<char> in_;
  std::vector<char> out_;
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

void wait_at_once(Exchange& exchange, const Computation&) {
  exchange.begin();
  exchange.wait();
}

void compute_then_wait(Exchange& exchange, const Computation& computation) {
  exchange.begin();
  computation.run(1);
  exchange.wait();
}

// Tests for one exchange after the other, as they are begun. One thread for all rounds: making one
// takes longer than a round.
class Tester {
 public:
  explicit Tester(Exchange& exchange)
      : thread_([this, &exchange] {
          while (!stop_.load(std::memory_order_relaxed)) {
            if (!open_.load(std::memory_order_acquire)) {
              std::this_thread::yield();
            } else if (exchange.test()) {
              open_.store(false, std::memory_order_release);
            }
          }
        }) {}
  ~Tester() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }
  Tester(const Tester&) = delete;
  Tester& operator=(const Tester&) = delete;

  void open() noexcept { open_.store(true, std::memory_order_release); }
  void wait() const {
    while (open_.load(std::memory_order_acquire)) std::this_thread::yield();
  }

 private:
  std::atomic<bool> open_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

constexpr int pieces = 50;

void compute_in_tasks(Exchange& exchange, const Computation& computation) {
  exchange.begin();
  imbrex::finish([&] {
    imbrex::task("wait").launch([&exchange] { exchange.wait(); });
    for (int piece = 0; piece < pieces; ++piece) {
      imbrex::task("computation").launch([&computation] { computation.run(pieces); });
    }
  });
}

template <class F>
double microseconds_of(MPI_Comm pair, int rounds, F&& round) {
  for (int warm_up = 0; warm_up < 3; ++warm_up) round();
  double sum = 0;
  for (int turn = 0; turn < rounds; ++turn) {
    MPI_Barrier(pair);
    const double begin = MPI_Wtime();
    round();
    sum += MPI_Wtime() - begin;
  }
  return sum / rounds * 1e6;
}

}  // namespace

std::string measure_progress(MPI_Comm comm, const double computation_us, const int rounds) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm pair = MPI_COMM_NULL;
  MPI_Comm_split(comm, rank / 2, rank, &pair);
  int members = 0;
  MPI_Comm_size(pair, &members);
  int mine = 0;
  MPI_Comm_rank(pair, &mine);
  const int peer = members == 2 ? 1 - mine : mine;
  const Computation computation(computation_us);
  std::string table = fmt::format("{:>10} {:>10} {:>10} {:>10} {:>10}   us; computation {:.0f}\n",
                                  "bytes", "IW", "ICW", "ITCW", "tasks", computation_us);
  for (int bytes = 8; bytes <= 4 << 20; bytes *= 8) {
    Exchange exchange(pair, peer, bytes);
    const double iw = microseconds_of(pair, rounds, [&] { wait_at_once(exchange, computation); });
    const double icw =
        microseconds_of(pair, rounds, [&] { compute_then_wait(exchange, computation); });
    double itcw = 0;
    {
      Tester tester(exchange);
      itcw = microseconds_of(pair, rounds, [&] {
        exchange.begin();
        tester.open();
        computation.run(1);
        tester.wait();
      });
    }
    const double tasks =
        microseconds_of(pair, rounds, [&] { compute_in_tasks(exchange, computation); });
    table += fmt::format("{:>10} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f}\n", bytes, iw, icw, itcw,
                         tasks);
  }
  MPI_Comm_free(&pair);
  return rank == 0 ? table : "";
}

}  // namespace stencil1d
