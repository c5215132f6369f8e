// SPDX-License-Identifier: BSD-3-Clause
// The C interface of data with owners: what it answers, and says, where something is wrong; that it
// computes is shown by examples/mpi_data_in_c.c.
#include "imbrex/data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

bool message_has(const std::string& part) {
  return std::string(imbrex_message()).find(part) != std::string::npos;
}

int set(void* const argument, const imbrex_data_view* const views) {
  const int value = *static_cast<const int*>(argument);
  for (std::size_t column = 0; column < views[0].columns; ++column) {
    for (std::size_t row = 0; row < views[0].rows; ++row) {
      static_cast<int*>(views[0].memory)[column * views[0].leading + row] = value;
    }
  }
  return 0;
}
int add_one(void*, const imbrex_data_view* const views) {
  ++*static_cast<int*>(views[0].memory);
  return 0;
}
int fail(void*, const imbrex_data_view*) { return 7; }

class DataInC : public testing::Test {
 protected:
  void SetUp() override {
    const imbrex_space_options options{"of C", 2};
    ASSERT_EQ(imbrex_space_create(ring_.comm, &options, &space_), IMBREX_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(imbrex_space_free(&space_), IMBREX_SUCCESS);
    EXPECT_EQ(space_, nullptr);
  }
  imbrex_data_t make(const int owner, int* const memory = nullptr, const std::size_t rows = 1,
                     const std::size_t columns = 1, const std::size_t leading = 0) {
    imbrex_data_t data = nullptr;
    EXPECT_EQ(imbrex_data_create(space_, owner, rows, columns, sizeof(int), memory, leading,
                                 "number", &data),
              IMBREX_SUCCESS);
    return data;
  }
  int insert(imbrex_data_body* const body, const imbrex_data_t data, const int mode,
             const int on = -1) {
    const imbrex_data_access access{data, mode, nullptr};
    imbrex_data_task_spec task = IMBREX_DATA_TASK("of the test", body);
    task.argument = &value_;
    task.argument_bytes = sizeof value_;
    task.access_count = 1;
    task.accesses = &access;
    task.on = on;
    return imbrex_data_launch(space_, &task);
  }

  const Ring ring_;
  imbrex_space_t space_ = nullptr;
  int value_ = 5;
};

TEST_F(DataInC, a_loop_inserts_one_period_and_runs_each_iteration) {
  struct Loop {
    std::function<int(imbrex_data_t)> insert;
    std::array<imbrex_data_t, 2> numbers;
    int calls;
  } loop{[this](const imbrex_data_t data) { return insert(add_one, data, IMBREX_INOUT); },
         {make(0), make(ring_.size - 1)}, 0};
  const auto body = [](void* const argument, const std::int64_t i) {
    Loop& it = *static_cast<Loop*>(argument);
    ++it.calls;
    return it.insert(it.numbers[static_cast<std::size_t>(i % 2)]);
  };
  ASSERT_EQ(imbrex_space_iterate(space_, 7, 2, body, &loop, IMBREX_HERE), IMBREX_SUCCESS)
      << imbrex_message();
  EXPECT_EQ(loop.calls, 2);
  ASSERT_EQ(imbrex_space_finish(space_), IMBREX_SUCCESS) << imbrex_message();
  for (const int which : {0, 1}) {
    if (ring_.rank != (which == 0 ? 0 : ring_.size - 1)) continue;
    imbrex_data_view view{};
    ASSERT_EQ(imbrex_data_get(loop.numbers[static_cast<std::size_t>(which)], &view),
              IMBREX_SUCCESS);
    EXPECT_EQ(*static_cast<int*>(view.memory), 4 - which);
  }
}

// Each iteration doubles a sum of all ranks and brings it to rank 0.
TEST_F(DataInC, a_loop_reduces_moves_and_ends_early) {
  static constexpr imbrex_data_reduction adds{
      [](void* const into, const void* const from, const std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
          static_cast<int*>(into)[i] += static_cast<const int*>(from)[i];
        }
      },
      [](void* const memory, const std::size_t count) {
        std::fill_n(static_cast<int*>(memory), count, 0);
      }};
  struct Loop {
    imbrex_space_t space;
    imbrex_data_t sum, passing;
    int size;

