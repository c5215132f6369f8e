// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/collectives/blocks/crossing.hpp"

#include <gtest/gtest.h>

namespace imbrex::mpi::blocks {
namespace {

constexpr bool open_mpi_4 = true;

TEST(Crossing, one_connection_has_no_limit) {
  EXPECT_EQ(at_once_most({open_mpi_4, 1, nullptr, nullptr}), 0);
  EXPECT_EQ(at_once_most({open_mpi_4, 0, "1", nullptr}), 0);
}

TEST(Crossing, several_connections_have_the_eager_limit) {
  EXPECT_EQ(at_once_most({open_mpi_4, 1, "2", nullptr}), 65536);
  EXPECT_EQ(at_once_most({open_mpi_4, 2, nullptr, nullptr}), 65536);
  EXPECT_EQ(at_once_most({open_mpi_4, 1, "2", "1000000"}), 1000000);
  EXPECT_EQ(at_once_most({open_mpi_4, 1, "2", "nonsense"}), 65536);
}

TEST(Crossing, other_libraries_have_no_limit) {
  EXPECT_EQ(at_once_most({false, 3, "2", nullptr}), 0);
}

}  // namespace
}  // namespace imbrex::mpi::blocks
