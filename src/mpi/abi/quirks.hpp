// SPDX-License-Identifier: BSD-3-Clause
// The quirks of MPI libraries that imbrex works around: one table, with the reason for each. A
// library for one family of MPIs decides at compile time which quirks none or all of its MPIs have;
// all else is decided at run time, by MPI_Get_library_version, since one binary may run on several
// MPIs and on other versions than it was built with. Two things stay decided at compile time: the
// layout of Open MPI's requests (request_state.hpp), and which hook MPICH has in its progress
// (notice.cpp), whose types stand in MPICH's own mpi.h only.
#pragma once

#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace imbrex::mpi {

enum class Family : std::uint8_t { other, openmpi, mpich, intel };

// Version 4.1.4 is 4001004.
struct Identity {
  Family family = Family::other;
  int version = 0;
};
[[nodiscard]] constexpr int version_of(const int major, const int minor) noexcept {
  return major * 1'000'000 + minor * 1'000;
}

enum class Quirk : std::uint8_t {
  errors_reach_other_handlers,
  collectives_blame_world,
  requests_blame_world,
  created_group_mixes_messages,
  file_requests_crash,
  twins_compare_counts,
  twins_mix_up_sides,
  isendrecv_has_no_status,
  handlers_are_given_the_call,
  connections_cross,
  first_topologies_crash
};
inline constexpr std::size_t quirks_count = 11;

struct QuirkRow {
  Quirk quirk;
  Family family;
  int from;    // the first version that has it
  int before;  // the first version that has not
};
inline constexpr int not_mended = INT_MAX;

inline constexpr QuirkRow quirk_table[] = {
    // The error of a request goes to the handler of MPI_COMM_SELF or MPI_COMM_WORLD instead of the
    // communicator's, and MPICH 5 returns MPI_SUCCESS afterwards. MPI_Testall is wrong for
    // persistent collectives, partitioned messages and files.
    {Quirk::errors_reach_other_handlers, Family::mpich, 0, not_mended},
    {Quirk::errors_reach_other_handlers, Family::intel, 0, not_mended},
    // If the request of a collective fails, MPI calls the handler of MPI_COMM_WORLD.
    {Quirk::collectives_blame_world, Family::openmpi, 0, version_of(5, 0)},
    // If any request fails, MPI calls the handler of MPI_COMM_WORLD.
    {Quirk::requests_blame_world, Family::mpich, 0, version_of(4, 2)},
    // MPI_Comm_create_group takes messages of other calls on the same communicator for its own.
    {Quirk::created_group_mixes_messages, Family::openmpi, 0, not_mended},
    // MPI walks its list of open requests of files without a lock.
    {Quirk::file_requests_crash, Family::openmpi, 0, not_mended},
    // MPI_Ialltoallv and MPI_Ialltoallw wait for ever where one side has no element and the other
    // side has elements of no bytes.
    {Quirk::twins_compare_counts, Family::openmpi, 0, not_mended},
    // MPI_Ineighbor_alltoall and its variants mix up the sides of a small periodic grid.
    {Quirk::twins_mix_up_sides, Family::openmpi, 0, not_mended},
    // The status of MPI_Isendrecv is zeros, which name no message.
    {Quirk::isendrecv_has_no_status, Family::mpich, 0, not_mended},
    {Quirk::isendrecv_has_no_status, Family::intel, 0, not_mended},
    // An error handler gets the name of the call that failed as its third argument.
    {Quirk::handlers_are_given_the_call, Family::openmpi, 0, not_mended},
    // With several connections between two processes, long messages in both directions may never
    // end (crossing.hpp).
    {Quirk::connections_cross, Family::openmpi, version_of(4, 0), version_of(5, 0)},
    // The first call that makes a topology loads code without a lock.
    {Quirk::first_topologies_crash, Family::openmpi, 0, not_mended},
};

// Reads the first line of the text of MPI_Get_library_version. `or_else` is the version where the
// text names a relative of MPICH without the version of MPICH in it.
[[nodiscard]] Identity identify(std::string_view text, int or_else) noexcept;
[[nodiscard]] constexpr bool has_quirk(const Identity& mpi, const Quirk quirk) noexcept {
  for (const QuirkRow& row : quirk_table) {
    if (row.quirk == quirk && row.family == mpi.family && row.from <= mpi.version &&
        mpi.version < row.before) {
      return true;
    }
  }
  return false;
}

#ifdef IMBREX_MPI_ABI
// Written by learn_quirks() in MPI_Init only, before any task calls MPI.
inline constinit std::array<bool, quirks_count> found_quirks{};
// Asks the MPI behind this library for its name and version.
void learn_quirks() noexcept;

// Whether this library may run on this family. A library for the fake MPI of the tests runs on no
// family, and has no quirk.
[[nodiscard]] constexpr bool may_run_on(const Family family) noexcept {
  constexpr std::string_view own = IMBREX_MPI_ABI;
  if (own == "abi") return true;
  if (own == "openmpi") return family == Family::openmpi;
  return own == "mpich" && (family == Family::mpich || family == Family::intel);
}
enum class Chance : std::uint8_t { never, maybe, always };
[[nodiscard]] constexpr Chance chance_of(const Quirk quirk) noexcept {
  bool some = false;
  bool all = true;
  for (const Family family : {Family::other, Family::openmpi, Family::mpich, Family::intel}) {
    if (!may_run_on(family)) continue;
    bool bounded = false;
    bool unbounded = false;
    for (const QuirkRow& row : quirk_table) {
      if (row.quirk != quirk || row.family != family) continue;
      (row.from == 0 && row.before == not_mended ? unbounded : bounded) = true;
    }
    some = some || bounded || unbounded;
    all = all && unbounded;
  }
  if (!some) return Chance::never;
  return all ? Chance::always : Chance::maybe;
}

// True if the MPI of this process has the quirk. A constant where all MPIs that this library may
// run on agree.
template <Quirk quirk>
[[nodiscard]] inline bool has() noexcept {
  if constexpr (chance_of(quirk) == Chance::never) return false;
  if constexpr (chance_of(quirk) == Chance::always) return true;
  return found_quirks[static_cast<std::size_t>(quirk)];
}
#endif

}  // namespace imbrex::mpi
