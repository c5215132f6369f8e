// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/report/waits/private_world.hpp"

#include <atomic>

namespace imbrex::mpi::private_world {

namespace {

// Written in MPI_Init and MPI_Finalize only.
MPI_Comm the_comm = MPI_COMM_NULL;
int my_rank = 0;
int world_size = 1;
unsigned tags = 1;  // how many may be drawn

std::atomic<unsigned> drawn{0};  // any thread

}  // namespace

void open() {
  PMPI_Comm_dup(MPI_COMM_WORLD, &the_comm);
  PMPI_Comm_set_name(the_comm, "imbrex");
  PMPI_Comm_set_errhandler(the_comm, MPI_ERRORS_RETURN);
  PMPI_Comm_rank(the_comm, &my_rank);
  PMPI_Comm_size(the_comm, &world_size);
  void* largest = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&largest), &found);
  const int last = found != 0 ? *static_cast<const int*>(largest) : 32767;
  tags = static_cast<unsigned>(last) + 1u;
}

void close() noexcept { PMPI_Comm_free(&the_comm); }

MPI_Comm comm() noexcept { return the_comm; }
int rank() noexcept { return my_rank; }
int size() noexcept { return world_size; }

int draw_tag() noexcept {
  const unsigned rounds = tags / static_cast<unsigned>(world_size);
  const unsigned round = drawn.fetch_add(1, std::memory_order_relaxed) % (rounds == 0 ? 1 : rounds);
  return static_cast<int>(round) * world_size + my_rank;
}

}  // namespace imbrex::mpi::private_world
