// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/report/waits/mpi_waits.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

#include "mpi/abi/inquiries.hpp"

namespace imbrex::mpi::report {

std::string name_of(MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  if (PMPI_Comm_get_name(comm, name, &length) == MPI_SUCCESS && length > 0) {
    return {name, static_cast<std::size_t>(length)};
  }
  int size = 0;
  PMPI_Comm_size(comm, &size);
#ifdef MPI_ABI_VERSION  // the standard's ABI leaves Fortran to others
  const int number = PMPI_Comm_toint(comm);
#else
  const int number = PMPI_Comm_c2f(comm);
#endif
  return fmt::format("communicator #{} of {} ranks", static_cast<std::uint32_t>(number), size);
}

namespace {

// Frees the group.
std::vector<int> ranks_in_world(MPI_Group group) {
  MPI_Group world = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  int size = 0;
  PMPI_Group_size(group, &size);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::vector<int> in_world(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  PMPI_Group_translate_ranks(group, size, ranks.data(), world, in_world.data());
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  // A process outside of MPI_COMM_WORLD has no rank there.
  std::ranges::replace(in_world, MPI_UNDEFINED, diagnosis::none);
  return in_world;
}

}  // namespace

bool has_two_groups(MPI_Comm comm) noexcept {
  int between_groups = 0;
  PMPI_Comm_test_inter(comm, &between_groups);
  return between_groups != 0;
}

diagnosis::Communicator facts_of(MPI_Comm comm) {
  diagnosis::Communicator facts{.name = name_of(comm)};
  MPI_Group group = MPI_GROUP_NULL;
  const auto ask = has_two_groups(comm) ? PMPI_Comm_remote_group : PMPI_Comm_group;
  if (ask(comm, &group) == MPI_SUCCESS) facts.members = ranks_in_world(group);
  if (comm == MPI_COMM_WORLD) facts.id = 1;
  // MPI and imbrex number communicators without a name, perhaps in another way on each rank.
  facts.is_named = !facts.name.starts_with("communicator #") &&
                   !facts.name.starts_with("MPI COMMUNICATOR");
  return facts;
}

diagnosis::Communicator facts_of_window(MPI_Win window) {
  diagnosis::Communicator facts;
  MPI_Group group = MPI_GROUP_NULL;
  if (PMPI_Win_get_group(window, &group) == MPI_SUCCESS) facts.members = ranks_in_world(group);
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  PMPI_Win_get_name(window, name, &length);
  // Open MPI numbers windows without a name: "rdma window 6".
  const std::string_view called(name, static_cast<std::size_t>(length));
  facts.is_named = length > 0 && (called.find(" window ") == called.npos ||
                                  called.find_last_not_of("0123456789") + 1 == called.size());
  facts.name = facts.is_named ? std::string(called)
                              : fmt::format("window of {} ranks", facts.members.size());
  return facts;
}

Wait wait_of(const Call& call, const detail::TaskLabel& task) {
  Wait wait = wait_of(call);
  wait.task = detail::describe(task);
  return wait;
}

Wait wait_of(const Call& call) {
  Wait wait{.call = call.name, .task = {}};
  if (call.waits_here) wait.call += " (not sent yet: in imbrex's queue, see IMBREX_SENDS)";
  if (call.comm != MPI_COMM_NULL) wait.comm = name_of(call.comm);
  if (call.peer != Call::none) wait.peer = call.peer == MPI_ANY_SOURCE ? any : call.peer;
  if (call.tag != Call::none) wait.tag = call.tag == MPI_ANY_TAG ? any : call.tag;
  wait.receives = call.kind == Kind::receive;
  if (call.type != MPI_DATATYPE_NULL) {
    const std::int64_t bytes = bytes_of(call.count, call.type);
    wait.sized = bytes >= 0;
    if (wait.sized) wait.bytes = static_cast<std::uint64_t>(bytes);
  }
  return wait;
}

}  // namespace imbrex::mpi::report
