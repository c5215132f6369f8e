// SPDX-License-Identifier: BSD-3-Clause
// The two calls that make a communicator by messages with a tag of the program:
// MPI_Comm_create_group and MPI_Intercomm_create. Open MPI sends these messages on the communicator
// of the call, like the program's own, and an engine that matches receives there would take them
// for such. They are therefore sent on communicators of imbrex. Other MPIs keep them apart: there
// the calls are MPI's own.
//
// MPI_Comm_create_group uses a private duplicate of MPI_COMM_WORLD, with a number as its tag that
// one process has drawn and that no other process can draw (it contains the drawer's rank). The
// drawer tells it to the other participants, by messages on the program's communicator with the
// program's tag, which the standard reserves for this very call; one order of calls there gives the
// same numbers to all.
//
// The leaders of MPI_Intercomm_create first make a communicator of the two of them in this way.
// Open MPI uses more of the peer communicator than the tag of the call, so two calls at a time need
// two peer communicators.
//
// Open MPI makes a communicator from a later one wait while it makes one from an earlier one, and
// the private one is earlier than those of the program. So no participant calls MPI before all are
// there: it would keep out the very calls that another participant makes first.
#include <mpi.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "mpi/calls/spare.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/report/waits/private_world.hpp"

namespace imbrex::mpi {

namespace {

// The ranks of `group` in `comm`; empty if a member is not there.
std::vector<int> ranks_in(MPI_Comm comm, MPI_Group group) {
  int size = 0;
  PMPI_Group_size(group, &size);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::vector<int> there(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  MPI_Group all;
  PMPI_Comm_group(comm, &all);
  PMPI_Group_translate_ranks(group, size, ranks.data(), all, there.data());
  PMPI_Group_free(&all);
  for (const int rank : there) {
    if (rank == MPI_UNDEFINED) return {};
  }
  return there;
}

int tag_max() {
  void* largest = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&largest), &found);
  return found != 0 ? *static_cast<const int*>(largest) : 32767;
}

bool between_groups(MPI_Comm comm) {
  int answer = 0;
  PMPI_Comm_test_inter(comm, &answer);
  return answer != 0;
}

// The members of a call, in the order of its group, on either communicator. Empty if the call must
// not, or cannot, use the private one: MPI reports the error, or the call reaches beyond
// MPI_COMM_WORLD.
struct Ranks {
  std::vector<int> in_comm;
  std::vector<int> in_world;
};
Ranks ranks_of(MPI_Comm comm, MPI_Group group, int tag) {
  if (!has<Quirk::created_group_mixes_messages>() || !in_service() || comm == MPI_COMM_NULL ||
      group == MPI_GROUP_NULL || tag < 0 || tag > tag_max() || between_groups(comm)) {
    return {};
  }
  Ranks members{ranks_in(comm, group), ranks_in(private_world::comm(), group)};
  if (members.in_comm.size() != members.in_world.size() ||
      std::ranges::find(members.in_world, private_world::rank()) == members.in_world.end()) {
    return {};
  }
  return members;
}

// Returns when all members are in the call; `number` is then the tag for its messages. The first
// member draws it.
int agree(const Ranks& members, MPI_Comm comm, int tag, int* number) {
  const int drawer = members.in_comm[0];
  if (members.in_world[0] != private_world::rank()) {
    const int code = MPI_Send(nullptr, 0, MPI_INT, drawer, tag, comm);
    if (code != MPI_SUCCESS) return code;
    return MPI_Recv(number, 1, MPI_INT, drawer, tag, comm, MPI_STATUS_IGNORE);
  }
  const std::span others = std::span(members.in_comm).subspan(1);
  for (const int other : others) {
    const int code = MPI_Recv(nullptr, 0, MPI_INT, other, tag, comm, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) return code;
  }
  *number = private_world::draw_tag();
  for (const int other : others) {
    const int code = MPI_Send(number, 1, MPI_INT, other, tag, comm);
    if (code != MPI_SUCCESS) return code;
  }
  return MPI_SUCCESS;
}

int create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* created) {
  // This comes before any process is told a number.
  const int refused = refuse_where_forbidden("MPI_Comm_create_group");
  if (refused != MPI_SUCCESS) return refused;
  const Ranks members = ranks_of(comm, group, tag);
  if (members.in_world.empty()) {
    return by_spare_thread("MPI_Comm_create_group",
                           [&] { return PMPI_Comm_create_group(comm, group, tag, created); });
  }
  int number = 0;
  int code = agree(members, comm, tag, &number);
  if (code != MPI_SUCCESS) return code;
  code = by_spare_thread("MPI_Comm_create_group", [&] {
    return PMPI_Comm_create_group(private_world::comm(), group, number, created);
  });
  if (code != MPI_SUCCESS) {
    return raise_error({.name = "MPI_Comm_create_group", .comm = comm}, code);
  }
  if (*created == MPI_COMM_NULL) return MPI_SUCCESS;
  MPI_Errhandler handler;
  MPI_Comm_get_errhandler(comm, &handler);
  MPI_Comm_set_errhandler(*created, handler);
  MPI_Errhandler_free(&handler);
  return MPI_SUCCESS;
}

