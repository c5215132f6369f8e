// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/data/copies/departures.hpp"

#include <cstring>

#include "distributed/data/copies/protocol.hpp"
#include "imbrex/detail/observation.hpp"

namespace imbrex::distributed {

std::uint64_t trace_key(const DatumName& datum) noexcept {
  std::uint64_t hash = (datum.space ^ 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
  hash = (hash ^ hash >> 32 ^ datum.datum) * 0x9e3779b97f4a7c15u;  // Fibonacci hashing
  return hash >> 24;
}

void Broadcasts::Departures::begin(const std::uint64_t space) {
  const std::lock_guard guard(mutex_);
  spaces_[space] = {};
}

void Broadcasts::Departures::end(const std::uint64_t space) noexcept {
  const std::lock_guard guard(mutex_);
  spaces_.erase(space);
}

Broadcasts::SpaceCopies Broadcasts::Departures::copies(const std::uint64_t space) const noexcept {
  const std::lock_guard guard(mutex_);
  const auto found = spaces_.find(space);
  return found == spaces_.end() ? SpaceCopies{} : found->second;
}

void Broadcasts::Departures::send(const int to, const Bytes head, const Bytes body) {
  if (DataHead copy; head.size() >= sizeof copy) {  // a list may follow
    std::memcpy(&copy, head.data(), sizeof copy);
    // Recorded before the send: the reader may have all of it, and finish() return, before send()
    // does.
    if (copy.message == DataMessage::copy) note(to, copy);
  }
  under_.send(to, head, body);
}

void Broadcasts::Departures::note(const int to, const DataHead& copy) noexcept {
  if (const std::lock_guard guard(mutex_); true) {
    const auto found = spaces_.find(copy.datum.space);
    if (found != spaces_.end()) {
      ++(copy.root == rank() ? found->second.as_root : found->second.as_relay);
      found->second.bytes += copy.bytes;
    }
  }
  if (!detail::tracing()) return;
  detail::trace_copy({.sent = true, .peer = to, .root = copy.root, .ticket = copy.ticket,
                      .bytes = copy.bytes, .datum = trace_key(copy.datum)});
}

}  // namespace imbrex::distributed
