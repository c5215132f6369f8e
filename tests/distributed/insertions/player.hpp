// SPDX-License-Identifier: BSD-3-Clause
// One rank that inserts a random sequence into a space, and compares what the space has left, which
// bodies have run here and what finish() has thrown with the sequential model. Failures are those
// of googletest.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "distributed/insertions/sequence.hpp"
#include "imbrex/distributed/data_tasks.hpp"
#include "imbrex/iterate.hpp"

namespace imbrex::test {

class Player {
 public:
  // `seed` is this rank's own.
  Player(const Sequence& sequence, const Plan& plan, SpaceBase& space, const unsigned seed)
      : sequence_(sequence), plan_(plan), space_(space), random_(seed),
        ran_(sequence.operations.size()) {
    for (std::size_t i = 0; i < sequence.counts.size(); ++i) make(i);
  }

  // All of the sequence, then finish(). A slow rank sleeps now and then.
  void play(const bool slow) {
    for (std::size_t i = 0; i < sequence_.operations.size(); ++i) {
      if (slow && random_() % 16 == 0) sleep_us(random_() % 500);
      insert(sequence_.operations[i], i);
      i += sequence_.operations[i].length;
    }
    space_.flush();
    finish();
  }

  void compare() {
    for (std::size_t i = 0; i < ran_.size(); ++i) {
      const Operation& operation = sequence_.operations[i];
      const int here = operation.executor == space_.rank() ? operation.runs : 0;
      ASSERT_EQ(ran_[i].load(), here) << "runs of operation " << i;
    }
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const Model& model = sequence_.models[i];
      if (!model.value) continue;
      ASSERT_EQ(data_[i].owner(), model.owner) << "datum " << i;
      if (model.owner == space_.rank()) compare(data_[i], model, i);
    }
  }

 private:
  using Datum = Data<Word>;

  static void sleep_us(const unsigned time) {
    std::this_thread::sleep_for(std::chrono::microseconds(time));
  }

  void make(const std::size_t i) {
    const std::size_t count = sequence_.counts[i];
    const int owner = sequence_.owners[i];
    if (owner < 0) {
      data_.push_back(space_.temporary<Word>(count));
      return;
    }
    const std::size_t rows = count % 4 == 0 ? count / 4 : count;
    const std::size_t columns = rows == 0 ? 1 : count / rows;
    Word* memory = nullptr;
    if (sequence_.in_program[i]) {
      memory_.push_back(std::make_unique<std::vector<Word>>((rows + 3) * columns + 1));
      memory = memory_.back()->data();
    }
    data_.push_back(space_.matrix<Word>(owner, rows, columns, memory, rows + 3));
  }

  static void compare(const Datum& datum, const Model& model, const std::size_t i) {
    if (!model.causes.empty()) {
      try {
        (void)datum.view();
        FAIL() << "datum " << i << " has a value";
      } catch (const Error& error) {
        EXPECT_GE(cause_of(error.what(), model.causes), 0)
            << "datum " << i << ": " << error.what();
      }
      return;
    }
    ASSERT_EQ(elements_of(datum.view()), *model.value) << "datum " << i;
  }

  template <class T>
  static std::vector<Word> elements_of(const View<T>& view) {
    std::vector<Word> elements;
    for (std::size_t column = 0; column < view.columns(); ++column) {
      for (std::size_t row = 0; row < view.rows(); ++row) elements.push_back(view(row, column));
    }
    return elements;
  }
  template <class F>
  static void for_each(const View<Word>& view, const F& set) {
    std::size_t element = 0;
    for (std::size_t column = 0; column < view.columns(); ++column) {
      for (std::size_t row = 0; row < view.rows(); ++row) set(view(row, column), element++);
    }
  }

  [[nodiscard]] std::vector<Datum> of(const std::vector<int>& numbers) const {
    std::vector<Datum> all;
    for (const int number : numbers) all.push_back(data_[static_cast<std::size_t>(number)]);
    return all;
  }

  // ---- failures

  [[nodiscard]] static std::string planned(const int operation) {
    return "as planned: " + std::to_string(operation) + '.';
  }
  // Returns the element of `causes` that a text names; -1: none.
  [[nodiscard]] static int cause_of(const std::string& text, const std::set<int>& causes) {
    for (const int cause : causes) {
      if (text.find(planned(cause)) != std::string::npos) return cause;
    }
    return -1;
  }

