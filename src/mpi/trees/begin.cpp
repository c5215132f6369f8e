// SPDX-License-Identifier: BSD-3-Clause
// Which communicators have trees: those that were given imbrex_trees by an info, where every rank
// can have them. Else IMBREX_Send_to_all sends one by one there.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "mpi/below/abi/standard.hpp"
#include "mpi/calls/decompose.hpp"
#include "mpi/calls/spare.hpp"
#include "mpi/engine/errors.hpp"
#include "mpi/matching/communicators.hpp"
#include "mpi/matching/wait.hpp"
#include "mpi/sends/begin.hpp"
#include "mpi/trees/trees.hpp"
#include "mpi/watch/check/check.hpp"
#include "mpi/watch/messages.hpp"

namespace imbrex::mpi::trees {

namespace {

// Shorter messages are sent one by one: an announcement costs as much as they do.
constexpr std::size_t least_by_default = 8192;

// What the info says: bytes from which messages go along trees, or 0: nothing. Anything else than
// true, false, and a number is false.
std::size_t least_of(MPI_Info info) {
  if (info == MPI_INFO_NULL) return 0;
  char value[16] = "";
  int found = 0;
  PMPI_Info_get(info, "imbrex_trees", sizeof value - 1, value, &found);
  if (found == 0) return 0;
  if (std::strcmp(value, "true") == 0) return least_by_default;
  std::size_t bytes = 0;
  const char* const end = value + std::strlen(value);
  const auto [stopped, error] = std::from_chars(value, end, bytes);
  return error == std::errc() && stopped == end ? bytes : 0;
}

// True if each of its processes is one of MPI_COMM_WORLD, which ends as a whole.
bool is_within_world(MPI_Comm comm) {
  MPI_Group here;
  MPI_Group world;
  PMPI_Comm_group(comm, &here);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  int size = 0;
  PMPI_Group_size(here, &size);
  std::vector<int> ranks(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) ranks[static_cast<std::size_t>(i)] = i;
  std::vector<int> there(ranks.size(), MPI_UNDEFINED);
  PMPI_Group_translate_ranks(here, size, ranks.data(), world, there.data());
  PMPI_Group_free(&here);
  PMPI_Group_free(&world);
  return std::find(there.begin(), there.end(), MPI_UNDEFINED) == there.end();
}

// Why this rank cannot have trees there; empty if it can.
std::string why_not(MPI_Comm comm, receive::Communicator* const communicator) {
  if (communicator == nullptr) return "MPI gives no attributes for it";
  if (!is_within_world(comm)) return "it has processes that are not of MPI_COMM_WORLD";
  if (!communicator->may_detour()) {
    return "imbrex cannot match all of its receives: some are open already, or it asserts that it "
           "has no wildcards, or its events are asked for, or IMBREX_MATCH_ABOVE forbids it";
  }
  return "";
}

// Collective: all ranks, or none.
int begin(const char* const call, MPI_Comm comm, const std::size_t least) {
  int between_groups = 0;
  PMPI_Comm_test_inter(comm, &between_groups);
  receive::Communicator* const communicator = receive::communicator_of(comm);
  if (communicator != nullptr && communicator->detour() != nullptr) return MPI_SUCCESS;
  if (between_groups != 0) {
    say(std::string(call) + " is given imbrex_trees for an intercommunicator: IMBREX_Send_to_all "
                            "sends one by one there");
    return MPI_SUCCESS;
  }
  const std::string reason = why_not(comm, communicator);
  const std::array<std::int64_t, 2> mine{reason.empty() ? 0 : 1, 0};
  std::array<std::int64_t, 2> all{};
  const Call its_call{.name = call, .comm = comm, .kind = Kind::collective};
  int code = carry_out(its_call, MPI_STATUS_IGNORE, [&](MPI_Request* request) {
    return PMPI_Iallreduce(mine.data(), all.data(), 2, MPI_INT64_T, MPI_SUM, comm, request);
  });
  if (code != MPI_SUCCESS) return code;
  if (!reason.empty()) {
    say(std::string(call) + " is given imbrex_trees, but IMBREX_Send_to_all will send one by one "
                            "on this communicator: " + reason);
  }
  if (all[0] != 0) return MPI_SUCCESS;
  MPI_Comm paths = MPI_COMM_NULL;
  code = carry_out(its_call, MPI_STATUS_IGNORE, [&](MPI_Request* request) {
    return PMPI_Comm_idup(comm, &paths, request);
  });
  if (code != MPI_SUCCESS) return code;
  PMPI_Comm_set_errhandler(paths, MPI_ERRORS_RETURN);
  // It ends itself, when the communicator does.
  const Trees::Setup setup{comm, paths, least};
  communicator->begin_detour(*std::make_unique<Trees>(*communicator, setup).release());
  return MPI_SUCCESS;
}

int begin_if_asked(const char* const call, MPI_Comm comm, MPI_Info info) {
  const std::size_t least = in_service() ? least_of(info) : 0;
  return least == 0 ? MPI_SUCCESS : begin(call, comm, least);
}

int dup_with_info(const char* const call, MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
#if IMBREX_MPI_4
  if (!in_service()) return PMPI_Comm_dup_with_info(comm, info, made);
  const Call its_call{.name = call, .comm = comm, .kind = Kind::collective};
  const TracedCollective traced(its_call);
  check::Guard guard;
  const detail::TaskLabel task = check::on() ? detail::current_task() : detail::TaskLabel();
  return carry_out(its_call, MPI_STATUS_IGNORE, [&](MPI_Request* request) {
    const int code = PMPI_Comm_idup_with_info(comm, info, made, request);
    if (check::on() && code == MPI_SUCCESS) [[unlikely]] guard.begin(its_call, task, {});
    return code;
  });
#else
  return by_spare_thread(call, [&] { return PMPI_Comm_dup_with_info(comm, info, made); });
#endif
}

}  // namespace

}  // namespace imbrex::mpi::trees

