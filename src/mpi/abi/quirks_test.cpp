// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/abi/quirks.hpp"

#include <gtest/gtest.h>

namespace imbrex::mpi {
namespace {

constexpr int unknown = version_of(4, 1);

void expect(const std::string_view text, const Family family, const int version) {
  const Identity mpi = identify(text, unknown);
  EXPECT_EQ(mpi.family, family) << text;
  EXPECT_EQ(mpi.version, version) << text;
}

TEST(Quirks, a_library_says_its_family_and_its_version) {
  expect("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4", Family::openmpi,
         version_of(4, 1) + 4);
  expect("Open MPI v6.0.0rc2, package: Debian", Family::openmpi, version_of(6, 0));
  expect("MPICH Version:      5.0.2\nMPICH Release date: today", Family::mpich,
         version_of(5, 0) + 2);
  expect("Intel(R) MPI Library 2021.18.1 for Linux* OS\n", Family::intel,
         version_of(2021, 18) + 1);
  expect("MPI VERSION    : CRAY MPICH version 8.1.29 (ANL base 3.4a2)", Family::mpich,
         version_of(3, 4));
  expect("MVAPICH Version      :\t3.0", Family::mpich, unknown);
  expect("", Family::other, 0);
}

TEST(Quirks, a_quirk_ends_with_the_version_that_mends_it) {
  const auto of = [](const std::string_view text, const Quirk quirk) {
    return has_quirk(identify(text, unknown), quirk);
  };
  EXPECT_TRUE(of("Open MPI v4.1.4, package", Quirk::collectives_blame_world));
  EXPECT_FALSE(of("Open MPI v5.0.8, package", Quirk::collectives_blame_world));
  EXPECT_TRUE(of("MPICH Version: 4.0.2", Quirk::requests_blame_world));
  EXPECT_FALSE(of("MPICH Version: 5.0.2", Quirk::requests_blame_world));
  EXPECT_FALSE(of("Intel(R) MPI Library 2021.18", Quirk::requests_blame_world));
  EXPECT_TRUE(of("Open MPI v4.1.4", Quirk::connections_cross));
  EXPECT_FALSE(of("Open MPI v5.0.8", Quirk::connections_cross));
  EXPECT_FALSE(of("MPICH Version: 4.0.2", Quirk::connections_cross));
}

}  // namespace
}  // namespace imbrex::mpi
