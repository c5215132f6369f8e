// SPDX-License-Identifier: BSD-3-Clause
// Copies that come to this rank: whether there is room for them, where their segments arrive, and
// the callbacks of their readers.
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <new>

#include "distributed/carrier/errors.hpp"
#include "distributed/data/copies/protocol.hpp"
#include "distributed/data/copies/transfer.hpp"
#include "imbrex/error.hpp"

namespace imbrex::distributed {

using Stage = Arrival::Stage;

// ---- readers ---------------------------------------------------------------------------------

void Broadcasts::Protocol::expect(const CopyName& name, const std::size_t bytes,
                                  const Incoming& incoming) {
  bool waits_at_parent = false;
  bool is_given_up = false;
  Arrival* found = nullptr;
  if (const std::lock_guard guard(mutex_); true) {
    const Space& space = spaces_[name.datum.space];
    if (space.state != Space::State::open && space.state != Space::State::opening) {
      throw Error(fmt::format("imbrex: rank {} expects {}, but the space is not open on that rank",
                              transfers_.rank(), text_of(name.datum)));
    }
    Arrival& arrival = this->arrival(name);
    if (arrival.has_reader) {
      throw Error(fmt::format("imbrex: rank {} expects transfer {} of {} from rank {} twice",
                              transfers_.rank(), name.ticket, text_of(name.datum), name.root));
    }
    arrival.has_reader = true;
    arrival.expected = bytes;
    arrival.incoming = incoming;
    set_early(arrival, false);
    waits_at_parent = arrival.stage == Stage::postponed;
    is_given_up = arrival.stage == Stage::awaited && !space.given_up.empty();
    ++arrival.held;
    found = &arrival;
  }
  if (waits_at_parent) {  // a handler requests it: see (1)
    Message take = message(DataMessage::take, transfers_.rank(), name);
    send(take);
    transfers_.flush();
  } else if (is_given_up) {
    Message given_up = message(DataMessage::given_up, transfers_.rank(), name);
    send(given_up);
    transfers_.flush();
  }
  notify_reader(*found);
}

namespace {
// The next action for an arrival.
enum class Next : std::uint8_t { nothing, arrived, passed_on, drop };

[[nodiscard]] Next next_of(const Arrival& arrival) noexcept {
  if (arrival.notifying) return Next::nothing;
  const bool is_over = arrival.stage == Stage::here || arrival.stage == Stage::failed;
  if (is_over && arrival.has_reader && !arrival.notified) return Next::arrived;
  if (!is_over && !(arrival.orphan && arrival.stage == Stage::awaited)) return Next::nothing;
  if (arrival.held != 0 || arrival.passing.open != 0 || arrival.landings != 0) {
    return Next::nothing;
  }
  if (arrival.has_reader) return Next::passed_on;
  return arrival.orphan ? Next::drop : Next::nothing;
}
}  // namespace

// The last call of every thread that holds an arrival.
void Broadcasts::Protocol::notify_reader(Arrival& arrival) noexcept {
  for (bool first = true;; first = false) {
    Next next = Next::nothing;
    Incoming incoming{};
    Buffer* buffer = nullptr;
    std::exception_ptr error;
    std::unique_ptr<Arrival> gone;
    if (const std::lock_guard guard(mutex_); true) {
      if (first) {
        --arrival.held;
      } else {
        arrival.notifying = false;
      }
      next = next_of(arrival);
      incoming = arrival.incoming;
      buffer = arrival.buffer;
      if (next == Next::arrived) {
        arrival.notified = arrival.notifying = true;
        error = arrival.error;
        if (error == nullptr && arrival.passing.bytes != arrival.expected) {
          error = std::make_exception_ptr(Error(fmt::format(
              "imbrex: {} has {} bytes on rank {}, and rank {} expects {}",
              text_of(arrival.name.datum), arrival.passing.bytes, arrival.name.root,
              transfers_.rank(), arrival.expected)));
        }
        if (error == nullptr) buffer->retain();
      } else if (next != Next::nothing) {
        set_early(arrival, false);
        const auto found = arrivals_.find(arrival.name);
        gone = std::move(found->second);
        arrivals_.erase(found);
      }
    }
    if (next == Next::nothing) return;
    if (next == Next::arrived) {
      incoming.arrived(incoming.context, error == nullptr ? buffer : nullptr, error);
      continue;
    }
    if (buffer != nullptr) buffer->release();
    if (next == Next::passed_on) incoming.passed_on(incoming.context);
    return;
  }
}

// ---- room ------------------------------------------------------------------------------------

Arrival& Broadcasts::Protocol::arrival(const CopyName& name) {
  std::unique_ptr<Arrival>& place = arrivals_[name];
  if (place == nullptr) {
    place.reset(new Arrival{name});
    place->passing.arrival = place.get();
    place->passing.datum = name.datum;
    place->passing.root = name.root;
  }
  return *place;
}

void Broadcasts::Protocol::hold(Arrival& arrival, Work& work) {
  ++arrival.held;
  work.held.push_back(&arrival);
}

bool Broadcasts::Protocol::has_room(const int from, const std::size_t bytes) const {
  const auto found = early_from_.find(from);
  const std::size_t payloads = found == early_from_.end() ? 0 : found->second;
  return payloads < options_.early_payloads_max && bytes <= options_.early_bytes_max &&
         early_bytes_ <= options_.early_bytes_max - bytes;
}

// Data that are stored here, or arrive, for no reader yet.
void Broadcasts::Protocol::set_early(Arrival& arrival, const bool early) {
  if (arrival.early == early) return;
  arrival.early = early;
  if (early) {
    ++early_from_[arrival.parent];
    early_bytes_ += arrival.passing.bytes;
    counters_.early_bytes_most = std::max(counters_.early_bytes_most, early_bytes_);
  } else {
    --early_from_[arrival.parent];
    early_bytes_ -= arrival.passing.bytes;
  }
}

// ---- the header ------------------------------------------------------------------------------

void Broadcasts::Protocol::on_copy(const int from, const DataHead& head,
                                   const std::span<const Stop> list, const Bytes data) {
  Work work;
  std::string late;
  if (const std::lock_guard guard(mutex_); true) {
    const CopyName name{head.datum, head.root, head.ticket};
    const Space& space = spaces_[head.datum.space];
    const bool is_closed = space.state == Space::State::closed;
    if (is_closed && space.given_up.empty()) {
      late = fmt::format("{} from rank {} has arrived on rank {} after that rank closed the space",
                         text_of(head.datum), head.root, transfers_.rank());
    }
    const auto found = arrivals_.find(name);
    const bool is_there = found != arrivals_.end() && found->second->stage != Stage::awaited;
    if (is_there && !is_closed && space.given_up.empty()) {
      late = fmt::format("transfer {} of {} from rank {} has arrived on rank {} twice", head.ticket,
                         text_of(head.datum), head.root, transfers_.rank());
    }
    if (is_there || (is_closed && !head.is_inline)) {
      if (head.token != 0) {
        Message stop = message(DataMessage::stop, from, name);
        answer_to(stop, head.token, late);
        work.messages.push_back(std::move(stop));
        if (!is_there) lost_.insert(name);
        late.clear();
      }
    } else {
      Arrival& arrival = this->arrival(name);
      arrival.orphan = is_closed;
      arrival.parent = from;
      arrival.token = head.token;
      Passing& passing = arrival.passing;
      passing.kind = head.kind;
      passing.bytes = head.bytes;
      passing.segment = head.segment;
      passing.segments =
          head.segment == 0 ? 1 : (head.bytes + head.segment - 1) / head.segment;
      if (!arrival.has_reader) ++counters_.early;
      hold(arrival, work);
      take(arrival, head, list, data, work);
    }
  }
  run(work);
  if (!late.empty()) report_at_end(std::make_exception_ptr(Error("imbrex: " + late)));
}

// Takes the data at once if they are in the message, or when there is a reader.
void Broadcasts::Protocol::take(Arrival& arrival, const DataHead& head,
                                const std::span<const Stop> list, const Bytes data, Work& work) {
  Passing& passing = arrival.passing;
  if (head.is_inline) {
    arrival.buffer = Buffer::make(data.size());
    if (!data.empty()) std::memcpy(arrival.buffer->bytes().data(), data.data(), data.size());
    passing.data = arrival.buffer->bytes().data();
    passing.here = passing.segments;
    arrival.stage = Stage::here;
    ++counters_.arrived;
    return add_children(passing, list, work);
  }
  if (!arrival.has_reader) {
    const std::string& given_up = spaces_[head.datum.space].given_up;
    if (!given_up.empty() && head.datum.datum != text_datum) {
      return fail(arrival, given_up, work);
    }
    if (!has_room(arrival.parent, passing.bytes)) {
      arrival.stage = Stage::postponed;
      ++counters_.handed_back;
      return answer(arrival, DataMessage::back, "", work);
    }
    set_early(arrival, true);
  }
  accept(arrival, list, work);
}

void Broadcasts::Protocol::accept(Arrival& arrival, const std::span<const Stop> list, Work& work) {
  Passing& passing = arrival.passing;
  try {
    arrival.buffer = Buffer::make(passing.bytes);
  } catch (const std::bad_alloc&) {
    return fail(arrival, fmt::format("that rank has no memory for the {} bytes", passing.bytes),
                work);
  }
  passing.data = arrival.buffer->bytes().data();
  arrival.stage = Stage::landing;
  work.offers.push_back(&arrival);
  hold(arrival, work);
  add_children(passing, list, work);
}

void Broadcasts::Protocol::on_take(const CopyName& name) {
  Work work;
  if (const std::lock_guard guard(mutex_); true) {
    const auto found = arrivals_.find(name);
    if (found == arrivals_.end() || found->second->stage != Stage::postponed) return;
    accept(*found->second, {}, work);
    hold(*found->second, work);
  }
  run(work);
}

// ---- segments --------------------------------------------------------------------------------

// Landings go to the parent ahead of the segments, as many as it may use, so that it need not wait
// for them.
void Broadcasts::Protocol::offer(Arrival& arrival) {
  Message land = message(DataMessage::land, arrival.parent, arrival.name);
  std::size_t first = 0;
  std::size_t last = 0;
  std::span<std::byte> memory;
  if (const std::lock_guard guard(mutex_); true) {
    if (arrival.stage != Stage::landing) return;
    first = arrival.offered;
    last = std::min(arrival.passing.segments, arrival.passing.here + Arrival::landings_ahead);
    arrival.offered = last;
    arrival.landings += last - first;
    memory = arrival.buffer->bytes();
  }
  std::vector<Landing> landings;
  std::string why;
  for (std::size_t at = first; at < last; ++at) {
    const Passing& passing = arrival.passing;
    auto landed = std::unique_ptr<Landed>(new Landed{*this, arrival, at});
    try {
      const Bytes part = passing.part(at);
      landings.push_back(transfers_.offer(arrival.parent,
                                          memory.subspan(at * passing.segment, part.size()),
                                          &Landed::ended, landed.get()));
      (void)landed.release();
    } catch (...) {
      why = what_of(std::current_exception());
      break;
    }
  }
  answer_to(land, arrival.token, landings);
  if (!landings.empty()) send(land);
  if (first + landings.size() == last) return;
  Work work;
  if (const std::lock_guard guard(mutex_); true) {
    arrival.landings -= last - first - landings.size();
    fail(arrival, why, work);
  }
  run(work);
}

void Broadcasts::Protocol::Landed::ended(void* const context,
                                         const std::exception_ptr error) noexcept {
  const std::unique_ptr<Landed> self(static_cast<Landed*>(context));
  self->protocol.landed(*self, error);
}

void Broadcasts::Protocol::landed(const Landed& landed, const std::exception_ptr& error) noexcept {
  Work work;
  if (const std::lock_guard guard(mutex_); true) {
    Arrival& arrival = landed.arrival;
    Passing& passing = arrival.passing;
    --arrival.landings;
    hold(arrival, work);
    if (arrival.stage == Stage::landing && error != nullptr) {
      fail(arrival, what_of(error), work);
    } else if (arrival.stage == Stage::landing) {
      arrival.ahead |= 1U << (landed.segment - passing.here);
      const int more = std::countr_one(arrival.ahead);
      passing.here += static_cast<std::size_t>(more);
      arrival.ahead = more == 32 ? 0 : arrival.ahead >> more;
      if (passing.here == passing.segments) {
        arrival.stage = Stage::here;
        ++counters_.arrived;
      } else if (arrival.offered < passing.segments &&
                 arrival.offered - passing.here <= Arrival::landings_ahead / 2) {
        work.offers.push_back(&arrival);
        hold(arrival, work);
      }
      pump(passing, work);
    }
  }
  run(work);
}

// ---- failures --------------------------------------------------------------------------------

void Broadcasts::Protocol::fail(Arrival& arrival, const std::string& why, Work& work) {
  if (arrival.stage == Stage::here || arrival.stage == Stage::failed) return;
  arrival.stage = Stage::failed;
  ++counters_.failed;
  arrival.error = std::make_exception_ptr(
      Error(fmt::format("imbrex: {} from rank {} has not arrived on rank {}: {}",
                        text_of(arrival.name.datum), arrival.name.root, transfers_.rank(), why)));
  arrival.passing.why = why.empty() ? "unknown" : why;
  if (arrival.token != 0 && !arrival.stopped) answer(arrival, DataMessage::stop, why, work);
  auto& children = arrival.passing.children;
  for (std::size_t i = 0; i < children.size(); ++i) fail(*children[i], why, work);
  hold(arrival, work);
}

void Broadcasts::Protocol::answer(Arrival& arrival, const DataMessage what,
                                  const std::string& text, Work& work) {
  Message made = message(what, arrival.parent, arrival.name);
  answer_to(made, arrival.token, text);
  if (what == DataMessage::stop) {
    arrival.stopped = true;
    lost_.insert(arrival.name);
    // The list was taken when there was memory, and is told of the failure from here.
    change(made, [&](DataHead& head) { head.took_list = arrival.buffer != nullptr; });
  }
  work.messages.push_back(std::move(made));
}

// The parent does not get the data, or cannot send them.
void Broadcasts::Protocol::on_failed(const int from, const DataHead& head,
                                     const std::string& why) {
  Work work;
  if (const std::lock_guard guard(mutex_); true) {
    const CopyName name{head.datum, head.root, head.ticket};
    if (lost_.contains(name)) return;  // it has failed here, too, and the parent gets a `stop`
    const auto found = arrivals_.find(name);
    const bool is_there = found != arrivals_.end() && found->second->stage != Stage::awaited;
    if (!is_there && head.token != 0) {
      // The header came before, so the copy has arrived and is gone.
      Message stop = message(DataMessage::stop, from, name);
      answer_to(stop, head.token, std::string());
      change(stop, [](DataHead& answer) { answer.took_list = true; });
      work.messages.push_back(std::move(stop));
    } else if (is_there || spaces_[head.datum.space].state != Space::State::closed) {
      Arrival& arrival = this->arrival(name);
      if (!is_there) arrival.parent = from;
      fail(arrival, why, work);
      if (head.token != 0 && !arrival.stopped) answer(arrival, DataMessage::stop, why, work);
      hold(arrival, work);
    }
  }
  run(work);
}

}  // namespace imbrex::distributed
