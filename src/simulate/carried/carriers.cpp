// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/carried/carriers.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <utility>

namespace imbrex::simulate {

using distributed::Bytes;
using distributed::Ended;
using distributed::Landing;

struct Carriers::End final : distributed::Transfers {
  End(Carriers& its_carriers, const int its_rank, const Protocol its_protocol)
      : carriers(its_carriers), own(its_rank), protocol(its_protocol) {}
  [[nodiscard]] int rank() const noexcept override { return own; }
  void send(const int to, const Bytes head, const Bytes body) override {
    carriers.send(own, to, protocol, head, body);
  }
  void flush() noexcept override {}
  Landing offer(int, const std::span<std::byte> memory, const Ended ended,
                void* const context) override {
    return carriers.offer(own, static_cast<std::int64_t>(memory.size()), ended, context);
  }
  void deliver(const Landing& landing, const Bytes data, const Ended ended,
               void* const context) override {
    carriers.deliver(own, landing, static_cast<std::int64_t>(data.size()), ended, context);
  }
  void expect() override {}
  void expect_no_more() noexcept override {}

  Carriers& carriers;
  const int own;
  const Protocol protocol;
};

Carriers::Carriers(EventQueue& events, Links& links, const int ranks)
    : events_(events), links_(links), ports_(static_cast<std::size_t>(ranks)) {
  for (int rank = 0; rank < ranks; ++rank) {
    for (const Protocol protocol : {data_protocol, wave_protocol, pool_protocol}) {
      ends_.push_back(std::make_unique<End>(*this, rank, protocol));
    }
  }
}

Carriers::~Carriers() = default;

distributed::Transfers& Carriers::end(const int rank, const Protocol protocol) {
  return *ends_[static_cast<std::size_t>(rank) * protocols + protocol];
}

void Carriers::handle(const int rank, const Protocol protocol, const Handler& handler) {
  port(rank).handlers[protocol] = handler;
}

Carriers::Packet& Carriers::take_packet() {
  if (free_.empty()) {
    memory_.emplace_back().carriers = this;
    return memory_.back();
  }
  Packet& packet = *free_.back();
  free_.pop_back();
  return packet;
}

// When the processor of `rank` has sent, or handled, one message more.
Time Carriers::take_overhead(const int rank) {
  const Time overhead = time_of(links_.parameters().overhead_ns);
  Port& here = port(rank);
  here.busy_until = std::max(here.busy_until, events_.now()) + overhead;
  overhead_sum_ += overhead;
  return here.busy_until;
}

// ---- the sender ------------------------------------------------------------------------------

void Carriers::send(const int from, const int to, const Protocol protocol, const Bytes head,
                    const Bytes body) {
  Packet& packet = take_packet();
  packet.transfer.from = from;
  packet.transfer.to = to;
  packet.transfer.bytes = static_cast<std::int64_t>(head.size() + body.size());
  packet.protocol = protocol;
  packet.has_arrived = false;
  packet.message.assign(head.begin(), head.end());
  packet.message.insert(packet.message.end(), body.begin(), body.end());
  packet.landing = -1;
  packet.sent = nullptr;
  ++messages_;
  packet.next = nullptr;
  Channel& channel = port(to).channels[from];
  (channel.first == nullptr ? channel.first : channel.last->next) = &packet;
  channel.last = &packet;
  const Time when = take_overhead(from);
  events_.at(when, [](void* const its_packet, std::uint64_t) {
    auto& here = *static_cast<Packet*>(its_packet);
    here.carriers->start(here);
  }, &packet, 0);
}

Landing Carriers::offer(const int rank, const std::int64_t bytes, const Ended ended,
                        void* const context) {
  Port& here = port(rank);
  here.landings[++here.last_landing] = {ended, context};
  return {here.last_landing, rank, static_cast<std::uint64_t>(bytes)};
}

// As MPI_Isend to a receive that is posted: an eager one, or one after a handshake.
void Carriers::deliver(const int from, const Landing& landing, const std::int64_t bytes,
                       const Ended ended, void* const context) {
  Packet& packet = take_packet();
  packet.transfer.from = from;
  packet.transfer.to = landing.rank;
  packet.transfer.bytes = bytes;
  packet.protocol = data_protocol;
  packet.has_arrived = false;
  packet.message.clear();
  packet.landing = landing.tag;
  packet.sent = ended;
  packet.context = context;
  ++messages_;
  const NetworkParameters& network = links_.parameters();
  Time when = take_overhead(from);
  if (bytes <= network.eager_bytes) {
    when += time_of(static_cast<double>(bytes) * network.copy_ns_per_byte);
    port(from).busy_until = when;
  } else {
    when += links_.latency(from, landing.rank) + links_.latency(landing.rank, from);
  }
  events_.at(when, [](void* const its_packet, std::uint64_t) {
    auto& here = *static_cast<Packet*>(its_packet);
    here.carriers->start(here);
  }, &packet, 0);
}

void Carriers::start(Packet& packet) {
  static_assert(offsetof(Packet, transfer) == 0);
  packet.transfer.arrived = [](Transfer& transfer) {
    auto& here = reinterpret_cast<Packet&>(transfer);
    here.carriers->arrived(here);
  };
  const bool is_eager = packet.transfer.bytes <= links_.parameters().eager_bytes;
  if (packet.sent != nullptr && is_eager) notify_sender(packet);
  links_.start(packet.transfer);
}

// Its data may be overwritten.
void Carriers::notify_sender(Packet& packet) {
  const Ended sent = std::exchange(packet.sent, nullptr);
  sent(packet.context, nullptr);
}

// ---- the receiver ----------------------------------------------------------------------------

void Carriers::arrived(Packet& packet) {
  const int rank = packet.transfer.to;
  if (packet.landing >= 0) return into_inbox(rank, packet);
  packet.has_arrived = true;
  auto& channels = port(rank).channels;
  const auto found = channels.find(packet.transfer.from);
  Packet* first = found->second.first;
  Packet* end = first;
  while (end != nullptr && end->has_arrived) end = end->next;
  if (end == nullptr) {
    channels.erase(found);
  } else {
    found->second.first = end;
  }
  while (first != end) into_inbox(rank, *std::exchange(first, first->next));
}

void Carriers::into_inbox(const int rank, Packet& packet) {
  port(rank).inbox.push_back(&packet);
  const Time when =
      idle_.next_poll == nullptr ? events_.now() : idle_.next_poll(idle_.object, rank);
  if (when <= events_.now()) {
    poll(rank);
  } else if (when != time_most) {
    poll_after_nap(rank, when);
  }
}

void Carriers::poll_after_nap(const int rank, const Time when) {
  if (std::exchange(port(rank).naps, true)) return;
  events_.at(when, [](void* const carriers, const std::uint64_t which) {
    auto& here = *static_cast<Carriers*>(carriers);
    here.ports_[which].naps = false;
    here.poll(static_cast<int>(which));
  }, this, static_cast<std::uint64_t>(rank));
}

void Carriers::poll(const int rank) {
  Port& here = port(rank);
  if (here.handles || here.inbox.empty()) return;
  here.handles = true;
  events_.at(take_overhead(rank), [](void* const carriers, const std::uint64_t which) {
    static_cast<Carriers*>(carriers)->handle_all(static_cast<int>(which));
  }, this, static_cast<std::uint64_t>(rank));
}

// One message, and the next one after its overhead.
void Carriers::handle_all(const int rank) {
  Port& here = port(rank);
  here.handles = false;
  handle_one(rank);
  poll(rank);
}

void Carriers::handle_one(const int rank) {
  Port& here = port(rank);
  Packet& packet = *here.inbox.front();
  here.inbox.pop_front();
  ++messages_handled_;
  if (packet.landing < 0) {
    const Handler handler = here.handlers[packet.protocol];
    handler.receive(handler.object, packet.transfer.from, packet.message);
  } else {
    const Landed landed = here.landings.extract(packet.landing).mapped();
    landed.ended(landed.context, nullptr);
    if (packet.sent != nullptr) notify_sender(packet);
  }
  free_.push_back(&packet);
}

}  // namespace imbrex::simulate
