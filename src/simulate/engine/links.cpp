// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/engine/links.hpp"

#include <algorithm>
#include <cmath>

namespace imbrex::simulate {

Links::Links(EventQueue& events, const NetworkParameters& parameters, const int ranks,
             const int per_node, const std::uint64_t seed)
    : events_(events),
      parameters_(parameters),
      per_node_(per_node),
      nics_(static_cast<std::size_t>((ranks + per_node - 1) / per_node)),
      traffic_(static_cast<std::size_t>(ranks)),
      random_(seed) {
  for (Nic& nic : nics_) nic.links = this;
}

// The exponential distribution by its inverse: that of the standard library may differ between
// libraries, and one input shall give one output everywhere.
double Links::with_noise(const double latency_ns) {
  if (parameters_.noise == 0) return latency_ns;
  const double uniform = static_cast<double>(random_() >> 11) * 0x1.0p-53;
  return latency_ns * (1 - parameters_.noise * std::log1p(-uniform));
}

Time Links::latency(const int from, const int to) {
  const bool near = node_of(from) == node_of(to);
  return time_of(with_noise(near ? parameters_.node_latency_ns : parameters_.latency_ns));
}

void Links::start(Transfer& transfer) {
  transfer.unsent = transfer.bytes;
  transfer.in_flight = 0;
  transfer.arrived_bytes = 0;
  traffic_[static_cast<std::size_t>(transfer.from)].asked +=
      static_cast<std::uint64_t>(transfer.bytes);
  transfer.begun = transfer.waits = false;
  if (node_of(transfer.from) == node_of(transfer.to)) {
    bytes_sent_ += transfer.bytes;
    transfer.unsent = 0;
    transfer.in_flight = 1;
    transfer.chunk = transfer.bytes;
    const double copy_ns = static_cast<double>(transfer.bytes) * parameters_.node_ns_per_byte;
    events_.at(events_.now() + latency(transfer.from, transfer.to) + time_of(copy_ns),
               [](void* const links, const std::uint64_t which) {
                 static_cast<Links*>(links)->chunk_arrived(*reinterpret_cast<Transfer*>(which));
               },
               this, reinterpret_cast<std::uintptr_t>(&transfer));
    return;
  }
  transfer.chunk = std::max(chunk_least, (transfer.bytes + chunks_most - 1) / chunks_most);
  Nic& nic = nic_of(transfer.from);
  nic.ready.push_back(&transfer);
  send_next(nic);
}

// The next chunk leaves. The receiving NIC is reserved now: with one latency for all, chunks begin
// to arrive in the order in which they begin to leave.
void Links::send_next(Nic& nic) {
  if (nic.sends || nic.ready.empty()) return;
  Transfer& transfer = *nic.ready.front();
  const std::int64_t bytes = std::min(transfer.unsent, transfer.chunk);
  double busy_ns = static_cast<double>(bytes) * parameters_.ns_per_byte;
  if (!transfer.begun) busy_ns += parameters_.gap_ns;
  transfer.begun = true;
  transfer.unsent -= bytes;
  bytes_sent_ += bytes;
  ++transfer.in_flight;
  nic.sends = true;
  const Time busy = time_of(busy_ns);
  Nic& other = nic_of(transfer.to);
  const Time first = events_.now() + latency(transfer.from, transfer.to);
  other.receives_until = std::max(first, other.receives_until) + busy;
  events_.at(events_.now() + busy, [](void* const its_nic, std::uint64_t) {
    Nic& sender = *static_cast<Nic*>(its_nic);
    sender.links->chunk_sent(sender);
  }, &nic, 0);
  events_.at(other.receives_until,
             [](void* const links, const std::uint64_t which) {
               static_cast<Links*>(links)->chunk_arrived(*reinterpret_cast<Transfer*>(which));
             },
             this, reinterpret_cast<std::uintptr_t>(&transfer));
}

void Links::chunk_sent(Nic& nic) {
  Transfer& transfer = *nic.ready.front();
  nic.ready.pop_front();
  nic.sends = false;
  if (transfer.unsent > 0) {
    transfer.waits = transfer.in_flight >= chunks_in_flight;
    if (!transfer.waits) nic.ready.push_back(&transfer);
  } else if (transfer.left != nullptr) {
    transfer.left(transfer);  // may start another one
  }
  send_next(nic);
}

void Links::chunk_arrived(Transfer& transfer) {
  --transfer.in_flight;
  const std::int64_t bytes = std::min(transfer.chunk, transfer.bytes - transfer.arrived_bytes);
  transfer.arrived_bytes += bytes;
  traffic_[static_cast<std::size_t>(transfer.from)].arrived += static_cast<std::uint64_t>(bytes);
  if (transfer.waits) {
    transfer.waits = false;
    Nic& nic = nic_of(transfer.from);
    nic.ready.push_back(&transfer);
    send_next(nic);
  } else if (transfer.unsent == 0 && transfer.in_flight == 0) {
    bytes_arrived_ += transfer.bytes;
    const bool has_nic = node_of(transfer.from) != node_of(transfer.to);
    if (!has_nic && transfer.left != nullptr) transfer.left(transfer);
    transfer.arrived(transfer);  // may end its life
  }
}

}  // namespace imbrex::simulate
