// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/active/post/inbox.hpp"

#include <algorithm>
#include <string>

#include "mpi/abi/completion_calls.hpp"
#include "mpi/engine/mpi_errors.hpp"

namespace imbrex::mpi::active {

namespace {

constexpr std::size_t slots = 16;  // number of posted receives
constexpr int packets_for_each_poll = 64;

std::string describe_receive(const int from) {
  return "the receive of a packet" + (from < 0 ? "" : " from rank " + std::to_string(from));
}

}  // namespace

void Inbox::open() {
  slots_ = std::make_unique<Slot[]>(slots);
  for (std::size_t i = 0; i < slots; ++i) {
    Slot& slot = slots_[i];
    wire_.require("MPI_Recv_init",
                  PMPI_Recv_init(slot.bytes, packet_bytes, MPI_BYTE, MPI_ANY_SOURCE,
                                 Wire::tag_of_packets, wire_.comm, &slot.request));
    wire_.require("MPI_Start", PMPI_Start(&slot.request));
  }
}

void Inbox::close() noexcept {
  for (std::size_t i = 0; i < slots; ++i) {
    PMPI_Cancel(&slots_[i].request);
    PMPI_Wait(&slots_[i].request, MPI_STATUS_IGNORE);
    PMPI_Request_free(&slots_[i].request);
  }
}

int Inbox::receive() noexcept {
  int count = 0;
  for (int i = 0; i < packets_for_each_poll; ++i) {
    Slot& slot = slots_[oldest_];
    int done = 0;
    MPI_Status status;
    status.MPI_SOURCE = MPI_ANY_SOURCE;
    const Outcome outcome = completion::Test(&slot.request, &done, &status);
    if (outcome.code != MPI_SUCCESS) wire_.fail(describe_receive(status.MPI_SOURCE), outcome.code);
    if (done == 0) break;
    int bytes = 0;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    count += handle(status.MPI_SOURCE, {slot.bytes, static_cast<std::size_t>(bytes)});
    wire_.require("MPI_Start", PMPI_Start(&slot.request));
    oldest_ = (oldest_ + 1) % slots;
  }
  return count;
}

// The number of handled messages and events: at least 1.
int Inbox::handle(const int from, const std::span<const std::byte> packet) noexcept {
  const PacketHead head = head_of(packet);
  if (credits_.add(from, head.credit)) outbox_.relist(from);
  if (!dispatch(from, packet)) {
    print("active messages: rank " + std::to_string(from) + " has sent a message that is not a "
          "packet of imbrex: all ranks must run the same version of imbrex");
    abort_all(MPI_COMM_WORLD, 1);
  }
  ++packets_handled_;
  if (head.messages != 0) credits_.owe(from);
  return std::max(1, static_cast<int>(head.messages));
}

// False if the bytes are no packet.
bool Inbox::dispatch(const int from, const std::span<const std::byte> packet) noexcept {
  return for_each_message(packet,
                          [&](const std::uint32_t id, const std::span<const std::byte> message) {
                            handlers_.dispatch(id, from, message);
                          });
}

int Inbox::take_own() noexcept {
  return outbox_.take_own([this](const std::span<const std::byte> packet) {
    (void)dispatch(wire_.rank, packet);
    return static_cast<int>(head_of(packet).messages);
  });
}

}  // namespace imbrex::mpi::active
