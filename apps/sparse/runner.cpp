// SPDX-License-Identifier: BSD-3-Clause
#include "runner.hpp"

#include <imbrex/detail/observation.hpp>

#include <chrono>
#include <numeric>

namespace sparse {

namespace {

// This rank's part, in the order of the sub-blocks.
double part_of(const Sum& sum) {
  return std::accumulate(sum.parts.begin(), sum.parts.end(), 0.0);
}

class Blocking final : public MeasuredRunner {
 public:
  using MeasuredRunner::MeasuredRunner;
  void exchange(Grid& grid, Field& field) override {
    mpi_s_ += halo_of(grid).exchange(field.values);
  }
  void sum(Sum& sum) override {
    const double start = MPI_Wtime();
    const double whole = sum_blocking(part_of(sum), communicator_of(sum));
    mpi_s_ += MPI_Wtime() - start;
    sum.set(whole);
  }
  void run(const std::function<void()>& steps) override { steps(); }

 private:
  void run_bodies(const Loop& loop, std::function<void(std::size_t)> body) override {
    imbrex::finish([&] {
      for (std::size_t block = 0; block < loop.brick.blocks().size(); ++block) {
        imbrex::task("share of a loop").launch([&body, block] { body(block); });
      }
    });
  }
  [[nodiscard]] double mpi_s() const noexcept override { return mpi_s_; }

  double mpi_s_ = 0;
};

class Tasks : public MeasuredRunner {
 public:
  Tasks(const Brick& finest, const tiled::KernelTimes& times, Network& network, bool test_each)
      : MeasuredRunner(finest, times, network),
        tests_(test_each ? std::make_unique<TestEach>() : nullptr) {}

  void exchange(Grid& grid, Field& field) override {
    Halo& halo = halo_of(grid);
    TestEach* const tests = tests_.get();
    for (std::size_t n = 0; n < grid.brick.neighbours().size(); ++n) {
      const auto number = static_cast<int>(n);
      auto receive = imbrex::task("receive");
      declare_receive(receive, grid, field, n);
      receive.launch([&halo, &field, number, tests] {
        halo.receive(field.values, number, tests);
      });
      auto send = imbrex::task("send");
      declare_send(send, grid, field, n);
      send.launch([&halo, &field, number, tests] { halo.send(field.values, number, tests); });
    }
  }

  void sum(Sum& sum) override {
    auto task = imbrex::task("sum");
    declare_sum(task, sum, sum.result);
    task.launch([this, &sum] {
      sum.set(sum_over_ranks(part_of(sum), communicator_of(sum), tests_.get()));
    });
  }

  void run(const std::function<void()>& steps) override {
    if (tests_ == nullptr) {
      imbrex::finish(steps);
    } else {
      tests_->poll_during(steps);
    }
  }

 private:
  void run_bodies(const Loop& loop, std::function<void(std::size_t)> body) override {
    const auto shared = std::make_shared<const std::function<void(std::size_t)>>(std::move(body));
    const std::vector<bool> border = loop.brick.borders();
    for (std::size_t block = 0; block < border.size(); ++block) {
      auto task = imbrex::task(loop.name);
      declare_body(task, loop, block, border[block]);
      task.launch([shared, block, tests = tests_.get()] {
        (*shared)(block);
        if (tests != nullptr) tests->poll();
      });
    }
  }
  [[nodiscard]] std::int64_t tests() const noexcept override {
    return tests_ == nullptr ? 0 : tests_->tests();
  }

  const std::unique_ptr<TestEach> tests_;  // null: calls block
};

// The tasks of an iteration are created once.
class Iterate final : public Tasks {
 public:
  Iterate(const Brick& finest, const tiled::KernelTimes& times, Network& network)
      : Tasks(finest, times, network, false) {}