    [[nodiscard]] int launch(imbrex_data_body* const run, const imbrex_data_access& access,
                             const int on, const int decides) const {
      imbrex_data_task_spec task = IMBREX_DATA_TASK("of the loop", run);
      task.access_count = 1;
      task.accesses = &access;
      task.on = on;
      task.decides = decides;
      return imbrex_data_launch(space, &task);
    }
  } loop{space_, make(0), make(-1), ring_.size};
  const auto body = [](void* const argument, std::int64_t) {
    const Loop& it = *static_cast<Loop*>(argument);
    int code = 0;
    for (int rank = 0; rank < it.size; ++rank) {
      code |= it.launch([](void*, const imbrex_data_view* const views) {
        ++*static_cast<int*>(views[0].memory);
        return 0;
      }, {it.sum, IMBREX_DATA_REDUCE, &adds}, rank, 0);
    }
    code |= imbrex_data_move(it.sum, it.size - 1, IMBREX_HERE);
    code |= it.launch([](void*, const imbrex_data_view* const views) {
      *static_cast<int*>(views[0].memory) *= 2;
      return imbrex_iteration() == 3 ? imbrex_stop_iterating() : 0;
    }, {it.sum, IMBREX_INOUT, nullptr}, -1, 1);
    code |= imbrex_data_move(it.sum, 0, IMBREX_HERE);
    code |= it.launch([](void*, const imbrex_data_view*) { return 0; },
                      {it.passing, IMBREX_OUT, nullptr}, it.size - 1, 0);
    code |= imbrex_data_flush(it.passing, IMBREX_HERE);
    code |= imbrex_data_discard(it.passing, IMBREX_HERE);
    return code;
  };
  ASSERT_EQ(imbrex_space_iterate(space_, 100, 1, body, &loop, IMBREX_HERE), IMBREX_SUCCESS)
      << imbrex_message();
  ASSERT_EQ(imbrex_space_finish(space_), IMBREX_SUCCESS) << imbrex_message();
  EXPECT_EQ(imbrex_data_owner(loop.sum), 0);
  EXPECT_EQ(loop.launch([](void*, const imbrex_data_view*) { return 0; },
                        {loop.sum, IMBREX_INOUT, nullptr}, -1, 1), IMBREX_ERR_USE);
  EXPECT_TRUE(message_has("decides()")) << imbrex_message();
  if (ring_.rank != 0) return;
  imbrex_data_view view{};
  ASSERT_EQ(imbrex_data_get(loop.sum, &view), IMBREX_SUCCESS) << imbrex_message();
  EXPECT_EQ(*static_cast<int*>(view.memory), 30 * ring_.size);  // s = 2 (s + size), four times
}

TEST_F(DataInC, a_loop_without_a_body_or_whose_body_fails_is_refused) {
  EXPECT_EQ(imbrex_space_iterate(space_, 7, 1, nullptr, nullptr, IMBREX_HERE), IMBREX_ERR_USE);
  EXPECT_TRUE(message_has("the body of imbrex_space_iterate()"));
  const auto fails = [](void*, std::int64_t) { return 3; };
  EXPECT_EQ(imbrex_space_iterate(space_, 7, 1, fails, nullptr, IMBREX_HERE), IMBREX_ERR_USE);
  EXPECT_TRUE(message_has("the body of imbrex_space_iterate() returned 3"));
}

TEST_F(DataInC, a_matrix_of_the_program_goes_away_and_comes_back) {
  std::array<int, 12> memory{};
  const imbrex_data_t matrix = make(0, memory.data(), 2, 3, 4);
  const int far = ring_.size - 1;
  ASSERT_EQ(insert(set, matrix, IMBREX_OUT, far), IMBREX_SUCCESS);
  value_ = 0;  // it was copied
  ASSERT_EQ(insert(add_one, matrix, IMBREX_INOUT, far), IMBREX_SUCCESS);
  ASSERT_EQ(imbrex_data_flush(matrix, IMBREX_HERE), IMBREX_SUCCESS);
  ASSERT_EQ(imbrex_space_finish(space_), IMBREX_SUCCESS) << imbrex_message();
  EXPECT_EQ(imbrex_data_owner(matrix), 0);
  imbrex_data_view view{};
  if (ring_.rank == 0) {
    ASSERT_EQ(imbrex_data_get(matrix, &view), IMBREX_SUCCESS) << imbrex_message();
    EXPECT_EQ(view.memory, memory.data());
    EXPECT_EQ(memory, (std::array{6, 5, 0, 0, 5, 5, 0, 0, 5, 5, 0, 0}));
  } else {
    EXPECT_EQ(imbrex_data_get(matrix, &view), IMBREX_ERR_USE);
    EXPECT_TRUE(message_has("its owner is rank 0")) << imbrex_message();
  }
}

TEST_F(DataInC, after_a_move_the_new_owner_has_it) {
  const imbrex_data_t data = make(0);
  const int far = ring_.size - 1;
  ASSERT_EQ(imbrex_data_move(data, far, IMBREX_HERE), IMBREX_SUCCESS);
  ASSERT_EQ(insert(add_one, data, IMBREX_INOUT), IMBREX_SUCCESS);
  ASSERT_EQ(imbrex_space_finish(space_), IMBREX_SUCCESS);
  EXPECT_EQ(imbrex_data_owner(data), far);
  if (ring_.rank != far) return;
  imbrex_data_view view{};
  ASSERT_EQ(imbrex_data_get(data, &view), IMBREX_SUCCESS);
  EXPECT_EQ(*static_cast<int*>(view.memory), 1);
}