  void finish() {
    const Thrown& expected = sequence_.finishes.at(finishes_++);
    try {
      space_.finish();
      EXPECT_FALSE(expected.must) << "finish() " << finishes_ << " throws nothing";
    } catch (const std::exception& error) {
      const std::string text = error.what();
      const int cause = cause_of(text, expected.causes);
      ASSERT_GE(cause, 0) << "finish() " << finishes_ << ": " << text;
      const int thrower = sequence_.operations[static_cast<std::size_t>(cause)].executor;
      if (dynamic_cast<const Error*>(&error) == nullptr) {
        EXPECT_EQ(thrower, space_.rank()) << text;  // as the body has thrown it
      } else {
        EXPECT_NE(text.find("on rank " + std::to_string(thrower) + " of space"), std::string::npos)
            << text;
      }
    }
  }

  // ---- insertion

  void insert(const Operation& operation, const std::size_t index) {
    const auto datum = [&] { return data_[static_cast<std::size_t>(operation.datum)]; };
    switch (operation.what) {
      case What::task: return insert_task(operation, index);
      case What::reduce: return insert_reduction(operation, index);
      case What::flush: return space_.flush(datum());
      case What::discard: return space_.discard(datum());
      case What::move: return space_.move(datum(), operation.on);
      case What::finish: return finish();
      case What::loop: return insert_loop(operation, index);
    }
  }

  void insert_loop(const Operation& loop, const std::size_t index) {
    space_.iterate(loop.count, {.period = loop.period}, [&](const std::int64_t iteration) {
      for (std::size_t i = index + 1; i <= index + loop.length; ++i) {
        const Operation& operation = sequence_.operations[i];
        if (operation.offset == iteration % loop.period) insert(operation, i);
      }
    });
  }
  // The iteration of the running task, in which operations of loops know themselves to be.
  [[nodiscard]] std::int64_t iteration_of(const std::size_t index) const {
    return sequence_.operations[index].offset < 0 ? 0 : iteration();
  }

  // Every body calls this first. Some bodies take their time.
  void begin_body(const std::size_t index) {
    ran_[index].fetch_add(1);
    if (index % 29 == 0) sleep_us(200);
    if (sequence_.operations[index].throws_at(static_cast<int>(iteration_of(index)))) {
      throw std::runtime_error(planned(static_cast<int>(index)));
    }
    const Operation& operation = sequence_.operations[index];
    if (operation.decides && operation.stops_in == iteration()) stop_iterating();
  }

  void insert_reduction(const Operation& operation, const std::size_t index) {
    auto task = space_.task("reduce")
                    .reduce(data_[static_cast<std::size_t>(operation.datum)], op::sum)
                    .on(operation.on);
    if (operation.decides) static_cast<void>(std::move(task).decides());
    if (plan_.trimmed && !task.concerns()) return;
    std::move(task).launch([this, index](const View<Word> part) {
      begin_body(index);
      for_each(part, [&](Word& word, const std::size_t i) {
        word += added(number_of(index, iteration_of(index)), i);
      });
    });
  }

  void insert_task(const Operation& operation, const std::size_t index) {
    auto task = space_.task("task")
                    .priority(operation.priority)
                    .in(of(operation.reads))
                    .inout(of(operation.updates))
                    .out(of(operation.writes));
    if (operation.on >= 0) static_cast<void>(std::move(task).on(operation.on));
    if (operation.decides) static_cast<void>(std::move(task).decides());
    if (plan_.trimmed && !task.concerns()) return;
    std::move(task).launch([this, index](const Views<const Word> reads, const Views<Word> updates,
                                         const Views<Word> writes) {
      begin_body(index);
      Word digest = number_of(index, iteration_of(index));
      for (std::size_t i = 0; i < reads.size(); ++i) {
        digest = mixed(digest, digest_of(elements_of(reads[i])));
      }
      for (std::size_t i = 0; i < updates.size(); ++i) {
        digest = mixed(digest, digest_of(elements_of(updates[i])));
      }
      for (const Views<Word>& views : {updates, writes}) {
        for (std::size_t i = 0; i < views.size(); ++i) {
          for_each(views[i], [&](Word& word, const std::size_t at) { word = mixed(digest, at); });
        }
      }
    });
  }

  const Sequence& sequence_;
  const Plan& plan_;
  SpaceBase& space_;
  std::mt19937 random_;
  std::vector<std::unique_ptr<std::vector<Word>>> memory_;
  std::vector<Datum> data_;
  std::vector<std::atomic<int>> ran_;
  std::size_t finishes_ = 0;
};

}  // namespace imbrex::test
