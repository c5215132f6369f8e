// SPDX-License-Identifier: BSD-3-Clause
#include "runner.hpp"

#include <numeric>

namespace hpcg {

namespace {

constexpr int messages_first = 3;  // priority; of loops: Loop::urgency

std::size_t index(int number) { return static_cast<std::size_t>(number); }

// This rank's part, in the order of the sub-blocks.
double part_of(const Sum& sum) {
  return std::accumulate(sum.parts.begin(), sum.parts.end(), 0.0);
}

class Blocking final : public Runner {
 public:
  void loop(const Loop& loop, Body body) override {
    imbrex::finish([&] {
      for (std::size_t block = 0; block < loop.level.block_count(); ++block) {
        imbrex::task("share of a loop").launch([&body, block] { body(block); });
      }
    });
  }
  void exchange(Grid& grid, Field& field) override { mpi_s_ += grid.halo.exchange(field.values); }
  void sum(Sum& sum) override {
    const double start = MPI_Wtime();
    const double whole = sparse::sum_on_main(part_of(sum), sum.communicator);
    mpi_s_ += MPI_Wtime() - start;
    sum.set(whole);
  }
  void run(const std::function<void()>& steps) override { steps(); }

  [[nodiscard]] double mpi_s() const noexcept override { return mpi_s_; }

 private:
  double mpi_s_ = 0;
};

class Tasks final : public Runner {
 public:
  explicit Tasks(bool test_each)
      : tests_(test_each ? std::make_unique<sparse::TestEach>() : nullptr) {}

  void loop(const Loop& loop, Body body) override {
    const auto shared = std::make_shared<const Body>(std::move(body));
    const std::vector<bool> border = loop.level.brick.borders();
    for (std::size_t block = 0; block < border.size(); ++block) {
      auto task = imbrex::task(loop.name).priority(border[block] ? loop.urgency : 0);
      declare(task, loop, block);
      task.launch([shared, block, tests = tests_.get()] {
        (*shared)(block);
        if (tests != nullptr) tests->poll();
      });
    }
  }

  void exchange(Grid& grid, Field& field) override {
    const auto& neighbours = grid.level.brick.neighbours();
    for (std::size_t n = 0; n < neighbours.size(); ++n) {
      const auto number = static_cast<int>(n);
      sparse::TestEach* const tests = tests_.get();
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
      sum.set(sparse::sum_over_ranks(part_of(sum), sum.communicator, tests));
    });
  }

  void run(const std::function<void()>& steps) override {
    if (tests_ == nullptr) {
      imbrex::finish(steps);
    } else {
      tests_->poll_during(steps);
    }
  }

  [[nodiscard]] std::int64_t tests() const noexcept override {
    return tests_ == nullptr ? 0 : tests_->tests();
  }

 private:
  template <class Task>
  static void declare(Task& task, const Loop& loop, std::size_t block) {
    const auto number = static_cast<int>(block);
    for (const Field* const field : loop.reads) (void)task.in(field->blocks[block]);
    for (const Field* const field : loop.reads_around) {
      for (const int other : loop.level.brick.around(number)) {
        (void)task.in(field->blocks[index(other)]);
      }
      for (const int layer : loop.level.brick.awaited(number)) {
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

  const std::unique_ptr<sparse::TestEach> tests_;  // null: calls block
};

}  // namespace

std::unique_ptr<Runner> make_runner(const Variant variant) {
  if (variant == Variant::blocking) return std::make_unique<Blocking>();
  return std::make_unique<Tasks>(variant == Variant::test_each);
}

}  // namespace hpcg
