// SPDX-License-Identifier: BSD-3-Clause
#include "runner.hpp"

#include <imbrex/detail/observation.hpp>

#include <chrono>
#include <numeric>

namespace sparse {

namespace {

constexpr int messages_first = 3;  // priority; of loops: Loop::urgency

std::size_t index(int number) { return static_cast<std::size_t>(number); }

// This rank's part, in the order of the sub-blocks.
double part_of(const Sum& sum) {
  return std::accumulate(sum.parts.begin(), sum.parts.end(), 0.0);
}

class Blocking final : public Runner {
 public:
  using Runner::Runner;
  void exchange(Grid& grid, Field& field) override { mpi_s_ += grid.halo.exchange(field.values); }
  void sum(Sum& sum) override {
    const double start = MPI_Wtime();
    const double whole = sum_blocking(part_of(sum), sum.communicator);
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

class Tasks : public Runner {
 public:
  Tasks(const Brick& finest, const tiled::KernelTimes& times, bool test_each)
      : Runner(finest, times), tests_(test_each ? std::make_unique<TestEach>() : nullptr) {}

  void exchange(Grid& grid, Field& field) override {
    const auto& neighbours = grid.brick.neighbours();
    for (std::size_t n = 0; n < neighbours.size(); ++n) {
      const auto number = static_cast<int>(n);
      TestEach* const tests = tests_.get();
      imbrex::task("receive")
          .inout(grid.receives[n])
          .out(field.layers[n])
          .priority(messages_first)
          .launch([&grid, &field, number, tests] {
            grid.halo.receive(field.values, number, tests);
          });
      auto send = imbrex::task("send").inout(grid.sends[n]).priority(messages_first);
      for (const int block : neighbours[n].touched) (void)send.in(field.blocks[index(block)]);
      send.launch([&grid, &field, number, tests] { grid.halo.send(field.values, number, tests); });
    }
  }

  void sum(Sum& sum) override {
    auto task = imbrex::task("sum").out(sum.result).priority(messages_first);
    for (const char& name : sum.names) (void)task.in(name);
    task.launch([&sum, tests = tests_.get()] {
      sum.set(sum_over_ranks(part_of(sum), sum.communicator, tests));
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
      auto task = imbrex::task(loop.name).priority(border[block] ? loop.urgency : 0);
      declare(task, loop, block);
      task.launch([shared, block, tests = tests_.get()] {
        (*shared)(block);
        if (tests != nullptr) tests->poll();
      });
    }
  }
  [[nodiscard]] std::int64_t tests() const noexcept override {
    return tests_ == nullptr ? 0 : tests_->tests();
  }

  template <class Task>
  static void declare(Task& task, const Loop& loop, std::size_t block) {
    const auto number = static_cast<int>(block);
    for (const Field* const field : loop.reads) (void)task.in(field->blocks[block]);
    for (const Field* const field : loop.reads_around) {
      for (const int other : loop.brick.around(number)) {
        (void)task.in(field->blocks[index(other)]);
      }
      for (const int layer : loop.brick.awaited(number)) {
        (void)task.in(field->layers[index(layer)]);
      }
    }
    for (const auto& [field, near] : loop.reads_near) {
      for (const int other : (*near)[block]) (void)task.in(field->blocks[index(other)]);
    }
    for (Field* const field : loop.writes) (void)task.inout(field->blocks[block]);
    if (loop.parts != nullptr) (void)task.out(loop.parts->names[block]);
    if (loop.after != nullptr) (void)task.in(loop.after->result);
  }

  const std::unique_ptr<TestEach> tests_;  // null: calls block
};

// Tasks whose MPI calls block the thread, and so a core. An exchange is one task. The calls follow
// one another in the order of the program, which is the same on all ranks. One worker at most
// waits, so waiting workers cannot keep the task from running for which another rank waits.
class BlockingTasks final : public Tasks {
 public:
  BlockingTasks(const Brick& finest, const tiled::KernelTimes& times)
      : Tasks(finest, times, false) {}

  void exchange(Grid& grid, Field& field) override {
    auto task = imbrex::task("exchange").inout(order_).priority(messages_first);
    for (char& layer : field.layers) (void)task.out(layer);
    const std::vector<bool> border = grid.brick.borders();
    for (std::size_t block = 0; block < border.size(); ++block) {
      if (border[block]) (void)task.in(field.blocks[block]);
    }
    task.launch([&grid, &field] { (void)grid.halo.exchange(field.values); });
  }
  void sum(Sum& sum) override {
    auto task = imbrex::task("sum").inout(order_).out(sum.result).priority(messages_first);
    for (const char& name : sum.names) (void)task.in(name);
    task.launch([&sum] { sum.set(sum_blocking(part_of(sum), sum.communicator)); });
  }

 private:
  char order_ = 0;  // names the order of the calls
};

}  // namespace

void Runner::loop(const Loop& loop, Body body) {
  run_bodies(loop, [this, &brick = loop.brick, calls = loop.calls,
                    body = std::move(body)](const std::size_t block) {
    const auto start = std::chrono::steady_clock::now();
    const Box& box = brick.blocks()[block];
    if (times_.empty()) {
      body(block, box);
    } else {
      const double seconds = std::inner_product(calls.begin(), calls.end(), times_.begin(), 0.0);
      tiled::sleep_precisely(seconds * static_cast<double>(box.count()) /
                             static_cast<double>(finest_.owned().count()));
    }
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - start;
    kernel_ns_.fetch_add(took.count(), std::memory_order_relaxed);
  });
}

Outcome Runner::measure(const MPI_Comm communicator, const std::function<void()>& algorithm) {
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

std::unique_ptr<Runner> make_runner(const Variant variant, const Brick& finest,
                                    const tiled::KernelTimes& times) {
  if (variant == Variant::blocking) return std::make_unique<Blocking>(finest, times);
  if (variant == Variant::blocking_tasks) return std::make_unique<BlockingTasks>(finest, times);
  return std::make_unique<Tasks>(finest, times, variant == Variant::test_each);
}

}  // namespace sparse
