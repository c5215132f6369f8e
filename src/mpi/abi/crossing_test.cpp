// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/abi/crossing.hpp"

#include <gtest/gtest.h>

namespace imbrex::mpi::crossing {
namespace {

constexpr const char* open_mpi_4 = "Open MPI v4.1.4, package: Debian";

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
  EXPECT_EQ(at_once_most({"Open MPI v5.0.8", 3, "2", nullptr}), 0);
  EXPECT_EQ(at_once_most({"MPICH Version: 4.0.2", 3, nullptr, nullptr}), 0);
}

}  // namespace
}  // namespace imbrex::mpi::crossing
