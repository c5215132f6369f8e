// SPDX-License-Identifier: BSD-3-Clause
// The steps of a solver: loops over sub-blocks, exchanges and sums. An algorithm hands steps to a
// Runner in program order. The functions at the end declare the accesses of the tasks that carry
// steps out. Knows no algorithm, no MPI and no runtime. Also for `imbrex simulate`.
#pragma once

#include <imbrex/name.hpp>

#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "brick.hpp"

namespace sparse {

class Runner;

// A vector on a brick. A char names what a task reads or writes: the part on a sub-block, or what
// one neighbour owns.
struct Field {
  Field(const Runner& runner, const Brick& brick);

  std::vector<double> values;  // empty if the runner has no values
  std::vector<char> blocks;
  std::vector<char> layers;
};

// A brick with its messages. Different grids may have messages in flight at once.
struct Grid {
  Grid(const Brick& of, std::size_t its_number)
      : brick(of), number(its_number), sends(of.neighbours().size()), receives(sends.size()) {}

  const Brick& brick;
  std::size_t number;  // the first grid is 0
  std::vector<char> sends, receives;  // names of the buffers of a neighbour's messages
};

// A number that all ranks sum, and what follows from it. Loops write `parts`, by sub-block.
// Different sums may be in flight at once.
struct Sum {
  Sum(const Brick& brick, std::size_t its_number, std::function<void(double)> then)
      : number(its_number), parts(brick.blocks().size()), names(parts.size()),
        set(std::move(then)) {}

  std::size_t number;  // the first sum is 0
  std::vector<double> parts;
  std::vector<char> names;
  std::function<void(double)> set;
  char result = 0;  // names what set() writes
};

// A loop over the sub-blocks of a brick, and what the body of each reads and writes. The vectors
// hold pointers to what outlives the run.
struct Loop {
  using Near = std::vector<std::vector<int>>;  // by sub-block: others, perhaps of another brick

  imbrex::Name name;
  const Brick& brick;
  std::vector<int> calls;  // of the program's kernels, by the body for each sub-block
  std::vector<const Field*> reads = {};         // on the block
  std::vector<const Field*> reads_around = {};  // and on all that it depends on
  std::vector<std::pair<const Field*, const Near*>> reads_near = {};
  std::vector<Field*> writes = {};  // on the block
  Sum* parts = nullptr;             // whose part it writes
  const Sum* after = nullptr;       // whose result it reads
  int urgency = 1;                  // the priority of sub-blocks that messages take points of
};

class Runner {
 public:
  using Body = std::function<void(std::size_t block, const Box& box)>;

  // `times` of the kernels on all points of `finest`, by one worker, in proportion on less.
  Runner(const Brick& finest, std::vector<double> times)
      : points_(static_cast<double>(finest.owned().count())), times_(std::move(times)) {}
  virtual ~Runner() = default;

  virtual void loop(const Loop& loop, Body body) = 0;
  virtual void exchange(Grid& grid, Field& field) = 0;
  virtual void sum(Sum& sum) = 0;
  // False if steps move no values: then no body runs, and vectors take no memory.
  [[nodiscard]] virtual bool has_values() const noexcept { return true; }

 protected:
  [[nodiscard]] bool has_times() const noexcept { return !times_.empty(); }
  // Returns the time of so many `calls` of the kernels on the points of `box`.
  [[nodiscard]] double time_of(const std::vector<int>& calls, const Box& box) const {
    const double whole = std::inner_product(calls.begin(), calls.end(), times_.begin(), 0.0);
    return whole * static_cast<double>(box.count()) / points_;
  }

 private:
  const double points_;  // of the finest brick
  const std::vector<double> times_;
};

inline Field::Field(const Runner& runner, const Brick& brick)
    : values(runner.has_values() ? brick.size() : 0), blocks(brick.blocks().size()),
      layers(brick.neighbours().size()) {}

// ---- the accesses and priorities of tasks; Task is an imbrex::TaskBuilder, or has such members --

constexpr int messages_first = 3;  // priority; of loops: Loop::urgency

// The task of a loop for sub-block `block`; `on_border`: whether messages take points of it.
template <class Task>
void declare_body(Task& task, const Loop& loop, const std::size_t block, const bool on_border) {
  const auto index = [](const int number) { return static_cast<std::size_t>(number); };
  const auto number = static_cast<int>(block);
  (void)task.priority(on_border ? loop.urgency : 0);
  for (const Field* const field : loop.reads) (void)task.in(field->blocks[block]);
  for (const Field* const field : loop.reads_around) {
    for (const int other : loop.brick.around(number)) (void)task.in(field->blocks[index(other)]);
    for (const int layer : loop.brick.awaited(number)) (void)task.in(field->layers[index(layer)]);
  }
  for (const auto& [field, near] : loop.reads_near) {
    for (const int other : (*near)[block]) (void)task.in(field->blocks[index(other)]);
  }
  for (Field* const field : loop.writes) (void)task.inout(field->blocks[block]);
  if (loop.parts != nullptr) (void)task.out(loop.parts->names[block]);
  if (loop.after != nullptr) (void)task.in(loop.after->result);
}

// The tasks that receive a neighbour's message, and send it one.
template <class Task>
void declare_receive(Task& task, Grid& grid, Field& field, const std::size_t neighbour) {
  (void)task.priority(messages_first).inout(grid.receives[neighbour]).out(field.layers[neighbour]);
}
template <class Task>
void declare_send(Task& task, Grid& grid, const Field& field, const std::size_t neighbour) {
  (void)task.priority(messages_first).inout(grid.sends[neighbour]);
  for (const int block : grid.brick.neighbours()[neighbour].touched) {
    (void)task.in(field.blocks[static_cast<std::size_t>(block)]);
  }
}

// The task that sums; `result` names what it writes.
template <class Task>
void declare_sum(Task& task, const Sum& sum, char& result) {
  (void)task.priority(messages_first);
  for (const char& name : sum.names) (void)task.in(name);
  (void)task.out(result);
}

}  // namespace sparse
