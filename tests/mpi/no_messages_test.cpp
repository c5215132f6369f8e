// SPDX-License-Identifier: BSD-3-Clause
// A program that has not opened messages between ranks is told so, on all ranks, by whatever needs
// them; that it includes their headers opens nothing.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "imbrex/data.h"
#include "imbrex/data.hpp"
#include "imbrex/future_space.hpp"
#include "imbrex/remote.hpp"
#include "imbrex/work_pool.hpp"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

int one() { return 1; }

constexpr const char* why = " while messages between ranks are not open: call imbrex::open_m";

TEST(NoMessagesTest, functions_that_need_messages_say_so) {
  const FutureSpaceOptions options{.home = [](std::uint64_t) { return 0; }, .name = "places"};
  EXPECT_SAYS(thrown_by([&] { const FutureSpace<int> space(MPI_COMM_WORLD, options); }),
              std::string("\"places\"") + why);
  EXPECT_SAYS(thrown_by([] { const WorkPool<int> pool(MPI_COMM_WORLD, {.name = "leaves"}); }),
              std::string("\"leaves\"") + why);
  EXPECT_SAYS(thrown_by([] { const Space space(MPI_COMM_WORLD); }),
              std::string("a space of data") + why);
  EXPECT_SAYS(thrown_by([] { (void)call(1, one); }),
              "a remote call to rank 1 while no rank takes calls: call imbrex::open_calls() bef");
  imbrex_space_t space = nullptr;
  EXPECT_EQ(imbrex_space_create(MPI_COMM_WORLD, nullptr, &space), IMBREX_ERR_USE);
  EXPECT_SAYS(std::string(imbrex_message()), std::string("a space of data") + why);
}

TEST(NoMessagesTest, they_can_be_opened_before_MPI_Init_only) {
  EXPECT_SAYS(thrown_by([] { open_messages(); }), "too late: call it before MPI_Init");
  EXPECT_SAYS(thrown_by([] { open_calls(); }), "open_calls() comes too late");
  EXPECT_EQ(imbrex_open_messages(), IMBREX_ERR_USE);
  EXPECT_SAYS(std::string(imbrex_message()), "too late: call it before MPI_Init");
}

}  // namespace
}  // namespace imbrex::test
