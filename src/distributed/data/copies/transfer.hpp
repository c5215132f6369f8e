// SPDX-License-Identifier: BSD-3-Clause
// The objects that the broadcast protocol gives to transfers, and the texts in its messages.
#pragma once

#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "distributed/data/copies/protocol.hpp"

namespace imbrex::distributed {

// A segment that leaves; the thread that ends it owns it.
struct Broadcasts::Protocol::Transfer {
  Protocol& protocol;
  Child& child;
  const Landing landing;
  const Bytes data;
  const bool is_nothing;  // ends a landing that is not used
  static void ended(void* context, std::exception_ptr error) noexcept;
};

// A segment that arrives.
struct Broadcasts::Protocol::Landed {
  Protocol& protocol;
  Arrival& arrival;
  const std::size_t segment;
  static void ended(void* context, std::exception_ptr error) noexcept;
};

template <class Change>
void Broadcasts::Protocol::change(Message& message, const Change change) {
  DataHead head;
  std::memcpy(&head, message.head.data(), sizeof head);
  change(head);
  std::memcpy(message.head.data(), &head, sizeof head);
}

inline void append(std::vector<std::byte>& bytes, const Bytes more) {
  if (more.empty()) return;
  const std::size_t before = bytes.size();
  bytes.resize(before + more.size());
  std::memcpy(bytes.data() + before, more.data(), more.size());
}

// The part of a text that fits a message.
[[nodiscard]] inline Bytes text_bytes(const std::string& text) noexcept {
  constexpr std::size_t most = 2048;
  return std::as_bytes(std::span(text.data(), std::min(text.size(), most)));
}
[[nodiscard]] inline std::string text_from(const Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace imbrex::distributed
