// SPDX-License-Identifier: BSD-3-Clause
// A library that needs messages between ranks, by each of the headers that open them.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>

#include "imbrex/data.h"
#include "imbrex/data.hpp"
#include "imbrex/future_space.hpp"
#include "imbrex/remote.hpp"
#include "imbrex/work_pool.hpp"

namespace {

int wrong = 0;

void check(const bool right, const std::string& what) {
  if (right) return;
  ++wrong;
  std::fprintf(stderr, "spans_ranks: %s\n", what.c_str());
}

int rank_here() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

const imbrex::FutureSpaceOptions places{.home = [](std::uint64_t) { return 0; }, .name = "places"};

// All that needs messages works on all ranks.
void use_all() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    check(imbrex::call(rank, rank_here).get() == rank, "another rank has answered");
  }
  imbrex::FutureSpace<int> numbers(MPI_COMM_WORLD, places);
  if (rank_here() == ranks - 1) numbers.set(3, 7);
  check(numbers[3].get() == 7, "another value has come");
  numbers.close();
  imbrex::WorkPool<int> pool(MPI_COMM_WORLD);
  pool.process([](const int&, imbrex::Emit<int>&) {});
  const imbrex::Space space(MPI_COMM_WORLD);
  imbrex_space_t in_c = nullptr;
  check(imbrex_space_create(MPI_COMM_WORLD, nullptr, &in_c) == IMBREX_SUCCESS, imbrex_message());
  check(imbrex_space_free(&in_c) == IMBREX_SUCCESS, imbrex_message());
}

template <class F>
void check_refused(const std::string& text, F&& use) {
  try {
    use();
    check(false, "not refused: " + text);
  } catch (const std::exception& error) {
    check(std::string(error.what()).find(text) != std::string::npos, error.what());
  }
}

// All that needs messages says why it cannot have them.
void use_in_vain() {
  const std::string why = " while messages between ranks are not open: use it between MPI_Init";
  check_refused("\"places\"" + why, [] { imbrex::FutureSpace<int>(MPI_COMM_WORLD, places); });
  check_refused("\"leaves\"" + why,
                [] { imbrex::WorkPool<int>(MPI_COMM_WORLD, {.name = "leaves"}); });
  check_refused("a space of data" + why, [] { imbrex::Space space(MPI_COMM_WORLD); });
  check_refused("a remote call to rank 1 while ranks take no calls: call between MPI_Init and",
                [] { (void)imbrex::call(1, rank_here); });
  imbrex_space_t space = nullptr;
  check(imbrex_space_create(MPI_COMM_WORLD, nullptr, &space) == IMBREX_ERR_USE, "a space in C");
  check(std::string(imbrex_message()).find("a space of data" + why) != std::string::npos,
        imbrex_message());
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int span_ranks(bool open);
// Returns the number of mistakes.
extern "C" int span_ranks(const bool open) {
  open ? use_all() : use_in_vain();
  return wrong;
}