// ---- what programs call ----------------------------------------------------------------------

IMBREX_FUNCTION(Comm_dup_with_info)(MPI_Comm comm, MPI_Info info, MPI_Comm* duplicate) {
  using namespace imbrex::mpi::trees;
  constexpr const char* name = "MPI_Comm_dup_with_info";
  namespace decompose = imbrex::mpi::decompose;
  const imbrex::mpi::Call call{.name = name, .comm = comm};
  int code = decompose::look_at_info(call, info);
  if (code == MPI_SUCCESS) code = dup_with_info(name, comm, info, duplicate);
  if (code == MPI_SUCCESS) code = decompose::keep_info(call, *duplicate, info);
  return code == MPI_SUCCESS ? begin_if_asked(name, *duplicate, info) : code;
}

IMBREX_FUNCTION(Comm_set_info)(MPI_Comm comm, MPI_Info info) {
  using namespace imbrex::mpi;
  constexpr const char* name = "MPI_Comm_set_info";
  const Call call{.name = name, .comm = comm};
  if (const int code = decompose::look_at_info(call, info); code != MPI_SUCCESS) return code;
  // This comes before MPI is told, since another thread may poll just now.
  if (in_service() && info != MPI_INFO_NULL && receive::info_asserts_no_wildcards(info)) {
    receive::Communicator* const it = receive::communicator_of(comm);
    if (it != nullptr && it->detour() != nullptr) {
      say("MPI_Comm_set_info asserts that a communicator with imbrex_trees has no wildcards, but "
          "imbrex needs them there: make another one for the other messages");
      PMPI_Comm_call_errhandler(comm, MPI_ERR_INFO);
      return MPI_ERR_INFO;
    }
    if (it != nullptr) it->stop_matching();
  }
  int code = PMPI_Comm_set_info(comm, info);
  if (code == MPI_SUCCESS) code = decompose::keep_info(call, comm, info);
  if (receive::Communicator* const it = receive::known_communicator_of(comm)) {
    sends::let_go_before(comm, -1);  // what waits was put in order by the earlier promises
    it->forget_assertions();
  }
  return code == MPI_SUCCESS ? trees::begin_if_asked(name, comm, info) : code;
}
