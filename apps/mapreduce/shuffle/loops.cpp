// SPDX-License-Identifier: BSD-3-Clause
// The variants that are loops: blocking, with tests, and without imbrex.
#include <imbrex/imbrex.hpp>

#include <algorithm>
#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "../../raw_mpi.hpp"
#include "exchange.hpp"
#include "variants.hpp"

namespace mapreduce {
namespace {

// The pieces of all sources, the own ones first: they are the nearest.
std::vector<std::span<const std::byte>> pieces_of(const Exchange& exchange) {
  int rank = 0;
  MPI_Comm_rank(exchange.comm(), &rank);
  std::vector<std::span<const std::byte>> pieces;
  for (int k = 0; k < exchange.ranks(); ++k) {
    exchange.for_each_piece((rank + k) % exchange.ranks(),
                            [&](const auto piece) { pieces.push_back(piece); });
  }
  return pieces;
}

}  // namespace

std::vector<Output> map_all(Program& program, const Shape& shape) {
  std::vector<Output> outputs = outputs_for(shape.comm, shape.chunks);
  imbrex::finish([&] {
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      imbrex::task("map").launch([&, chunk] {
        program.map({chunk, chunk + 1}, outputs[static_cast<std::size_t>(chunk)]);
      });
    }
  });
  return outputs;
}

void run_blocking(Program& program, const Shape& shape, Times& times) {
  std::vector<Output> outputs = map_all(program, shape);
  Exchange exchange(shape.comm, outputs, {});
  const double begin = MPI_Wtime();
  imbrex::finish([&] { imbrex::task("exchange").launch([&] { exchange.run({}); }); });
  times.exchange_s = MPI_Wtime() - begin;
  imbrex::finish([&] {
    for (const auto piece : pieces_of(exchange)) {
      imbrex::task("reduce").launch([&program, piece] { program.reduce(piece); });
    }
  });
}

namespace {

// Exchanges in flight, the oldest first; the tasks test them in the midst of other work.
class UnderWay {
 public:
  void begin(std::unique_ptr<Exchange> exchange) {
    const Exchange::Side& from = exchange->sent();
    Exchange::Side& to = exchange->received();
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ialltoallv(from.bytes.get(), from.counts.data(), from.starts.data(), MPI_BYTE,
                   to.bytes.get(), to.counts.data(), to.starts.data(), MPI_BYTE, exchange->comm(),
                   &request);
    const std::lock_guard guard(lock_);
    waiting_.push_back({std::move(exchange), request});
  }
  // Returns at once, also if another thread is testing.
  void test() {
    const std::unique_lock guard(lock_, std::try_to_lock);
    if (!guard.owns_lock() || waiting_.empty()) return;
    int done = 0;
    MPI_Test(&waiting_.front().request, &done, MPI_STATUS_IGNORE);
    if (done != 0) take_first();
  }
  // Waits for the oldest exchange. REQUIRES: no task tests. Suspends.
  void wait() {
    MPI_Wait(&waiting_.front().request, MPI_STATUS_IGNORE);
    take_first();
  }
  [[nodiscard]] bool waits() {
    const std::lock_guard guard(lock_);
    return !waiting_.empty();
  }
  [[nodiscard]] bool has_arrived() {
    const std::lock_guard guard(lock_);
    return !arrived_.empty();
  }
  // Returns the exchanges that have arrived since the last call.
  [[nodiscard]] std::vector<std::unique_ptr<Exchange>> take_arrived() {
    const std::lock_guard guard(lock_);
    return std::exchange(arrived_, {});
  }

 private:
  struct One {
    std::unique_ptr<Exchange> exchange;
    MPI_Request request;
  };
  void take_first() {
    arrived_.push_back(std::move(waiting_.front().exchange));
    waiting_.pop_front();
  }

  std::mutex lock_;  // guards the two below
  std::deque<One> waiting_;
  std::vector<std::unique_ptr<Exchange>> arrived_;
};

void reduce_arrived(Program& program, UnderWay& under_way) {
  const auto arrived = under_way.take_arrived();
  imbrex::finish([&] {
    for (const auto& exchange : arrived) {
      for (const auto piece : pieces_of(*exchange)) {
        imbrex::task("reduce").launch([&, piece] {
          program.reduce(piece);
          under_way.test();
        });
      }
    }
  });
}

}  // namespace

void run_test(Program& program, const Shape& shape, Times& times) {
  UnderWay under_way;
  const int batches = std::min(shape.batches, shape.chunks);
  for (int batch = 0; batch < batches; ++batch) {
    const auto first_of = [&](const int b) {
      return static_cast<int>(static_cast<long>(shape.chunks) * b / batches);
    };
    const int first = first_of(batch);
    std::vector<Output> outputs = outputs_for(shape.comm, first_of(batch + 1) - first);
    imbrex::finish([&] {
      for (std::size_t k = 0; k < outputs.size(); ++k) {
        imbrex::task("map").launch([&, k, chunk = first + static_cast<int>(k)] {
          program.map({chunk, chunk + 1}, outputs[k]);
          under_way.test();
        });
      }
    });
    under_way.begin(std::make_unique<Exchange>(shape.comm, outputs, Calls{}));
    reduce_arrived(program, under_way);
  }
  while (under_way.waits() || under_way.has_arrived()) {  // tests between reductions bring more
    if (!under_way.has_arrived()) {
      const double begin = MPI_Wtime();
      under_way.wait();
      times.exchange_s += MPI_Wtime() - begin;
    }
    reduce_arrived(program, under_way);
  }
}

namespace {

// Calls body(thread) on so many threads, of which this is one; rethrows what the first threw.
template <class Body>
void on_threads(const int count, Body&& body) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(count));
  const auto guarded = [&](const int thread) {
    try {
      body(thread);
    } catch (...) {
      failures[static_cast<std::size_t>(thread)] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (int thread = 1; thread < count; ++thread) others.emplace_back(guarded, thread);
    guarded(0);
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace

void run_library(Program& program, const Shape& shape, Times& times) {
  const Calls raw{RAW_MPI(Alltoall), RAW_MPI(Alltoallv)};
  const int threads = std::max(1, imbrex::worker_count());
  std::vector<Output> outputs = outputs_for(shape.comm, threads);
  on_threads(threads, [&](const int thread) {
    const auto first_of = [&](const int t) {
      return static_cast<int>(static_cast<long>(shape.chunks) * t / threads);
    };
    program.map({first_of(thread), first_of(thread + 1)},
                outputs[static_cast<std::size_t>(thread)]);
  });
  Exchange exchange(shape.comm, outputs, raw);
  const double begin = MPI_Wtime();
  exchange.run(raw);
  times.exchange_s = MPI_Wtime() - begin;
  const auto pieces = pieces_of(exchange);
  std::atomic<std::size_t> next{0};
  on_threads(threads, [&](int) {
    // Relaxed: who gets a piece does not matter, and joining orders the rest.
    for (std::size_t k; (k = next.fetch_add(1, std::memory_order_relaxed)) < pieces.size();) {
      program.reduce(pieces[k]);
    }
  });
}

}  // namespace mapreduce
