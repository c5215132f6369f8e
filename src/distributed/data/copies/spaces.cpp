// SPDX-License-Identifier: BSD-3-Clause
// Spaces that open and close on this rank, and messages of other ranks before and after.
#include <fmt/format.h>

#include <cstring>

#include "distributed/carrier/errors.hpp"
#include "distributed/data/copies/protocol.hpp"
#include "distributed/data/copies/transfer.hpp"
#include "imbrex/error.hpp"

namespace imbrex::distributed {

namespace {
[[nodiscard]] BroadcastOptions valid(BroadcastOptions options) noexcept {
  options.window = std::clamp(options.window, 1U, Arrival::landings_ahead / 2);
  options.segment = std::clamp<std::size_t>(options.segment, 1, transfer_bytes_max);
  return options;
}
}  // namespace

Broadcasts::Protocol::Protocol(Transfers& transfers, const BroadcastOptions& options)
    : transfers_(transfers), options_(valid(options)) {}

Broadcasts::Protocol::~Protocol() {
  const std::lock_guard guard(mutex_);
  for (const auto& [name, arrival] : arrivals_) {
    if (arrival->buffer != nullptr) arrival->buffer->release();
  }
}

// ---- open and close --------------------------------------------------------------------------

void Broadcasts::Protocol::open_space(const std::uint64_t space, const std::string_view name) {
  bool has_kept = false;
  if (const std::lock_guard guard(mutex_); true) {
    Space& opened = spaces_[space];
    if (opened.state != Space::State::unknown) {
      throw Error(fmt::format("imbrex: space {:#x} of data, \"{}\", is opened twice on rank {}",
                              space, name, transfers_.rank()));
    }
    opened.name = name;
    has_kept = !opened.kept.empty();
    opened.state = has_kept ? Space::State::opening : Space::State::open;
  }
  transfers_.expect();
  if (!has_kept) return;
  Message opened = message(DataMessage::opened, transfers_.rank(), {{space, 0}, -1, 0});
  send(opened);
  transfers_.flush();
}

// Messages that arrive meanwhile are kept behind these, so their order stays.
void Broadcasts::Protocol::on_opened(const std::uint64_t space) {
  std::vector<std::pair<int, std::vector<std::byte>>> kept;
  if (const std::lock_guard guard(mutex_); true) {
    Space& opened = spaces_[space];
    kept.swap(opened.kept);
    if (opened.state == Space::State::opening) opened.state = Space::State::open;
  }
  for (const auto& [from, message] : kept) receive(from, message);
}

std::exception_ptr Broadcasts::Protocol::close_space(const std::uint64_t space) noexcept {
  std::exception_ptr error;
  bool has_arrivals = false;
  if (const std::lock_guard guard(mutex_); true) {
    Space& closed = spaces_[space];
    if (closed.state != Space::State::open && closed.state != Space::State::opening) return nullptr;
    std::string text;
    describe_locked(space, 16, text);
    if (!text.empty() && closed.given_up.empty()) {
      text.pop_back();
      error = std::make_exception_ptr(
          Error(fmt::format("imbrex: space \"{}\" of data ends on rank {} with copies in flight:\n"
                            "{}", closed.name, transfers_.rank(), text)));
    }
    has_arrivals = closed.state == Space::State::opening;
    closed.state = Space::State::closed;
    for (const auto& [name, arrival] : arrivals_) {
      if (name.datum.space != space) continue;
      has_arrivals = true;
      arrival->has_reader = false;
      arrival->orphan = true;
    }
  }
  if (has_arrivals) {
    Message closed = message(DataMessage::closed, transfers_.rank(), {{space, 0}, -1, 0});
    send(closed);
    transfers_.flush();
  }
  transfers_.expect_no_more();
  return error;
}

void Broadcasts::Protocol::on_closed(const std::uint64_t space) {
  Work work;
  if (const std::lock_guard guard(mutex_); true) {
    for (const auto& [name, arrival] : arrivals_) {
      if (name.datum.space != space) continue;
      hold(*arrival, work);
      if (arrival->stage == Arrival::Stage::postponed) {
        fail(*arrival, fmt::format("the space of {} was closed on rank {}", text_of(name.datum),
                                   transfers_.rank()), work);
      }
    }
  }
  run(work);
}

void Broadcasts::Protocol::give_up_space(const std::uint64_t space, const std::string_view why) {
  if (const std::lock_guard guard(mutex_); true) spaces_[space].given_up = why;
  Message given_up = message(DataMessage::given_up, transfers_.rank(), {{space, 0}, -1, 0});
  send(given_up);
  transfers_.flush();
}

// Also called for readers that are inserted later.
void Broadcasts::Protocol::on_given_up(const std::uint64_t space) {
  Work work;
  if (const std::lock_guard guard(mutex_); true) {
    for (const auto& [name, arrival] : arrivals_) {
      if (name.datum.space != space || name.datum.datum == text_datum) continue;
      const bool is_awaited = arrival->stage == Arrival::Stage::awaited && arrival->has_reader;
      if (!is_awaited && arrival->stage != Arrival::Stage::postponed) continue;
      hold(*arrival, work);
      fail(*arrival, spaces_[space].given_up, work);
    }
  }
  run(work);
}

void Broadcasts::Protocol::leave_space(const std::uint64_t space, const std::span<const int> ranks,
                                       const std::string_view why) {
  for (const int rank : ranks) {
    Message left = message(DataMessage::left, rank, {{space, 0}, -1, 0});
    append(left.head, text_bytes(std::string(why)));
    send(left);
  }
  transfers_.flush();
}

void Broadcasts::Protocol::on_left(const std::uint64_t space, const std::string& why) {
  if (const std::lock_guard guard(mutex_); true) {
    Space& given_up = spaces_[space];
    if (given_up.state == Space::State::closed || !given_up.given_up.empty()) return;
    given_up.given_up = why;
  }
  on_given_up(space);
}

void Broadcasts::Protocol::set_nodes(const std::uint64_t space,
                                     const std::vector<int>& node_of_rank) {
  Nodes nodes(node_of_rank);
  const std::lock_guard guard(mutex_);
  spaces_[space].nodes = std::move(nodes);
}

Broadcasts::Counters Broadcasts::Protocol::counters() const noexcept {
  const std::lock_guard guard(mutex_);
  return counters_;
}

std::size_t Broadcasts::Protocol::under_way(const std::uint64_t space) const noexcept {
  const std::lock_guard guard(mutex_);
  const auto sends = std::ranges::count_if(
      roots_, [space](const Passing* const one) { return one->datum.space == space; });
  const auto copies = std::ranges::count_if(
      arrivals_, [space](const auto& one) { return one.first.datum.space == space; });
  return static_cast<std::size_t>(sends + copies);
}

// ---- messages --------------------------------------------------------------------------------

// Whether the message was kept for a space that is not open yet.
bool Broadcasts::Protocol::keeps(const int from, const DataHead& head, const Bytes message) {
  if (head.message != DataMessage::copy && head.message != DataMessage::failed &&
      head.message != DataMessage::left) {
    return false;
  }
  const std::lock_guard guard(mutex_);
  Space& space = spaces_[head.datum.space];
  if (space.state != Space::State::unknown && space.state != Space::State::opening) return false;
  space.kept.emplace_back(from, std::vector(message.begin(), message.end()));
  return true;
}

void Broadcasts::Protocol::receive(const int from, const Bytes message) noexcept {
  try {
    DataHead head;
    std::memcpy(&head, message.data(), sizeof head);
    if (!keeps(from, head, message)) handle(from, head, message.subspan(sizeof head));
  } catch (...) {  // mostly out of memory
    report_at_end(std::current_exception());
  }
}

namespace {
template <class T>
[[nodiscard]] std::vector<T> read(const Bytes bytes, const std::size_t count) {
  std::vector<T> all(count);
  if (count != 0) std::memcpy(all.data(), bytes.data(), count * sizeof(T));
  return all;
}
}  // namespace

void Broadcasts::Protocol::handle(const int from, const DataHead& head, const Bytes rest) {
  const auto child = [&]() -> Child& { return *reinterpret_cast<Child*>(head.token); };
  switch (head.message) {
    case DataMessage::copy:
      return on_copy(from, head, read<Stop>(rest, head.count),
                     rest.subspan(head.count * sizeof(Stop)));
    case DataMessage::land: return on_land(child(), read<Landing>(rest, head.count));
    case DataMessage::back: return on_back(child());
    case DataMessage::stop: return on_stop(child(), head, text_from(rest));
    case DataMessage::failed: return on_failed(from, head, text_from(rest));
    case DataMessage::take: return on_take({head.datum, head.root, head.ticket});
    case DataMessage::opened: return on_opened(head.datum.space);
    case DataMessage::closed: return on_closed(head.datum.space);
    case DataMessage::given_up: return on_given_up(head.datum.space);
    case DataMessage::left: return on_left(head.datum.space, text_from(rest));
  }
}

void Broadcasts::Protocol::answer_to(Message& message, const std::uint64_t token,
                                     const std::span<const Landing> landings) {
  change(message, [&](DataHead& head) {
    head.token = token;
    head.count = static_cast<std::uint16_t>(landings.size());
  });
  append(message.head, std::as_bytes(landings));
}

void Broadcasts::Protocol::answer_to(Message& message, const std::uint64_t token,
                                     const std::string& text) {
  change(message, [token](DataHead& head) { head.token = token; });
  append(message.head, text_bytes(text));
}

}  // namespace imbrex::distributed