struct Leaders {
  MPI_Comm comm;  // of the group that becomes the local one
  int leader;
  MPI_Comm peer_comm;
  int peer;  // the other leader there
  int tag;
};

// The two leaders, in the order of the peer communicator; empty if this process is no
// leader, or as for ranks_of().
Ranks leaders_of(const Leaders& it) {
  int rank = -1;
  if (!has<Quirk::created_group_mixes_messages>() || !in_service() ||
      it.comm == MPI_COMM_NULL || between_groups(it.comm) ||
      PMPI_Comm_rank(it.comm, &rank) != MPI_SUCCESS || rank != it.leader ||
      it.peer_comm == MPI_COMM_NULL || between_groups(it.peer_comm)) {
    return {};
  }
  int size = 0;
  int here = 0;
  PMPI_Comm_size(it.peer_comm, &size);
  PMPI_Comm_rank(it.peer_comm, &here);
  if (it.peer < 0 || it.peer >= size || it.peer == here) return {};
  MPI_Group all;
  MPI_Group both;
  const int ranks[2] = {std::min(here, it.peer), std::max(here, it.peer)};
  PMPI_Comm_group(it.peer_comm, &all);
  PMPI_Group_incl(all, 2, ranks, &both);
  const Ranks members = ranks_of(it.peer_comm, both, it.tag);
  PMPI_Group_free(&both);
  PMPI_Group_free(&all);
  return members;
}

// In the leaders.
int create_by_private_peers(const Leaders& it, const Ranks& leaders, int number,
                            MPI_Comm* created) {
  MPI_Group all;
  MPI_Group both;
  MPI_Comm pair;
  PMPI_Comm_group(private_world::comm(), &all);
  PMPI_Group_incl(all, 2, leaders.in_world.data(), &both);
  int code = PMPI_Comm_create_group(private_world::comm(), both, number, &pair);
  PMPI_Group_free(&both);
  PMPI_Group_free(&all);
  if (code != MPI_SUCCESS) return code;
  const int peer = leaders.in_world[0] == private_world::rank() ? 1 : 0;
  code = PMPI_Intercomm_create(it.comm, it.leader, pair, peer, 0, created);
  PMPI_Comm_free(&pair);
  return code;
}

int create_intercommunicator(const Leaders& it, MPI_Comm* created) {
  const int refused = refuse_where_forbidden("MPI_Intercomm_create");
  if (refused != MPI_SUCCESS) return refused;
  const Ranks leaders = leaders_of(it);
  if (leaders.in_world.empty()) {
    return by_spare_thread("MPI_Intercomm_create", [&] {
      return PMPI_Intercomm_create(it.comm, it.leader, it.peer_comm, it.peer, it.tag, created);
    });
  }
  int number = 0;
  const int code = agree(leaders, it.peer_comm, it.tag, &number);
  if (code != MPI_SUCCESS) return code;
  return by_spare_thread("MPI_Intercomm_create", [&] {
    return create_by_private_peers(it, leaders, number, created);
  });
}

}  // namespace

}  // namespace imbrex::mpi

IMBREX_FUNCTION(Comm_create_group)(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* created) {
  return imbrex::mpi::create_group(comm, group, tag, created);
}

IMBREX_FUNCTION(Intercomm_create)(MPI_Comm comm, int leader, MPI_Comm peer_comm, int peer_leader,
                                    int tag, MPI_Comm* created) {
  const imbrex::mpi::Leaders leaders{comm, leader, peer_comm, peer_leader, tag};
  return imbrex::mpi::create_intercommunicator(leaders, created);
}
