// SPDX-License-Identifier: BSD-3-Clause
// The format of messages in a packet, which is the unit on the wire: first the packet's head, then
// for each message its head and its bytes. The bytes begin at an address that is aligned for any
// fundamental type, and a head stands directly before them, so that a message of 8 bytes takes 16.
// Knows no MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace imbrex::mpi::active {

// Below the eager limit of every MPI: 4 KiB with its own head.
inline constexpr std::size_t packet_bytes = 4032;

struct PacketHead {
  std::uint32_t credit;  // number of the other side's packets that were handled since the last such
                         // note
  std::uint32_t messages;
};
struct MessageHead {
  std::uint32_t bytes;
  std::uint32_t id;
};

inline constexpr std::size_t message_alignment = 16;
static_assert(alignof(std::max_align_t) <= message_alignment);

// Thread safety: one thread at a time. Invariant: a head stands at `used_`, rounded up to 8 past a
// multiple of 16.
class Packet {
 public:
  void clear() noexcept {
    used_ = sizeof(PacketHead);
    messages_ = 0;
  }
  [[nodiscard]] bool has_room(const std::size_t bytes) const noexcept {
    return place_after(used_) + sizeof(MessageHead) + bytes <= packet_bytes;
  }
  // REQUIRES: has_room(head.size() + body.size()).
  void append(const std::uint32_t id, const std::span<const std::byte> head,
              const std::span<const std::byte> body) noexcept {
    const std::size_t place = place_after(used_);
    const MessageHead mine{static_cast<std::uint32_t>(head.size() + body.size()), id};
    std::memcpy(bytes_ + place, &mine, sizeof mine);
    std::byte* const data = bytes_ + place + sizeof mine;
    if (!head.empty()) std::memcpy(data, head.data(), head.size());
    if (!body.empty()) std::memcpy(data + head.size(), body.data(), body.size());
    used_ = place + sizeof mine + mine.bytes;
    ++messages_;
  }
  // The packet as it is sent, with its head.
  [[nodiscard]] std::span<const std::byte> seal(const std::uint32_t credit) noexcept {
    const PacketHead head{credit, messages_};
    std::memcpy(bytes_, &head, sizeof head);
    return {bytes_, used_};
  }
  [[nodiscard]] std::uint32_t messages() const noexcept { return messages_; }

  Packet* next = nullptr;  // for its owner

  // Where the next head may stand after `used` bytes.
  [[nodiscard]] static constexpr std::size_t place_after(const std::size_t used) noexcept {
    const std::size_t data = used + sizeof(MessageHead) + message_alignment - 1;
    return data / message_alignment * message_alignment - sizeof(MessageHead);
  }

 private:
  alignas(64) std::byte bytes_[packet_bytes];
  std::size_t used_ = sizeof(PacketHead);
  std::uint32_t messages_ = 0;
};

[[nodiscard]] inline PacketHead head_of(const std::span<const std::byte> packet) noexcept {
  PacketHead head{};
  if (packet.size() >= sizeof head) std::memcpy(&head, packet.data(), sizeof head);
  return head;
}

// Calls visit(id, bytes) for each message of an arrived packet, in order. False if its bytes are no
// packet. REQUIRES: `packet` is aligned to 16.
template <class F>
[[nodiscard]] bool for_each_message(const std::span<const std::byte> packet, F visit) {
  if (packet.size() < sizeof(PacketHead)) return false;
  std::size_t used = sizeof(PacketHead);
  for (std::uint32_t i = head_of(packet).messages; i > 0; --i) {
    const std::size_t place = Packet::place_after(used);
    MessageHead head{};
    if (place + sizeof head > packet.size()) return false;
    std::memcpy(&head, packet.data() + place, sizeof head);
    if (head.bytes > packet.size() - place - sizeof head) return false;
    visit(head.id, packet.subspan(place + sizeof head, head.bytes));
    used = place + sizeof head + head.bytes;
  }
  return used == packet.size();
}

}  // namespace imbrex::mpi::active