TEST_F(DataInC, a_body_that_fails_is_told_on_all_ranks) {
  const imbrex_data_t data = make(0);
  ASSERT_EQ(insert(fail, data, IMBREX_OUT), IMBREX_SUCCESS);
  ASSERT_EQ(insert(add_one, data, IMBREX_INOUT, ring_.size - 1), IMBREX_SUCCESS);
  EXPECT_EQ(imbrex_space_finish(space_), IMBREX_ERR_TASK);
  EXPECT_TRUE(message_has("returned 7")) << imbrex_message();
  EXPECT_TRUE(message_has("of the test")) << imbrex_message();
  ASSERT_EQ(insert(set, data, IMBREX_OUT), IMBREX_SUCCESS);
  EXPECT_EQ(imbrex_space_finish(space_), IMBREX_SUCCESS);
}

TEST_F(DataInC, wrong_arguments_are_refused) {
  const imbrex_data_t data = make(0);
  const imbrex_data_t none = make(-1);
  EXPECT_EQ(imbrex_data_owner(none), -1);
  EXPECT_EQ(insert(nullptr, data, IMBREX_OUT), IMBREX_ERR_USE);
  EXPECT_TRUE(message_has("body is a null pointer")) << imbrex_message();
  EXPECT_EQ(insert(set, data, 4), IMBREX_ERR_USE);
  EXPECT_TRUE(message_has("imbrex_data_access::kind is 4")) << imbrex_message();
  EXPECT_EQ(insert(set, nullptr, IMBREX_OUT), IMBREX_ERR_USE);
  EXPECT_EQ(insert(set, data, IMBREX_DATA_REDUCE), IMBREX_ERR_USE);
  EXPECT_TRUE(message_has("reduction is a null pointer")) << imbrex_message();
  EXPECT_EQ(insert(set, data, IMBREX_OUT, ring_.size), IMBREX_ERR_USE);
  EXPECT_TRUE(message_has("of the test")) << imbrex_message();
  EXPECT_EQ(insert(add_one, none, IMBREX_INOUT, 0), IMBREX_ERR_USE);
  EXPECT_TRUE(message_has("no task has written")) << imbrex_message();
  EXPECT_EQ(imbrex_data_flush(none, IMBREX_HERE), IMBREX_ERR_USE);
  EXPECT_EQ(imbrex_data_move(data, -1, IMBREX_HERE), IMBREX_ERR_USE);
  EXPECT_EQ(imbrex_data_launch(space_, nullptr), IMBREX_ERR_USE);
  EXPECT_EQ(imbrex_data_concerns(space_, nullptr), -1);
  EXPECT_EQ(imbrex_space_finish(nullptr), IMBREX_ERR_USE);
  imbrex_data_t wrong = nullptr;
  EXPECT_EQ(imbrex_data_create(space_, ring_.size, 1, 1, 4, nullptr, 0, nullptr, &wrong),
            IMBREX_ERR_USE);
  for (const int number : {imbrex_data_owner(nullptr), imbrex_space_rank(nullptr),
                           imbrex_space_size(nullptr)}) {
    EXPECT_EQ(number, -1) << imbrex_message();
  }
  imbrex_space_t another = nullptr;
  const imbrex_space_options options{"odd", -7};
  EXPECT_EQ(imbrex_space_create(ring_.comm, &options, &another), IMBREX_ERR_USE);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  EXPECT_EQ(imbrex_space_create(MPI_COMM_NULL, nullptr, &another), IMBREX_ERR_USE);
  EXPECT_TRUE(message_has("a communicator that MPI refuses")) << imbrex_message();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

TEST_F(DataInC, concerns_says_what_may_be_left_out) {
  const imbrex_data_t data = make(0);
  const imbrex_data_access access{data, IMBREX_INOUT, nullptr};
  imbrex_data_task_spec task = IMBREX_DATA_TASK("add", add_one);
  task.access_count = 1;
  task.accesses = &access;
  EXPECT_EQ(imbrex_data_concerns(space_, &task), ring_.rank == 0 ? 1 : 0);
  if (ring_.rank == 0) {
    EXPECT_EQ(imbrex_data_launch(space_, &task), IMBREX_SUCCESS);
  }
  EXPECT_EQ(imbrex_space_finish(space_), IMBREX_SUCCESS);
}

}  // namespace
}  // namespace imbrex::test