  void repeat(const int count, const std::function<void()>& steps) override {
    imbrex::iterate(count, [&steps](std::int64_t) { steps(); });
  }
  int repeat_until(const Test& test, const int count,
                   const std::function<void()>& steps) override {
    if (test.is_over()) return 0;
    std::int64_t done = 0;
    imbrex::iterate(count, [&](std::int64_t) {
      steps();
      imbrex::task("test").in(test.after.result).priority(messages_first).decides().launch(
          [&done, &test](const std::int64_t iteration) {
            done = iteration + 1;
            if (test.is_over()) imbrex::stop_iterating();
          });
    });
    return static_cast<int>(done);
  }
};

// Tasks whose MPI calls block the thread, and so a core. An exchange is one task. The calls follow
// one another in the order of the program, which is the same on all ranks. One worker at most
// waits, so waiting workers cannot keep the task from running for which another rank waits.
class BlockingTasks final : public Tasks {
 public:
  BlockingTasks(const Brick& finest, const tiled::KernelTimes& times, Network& network)
      : Tasks(finest, times, network, false) {}

  void exchange(Grid& grid, Field& field) override {
    auto task = imbrex::task("exchange").inout(order_).priority(messages_first);
    for (char& layer : field.layers) (void)task.out(layer);
    const std::vector<bool> border = grid.brick.borders();
    for (std::size_t block = 0; block < border.size(); ++block) {
      if (border[block]) (void)task.in(field.blocks[block]);
    }
    task.launch([&halo = halo_of(grid), &field] { (void)halo.exchange(field.values); });
  }
  void sum(Sum& sum) override {
    auto task = imbrex::task("sum").inout(order_);
    declare_sum(task, sum, sum.result);
    task.launch([this, &sum] { sum.set(sum_blocking(part_of(sum), communicator_of(sum))); });
  }

 private:
  char order_ = 0;  // names the order of the calls
};

}  // namespace

void MeasuredRunner::loop(const Loop& loop, Body body) {
  run_bodies(loop, [this, &brick = loop.brick, calls = loop.calls,
                    body = std::move(body)](const std::size_t block) {
    const auto start = std::chrono::steady_clock::now();
    const Box& box = brick.blocks()[block];
    if (has_times()) {
      tiled::sleep_precisely(time_of(calls, box));
    } else {
      body(block, box);
    }
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
    kernel_ns_.fetch_add(took.count(), std::memory_order_relaxed);
  });
}

void MeasuredRunner::repeat(const int count, const std::function<void()>& steps) {
  for (int i = 0; i < count; ++i) steps();
}

int MeasuredRunner::repeat_until(const Test& test, const int count,
                                 const std::function<void()>& steps) {
  int done = 0;
  for (; done < count && !test.is_over(); ++done) run(steps);
  return done;
}

Outcome MeasuredRunner::measure(const MPI_Comm communicator,
                                const std::function<void()>& algorithm) {
  kernel_ns_ = 0;
  const double mpi_before = mpi_s();
  const std::int64_t tests_before = tests();
  MPI_Barrier(communicator);
  const double start = MPI_Wtime();
  const double in_task_before = imbrex::detail::totals().in_task_s;
  algorithm();
  return {.seconds = MPI_Wtime() - start,
          .kernel_s = 1e-9 * static_cast<double>(kernel_ns_.load(std::memory_order_relaxed)),
          .in_task_s = imbrex::detail::totals().in_task_s - in_task_before,
          .mpi_s = mpi_s() - mpi_before,
          .tests = tests() - tests_before};
}

std::unique_ptr<MeasuredRunner> make_runner(const Variant variant, const Brick& finest,
                                            const tiled::KernelTimes& times, Network& network) {
  if (variant == Variant::blocking) return std::make_unique<Blocking>(finest, times, network);
  if (variant == Variant::blocking_tasks) {
    return std::make_unique<BlockingTasks>(finest, times, network);
  }
  if (variant == Variant::iterate) return std::make_unique<Iterate>(finest, times, network);
  return std::make_unique<Tasks>(finest, times, network, variant == Variant::test_each);
}

}  // namespace sparse
