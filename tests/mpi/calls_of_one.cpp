// SPDX-License-Identifier: BSD-3-Clause
// Which ranks can be called. The argument "one": only rank 0 has opened calls, and every rank calls
// every rank. "none": ranks have opened messages but no calls, and a call says so.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "imbrex/imbrex.hpp"
#include "imbrex/remote.hpp"

namespace {

int rank_here() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// MPI_Init has not been called: only the launcher's variables know.
bool is_rank_0() {
  for (const char* const variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    if (const char* const rank = std::getenv(variable)) return std::string_view(rank) == "0";
  }
  return false;
}

int fail(const std::string& why) {
  std::fprintf(stderr, "rank %d: %s\n", rank_here(), why.c_str());
  return 1;
}

int call_all(const int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (imbrex::call(rank, rank_here).get() != rank) return fail("another rank has answered");
  }
  return 0;
}

int call_in_vain() {
  try {
    (void)imbrex::call(1, rank_here);
    return fail("nothing thrown");
  } catch (const imbrex::Error& error) {
    const std::string_view text = error.what();
    const bool says_all = text.find("a remote call to rank 1") != text.npos &&
                          text.find("imbrex::open_calls() before MPI_Init") != text.npos;
    return says_all ? 0 : fail(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool one = argc == 2 && std::string_view(argv[1]) == "one";
  if (one) {
    if (is_rank_0()) imbrex::open_calls();
  } else {
    imbrex::open_messages();
  }
  MPI_Init(&argc, &argv);
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int code = one ? call_all(ranks) : call_in_vain();
  MPI_Finalize();
  return code;
}
