// SPDX-License-Identifier: BSD-3-Clause
// Messages in the trace. The ranks of a communicator are translated once and kept with it, as an
// attribute, so that they go when it goes.
#include "messages.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

#include "imbrex/detail/waist.hpp"

namespace imbrex::mpi {

namespace {

struct Members {
  std::vector<int> in_world;  // of the group that messages go to
  std::uint32_t id = 0;       // a hash of all members, so all ranks agree on it
};

std::vector<int> ranks_in_world(MPI_Group group) {
  int size = 0;
  PMPI_Group_size(group, &size);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::vector<int> in_world(ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  MPI_Group world;
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  PMPI_Group_translate_ranks(group, size, ranks.data(), world, in_world.data());
  PMPI_Group_free(&world);
  return in_world;
}

// FNV-1a.
std::uint32_t hash(const std::vector<int>& ranks) noexcept {
  std::uint32_t value = 2166136261u;
  for (const int rank : ranks) value = (value ^ static_cast<std::uint32_t>(rank)) * 16777619u;
  return value;
}

std::unique_ptr<Members> translate(MPI_Comm comm) {
  auto members = std::make_unique<Members>();
  MPI_Group group;
  PMPI_Comm_group(comm, &group);
  members->in_world = ranks_in_world(group);
  members->id = hash(members->in_world);
  PMPI_Group_free(&group);

  int between_groups = 0;
  PMPI_Comm_test_inter(comm, &between_groups);
  if (between_groups != 0) {
    PMPI_Comm_remote_group(comm, &group);
    members->in_world = ranks_in_world(group);
    members->id ^= hash(members->in_world);  // the same seen from either side
    PMPI_Group_free(&group);
  }
  return members;
}

int forget(MPI_Comm, int, void* members, void*) {
  delete static_cast<Members*>(members);
  return MPI_SUCCESS;
}

// Two tasks may ask for a communicator that neither has seen: one translates it. The calls of MPI
// that are made under the lock are local and call nothing of the user's.
const Members& members_of(MPI_Comm comm) {
  static const int key = [] {
    int created = MPI_KEYVAL_INVALID;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &forget, &created, nullptr);
    return created;
  }();
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  void* value = nullptr;
  int found = 0;
  PMPI_Comm_get_attr(comm, key, static_cast<void*>(&value), &found);
  if (found == 0) {
    value = translate(comm).release();
    PMPI_Comm_set_attr(comm, key, value);
  }
  return *static_cast<const Members*>(value);
}

void record(bool sent, MPI_Comm comm, int peer, int tag, std::uint64_t bytes) {
  std::uint32_t id = 0;
  if (comm != MPI_COMM_WORLD) {
    const Members& members = members_of(comm);
    peer = members.in_world[static_cast<std::size_t>(peer)];
    id = members.id;
  }
  if (peer == MPI_UNDEFINED) return;  // of a dynamic process: not in MPI_COMM_WORLD
  detail::trace_message({sent, peer, tag, bytes, id});
}

}  // namespace

void trace_sent(const Message& message) noexcept {
  if (message.peer == MPI_PROC_NULL) return;
  int bytes = 0;
  PMPI_Type_size(message.type, &bytes);
  record(true, message.comm, message.peer, message.tag,
         static_cast<std::uint64_t>(bytes) * static_cast<std::uint64_t>(message.count));
}

void trace_received(MPI_Comm comm, const MPI_Status& status) noexcept {
  if (status.MPI_SOURCE == MPI_PROC_NULL) return;
  MPI_Count bytes = 0;
  PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
  if (bytes == MPI_UNDEFINED) bytes = 0;
  record(false, comm, status.MPI_SOURCE, status.MPI_TAG, static_cast<std::uint64_t>(bytes));
}

}  // namespace imbrex::mpi
