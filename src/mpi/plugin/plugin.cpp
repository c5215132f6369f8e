// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/plugin/plugin.hpp"

#include <mpi.h>

#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <utility>

#include "base/guarded.hpp"
#include "mpi/engine/active.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/errors.hpp"
#include "mpi/matching/communicators.hpp"
#include "mpi/matching/request_table.hpp"
#include "mpi/watch/messages.hpp"
#include "mpi/watch/private_world.hpp"

namespace imbrex::mpi::plugin {

namespace {

// The communicator. Other parts of imbrex take messages from it by their tags, so MPI matches all.
MPI_Comm comm_for(const char* call) {
  if (!is_active()) {
    throw Error(std::string("imbrex: plugin::") + call +
                " called outside MPI_Init and MPI_Finalize: call MPI_Init first");
  }
  const MPI_Comm comm = private_world::comm();
  static std::mutex telling;
  static MPI_Comm told IMBREX_GUARDED_BY(telling) = MPI_COMM_NULL;
  const std::lock_guard guard(telling);
  if (told != comm) {
    if (receive::Communicator* const it = receive::communicator_of(comm)) it->stop_matching();
    told = comm;
  }
  return comm;
}

int count_of(const char* call, std::size_t bytes) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw Error(std::string("imbrex: plugin::") + call + " of " + std::to_string(bytes) +
                " bytes: 2147483647 are the most, send it in parts");
  }
  return static_cast<int>(bytes);
}

// Numbers below 0 mean something else with each MPI.
int rank_of(const char* call, int rank) {
  if (rank < 0) {
    throw Error(std::string("imbrex: plugin::") + call + ": there is no rank " +
                std::to_string(rank) + ": ranks are 0 to " +
                std::to_string(private_world::size() - 1));
  }
  return rank;
}
int source_of(const char* call, int from) {
  return from == any ? MPI_ANY_SOURCE : rank_of(call, from);
}

// Other parts of imbrex, and other plug-ins, have messages of their own on the communicator.
int tag_of(const char* call, int tag) {
  if (tag == any) {
    throw Error(std::string("imbrex: plugin::") + call + " of any tag would take the messages of " +
                "others: name one tag of claim_tags()");
  }
  if (!private_world::is_claimed(tag)) {
    throw Error(std::string("imbrex: plugin::") + call + " with tag " + std::to_string(tag) +
                ", which no plug-in has claimed: use those of claim_tags()");
  }
  return tag;
}

Arrival arrival_of(const MPI_Status& status) noexcept {
  int bytes = 0;
  if (PMPI_Get_count(&status, MPI_BYTE, &bytes) != MPI_SUCCESS || bytes < 0) bytes = 0;
  return {status.MPI_SOURCE, status.MPI_TAG, static_cast<std::size_t>(bytes)};
}

void require(const char* call, int code) {
  if (code != MPI_SUCCESS) throw make_error(call, code, detail::describe_current_task());
}

// A request of MPI's own, since nothing is matched here.
struct PlugInOperation : Operation {
  explicit PlugInOperation(const char* name) {
    call = {.name = name, .at_once = true, .throws = true};
    complete = &PlugInOperation::end;
  }

  static void end(Operation& self) noexcept {
    const std::unique_ptr<PlugInOperation> owned(static_cast<PlugInOperation*>(&self));
    if (traces_messages && owned->code == MPI_SUCCESS) {
      trace_completed(owned->given, owned->status, owned->task.id);
    }
    receive::requests().settle(owned->given);
    if (owned->code == MPI_SUCCESS) {
      owned->promise.set(arrival_of(owned->status));
    } else {
      owned->promise.set_exception(std::make_exception_ptr(
          make_error(owned->call.name, owned->code, detail::describe(owned->task))));
    }
  }

  Promise<Arrival> promise{"operation of a plug-in", std::source_location()};
  MPI_Request given = MPI_REQUEST_NULL;  // the handle, as it was before it completed
};

Future<Arrival> take(const char* call, MPI_Request request) {
  auto started = std::make_unique<PlugInOperation>(call);
  Future<Arrival> future = started->promise.future();
  started->request = started->given = request;
  engine().add(*started.release());
  detail::wake_poller();  // the caller goes on: somebody idle must ask MPI
  return future;
}

}  // namespace

bool is_active() noexcept { return mpi::is_active.load(std::memory_order_relaxed); }

int rank() {
  (void)comm_for("rank");
  return private_world::rank();
}

int ranks() {
  (void)comm_for("ranks");
  return private_world::size();
}

int claim_tags(int count) {
  (void)comm_for("claim_tags");
  const int first = private_world::claim_tags(count);
  if (first < 0) {
    throw Error("imbrex: plugin::claim_tags(" + std::to_string(count) +
                "): 1 to 1023 in all are there, and fewer are left: claim fewer");
  }
  return first;
}

void send(int to, int tag, const void* data, std::size_t bytes) {
  constexpr const char* name = "plugin::send";
  const MPI_Comm comm = comm_for("send");
  require(name, MPI_Send(data, count_of("send", bytes), MPI_BYTE, rank_of("send", to),
                         tag_of("send", tag), comm));
}

Arrival receive(int from, int tag, void* buffer, std::size_t bytes_max) {
  const MPI_Comm comm = comm_for("receive");
  MPI_Status status;
  require("plugin::receive", MPI_Recv(buffer, count_of("receive", bytes_max), MPI_BYTE,
                                      source_of("receive", from), tag_of("receive", tag), comm,
                                      &status));
  return arrival_of(status);
}

std::vector<std::byte> receive_whole(int from, int tag, Arrival& arrival) {
  constexpr const char* name = "plugin::receive_whole";
  const MPI_Comm comm = comm_for("receive_whole");
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  require(name, MPI_Mprobe(source_of("receive_whole", from), tag_of("receive_whole", tag), comm,
                           &message, &status));
  arrival = arrival_of(status);
  std::vector<std::byte> data(arrival.bytes);
  require(name, MPI_Mrecv(data.data(), static_cast<int>(data.size()), MPI_BYTE, &message,
                          MPI_STATUS_IGNORE));
  return data;
}

Future<Arrival> start_send(int to, int tag, const void* data, std::size_t bytes) {
  constexpr const char* name = "plugin::start_send";
  const MPI_Comm comm = comm_for("start_send");
  MPI_Request request = MPI_REQUEST_NULL;
  const int count = count_of("start_send", bytes);
  require(name, MPI_Isend(data, count, MPI_BYTE, rank_of("start_send", to),
                          tag_of("start_send", tag), comm, &request));
  return take(name, request);
}

Future<Arrival> start_receive(int from, int tag, void* buffer, std::size_t bytes_max) {
  constexpr const char* name = "plugin::start_receive";
  const MPI_Comm comm = comm_for("start_receive");
  MPI_Request request = MPI_REQUEST_NULL;
  const int count = count_of("start_receive", bytes_max);
  require(name, MPI_Irecv(buffer, count, MPI_BYTE, source_of("start_receive", from),
                          tag_of("start_receive", tag), comm, &request));
  return take(name, request);
}

Future<Arrival> start_barrier() {
  constexpr const char* name = "plugin::start_barrier";
  const MPI_Comm comm = comm_for("start_barrier");
  MPI_Request request = MPI_REQUEST_NULL;
  require(name, MPI_Ibarrier(comm, &request));
  return take(name, request);
}

}  // namespace imbrex::mpi::plugin
