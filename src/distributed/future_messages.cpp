// SPDX-License-Identifier: BSD-3-Clause
// Distributed futures: a rank's reactions to the messages of other ranks. The code runs under the
// rules of handlers: one at a time, and without waiting.
#include "distributed/future_messages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "distributed/carrier/errors.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"

namespace imbrex::distributed {

using detail::SpaceFuture;

namespace {
[[nodiscard]] Bytes bytes_of_text(const std::string& text) noexcept {
  return std::as_bytes(std::span(text.data(), std::min(text.size(), value_bytes_max)));
}
[[nodiscard]] std::string text_in(const Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// The name in the form of the program.
[[nodiscard]] std::string_view readable(const std::string_view type_name) {
  constexpr std::string_view mark = "T = ";
  const std::size_t begin = type_name.find(mark);
  if (begin == std::string_view::npos) return type_name;
  return type_name.substr(begin + mark.size(), type_name.rfind(']') - begin - mark.size());
}
}  // namespace

std::string site_text(const std::source_location& where) {
  std::string text = detail::text_of(where);
  if (text.size() > text_bytes_max) text.erase(0, text.size() - text_bytes_max);
  return text;
}

SpaceOn::Head SpaceOn::head(const FutureMessage message, const std::uint64_t guid) const noexcept {
  Head made{};
  made.space = spec_.id;
  made.guid = guid;
  made.type = spec_.ops->type;
  made.message = message;
  return made;
}

void SpaceOn::send(const int to, const Head& head, const Bytes body) {
  futures_.transfers_.send(to, bytes_of(head), body);
}

void SpaceOn::receive(const int from, const Head& head, const Bytes body) noexcept {
  // MPI or memory may fail here: only the end of the program can report it.
  try {
    handle(from, head, body);
  } catch (...) {
    report_at_end(std::current_exception());
  }
}

void SpaceOn::handle(const int from, const Head& head, const Bytes body) {
  const auto put = [&]() -> Put& { return *reinterpret_cast<Put*>(head.token); };
  const auto answer = [&](std::exception_ptr error) {
    if (error == nullptr && put().sending) {
      put().answered = true;
    } else {
      end_put(put(), std::move(error));
    }
  };
  switch (head.message) {
    case FutureMessage::ask: return on_ask(from, head, body);
    case FutureMessage::data: return on_data(head, body);
    case FutureMessage::size: return on_size(from, head);
    case FutureMessage::go: return on_go(from, head);
    case FutureMessage::not_now: return on_not_now(head.guid);
    case FutureMessage::error: return on_error(head, body);
    case FutureMessage::give_up:
      futures_.transfers_.deliver(head.landing, {}, [](void*, std::exception_ptr) noexcept {},
                                  nullptr);
      return;
    case FutureMessage::put:
    case FutureMessage::announce: return on_put(from, head, body);
    case FutureMessage::land: return on_land(head);
    case FutureMessage::taken: return answer(nullptr);
    case FutureMessage::refused:
      return answer(std::make_exception_ptr(RemoteError(text_in(body))));
    case FutureMessage::left: return on_left(from);
  }
}

// ---- as home, to readers ---------------------------------------------------------------------

void SpaceOn::check_home(const std::uint64_t guid) const {
  if (has_left_.load() || is_home(home_of(guid))) return;
  throw Error(fmt::format("imbrex: ranks disagree about the home of {}: another rank has taken "
                          "rank {}, but on that rank home() names rank {}: home() must be the same "
                          "on all ranks",
                          name_of(guid), futures_.transfers_.rank(), home_of(guid)));
}

void SpaceOn::check_type(const std::uint64_t guid, const std::uint64_t type) const {
  if (type == spec_.ops->type) return;
  throw Error(fmt::format("imbrex: ranks disagree about the type of {}: at its home, rank {}, it "
                          "is {}, but the asking rank uses another type",
                          name_of(guid), futures_.transfers_.rank(),
                          readable(spec_.ops->type_name)));
}

void SpaceOn::on_ask(const int from, const Head& head, Bytes) {
  const Waiter waiter{from, head.token, head.landing};
  SpaceFuture* state = nullptr;
  try {
    check_home(head.guid);
    check_type(head.guid, head.type);
    Shard& part = shard(head.guid);
    const std::lock_guard guard(part.mutex);
    Entry& entry = part.entries[head.guid];
    if (entry.given_back) {
      throw Error(fmt::format("imbrex: rank {} asks for {}, but its home, rank {}, has freed the "
                              "value: as many ranks as readers() returns have read it",
                              from, name_of(head.guid), futures_.transfers_.rank()));
    }
    if (!entry.there) {
      check_left();
      if (entry.waiters == nullptr) entry.waiters = std::make_unique<std::vector<Waiter>>();
      entry.waiters->push_back(waiter);
      return;
    }
    state = entry.state;
    detail::retain(*state);
  } catch (...) {
    return send_error(waiter, head.guid, detail::thrown_text(std::current_exception()), false);
  }
  serve(*state, waiter);
  detail::release(*state);
}

void SpaceOn::send_error(const Waiter& waiter, const std::uint64_t guid, const std::string& text,
                         const bool dead) {
  Head message = head(FutureMessage::error, guid);
  message.token = waiter.token;
  message.landing = waiter.landing;
  message.bytes = dead ? 1 : 0;
  message.of_leaving = left_by_.load() >= 0;
  send(waiter.rank, message, bytes_of_text(text));
}

void SpaceOn::serve(SpaceFuture& state, const Waiter& waiter) {
  if (state.failure != nullptr) {
    send_error(waiter, state.guid, detail::thrown_text(detail::take_failure(state)), false);
    return has_read(state.guid, 1);
  }
  if (waiter.landing.tag >= 0) return deliver(state, waiter);
  std::vector<std::byte> scratch;
  Bytes data;
  if (!view(state, waiter, scratch, data)) return;
  Head message = head(FutureMessage::data, state.guid);
  message.token = waiter.token;
  message.bytes = data.size();
  if (data.size() <= value_bytes_max) {
    send(waiter.rank, message, data);
    return has_read(state.guid, 1);
  }
  message.message = FutureMessage::size;
  send(waiter.rank, message);
}

// The bytes of the value, as its save() writes them. False if save() has thrown: the reader then
// has the error.
bool SpaceOn::view(SpaceFuture& state, const Waiter& waiter, std::vector<std::byte>& scratch,
                   Bytes& data) {
  try {
    data = spec_.ops->view(state, scratch);
    return true;
  } catch (...) {
    send_error(waiter, state.guid,
               fmt::format("imbrex: save() of {} has thrown at its home, rank {}: {}",
                           name_of(state.guid), futures_.transfers_.rank(),
                           detail::thrown_text(std::current_exception())),
               false);
  }
  has_read(state.guid, 1);
  return false;
}

std::string SpaceOn::other_size(const std::uint64_t guid, const std::size_t bytes, const int home,
                                const int reader, const std::size_t expected) const {
  return fmt::format("imbrex: {} has {} bytes at its home, rank {}, and rank {} expects {}: size() "
                     "must be the same on all ranks",
                     name_of(guid), bytes, home, reader, expected);
}

void SpaceOn::deliver(SpaceFuture& state, const Waiter& waiter) {
  struct Sending {
    SpaceFuture& state;
    std::vector<std::byte> scratch;
  };
  auto sending = std::make_unique<Sending>(Sending{state, {}});
  Bytes data;
  if (!view(state, waiter, sending->scratch, data)) return;
  if (data.size() != waiter.landing.bytes) {
    send_error(waiter, state.guid,
               other_size(state.guid, data.size(), futures_.transfers_.rank(), waiter.rank,
                          waiter.landing.bytes),
               false);
    return has_read(state.guid, 1);
  }
  detail::retain(state);
  try {
    futures_.transfers_.deliver(
        waiter.landing, data,
        [](void* const context, const std::exception_ptr error) noexcept {
          const std::unique_ptr<Sending> ended(static_cast<Sending*>(context));
          if (error != nullptr) report_at_end(error);
          detail::release(ended->state);
        },
        sending.get());
    (void)sending.release();
  } catch (...) {
    detail::release(state);
    send_error(waiter, state.guid, detail::thrown_text(std::current_exception()), true);
  }
  has_read(state.guid, 1);
}

void SpaceOn::on_go(const int from, const Head& head) {
  SpaceFuture* state = nullptr;
  Shard& part = shard(head.guid);
  if (const std::lock_guard guard(part.mutex); true) {
    state = part.entries[head.guid].state;
    if (state != nullptr && !try_retain(*state)) state = nullptr;
  }
  const Waiter waiter{from, head.token, head.landing};
  if (state == nullptr) {  // more ranks have read it than readers() says
    return send_error(waiter, head.guid,
                      fmt::format("imbrex: the value of {} was freed while rank {} asked for it: "
                                  "readers() is too low", name_of(head.guid), from),
                      false);
  }
  deliver(*state, waiter);
  detail::release(*state);
}

void SpaceOn::on_not_now(const std::uint64_t guid) { has_read(guid, 1); }

// ---- as reader -------------------------------------------------------------------------------

void SpaceOn::fill(SpaceFuture& state, const Bytes bytes) const {
  std::vector<std::byte> scratch;
  const std::span<std::byte> room = spec_.ops->room(state, bytes.size(), scratch);
  if (!bytes.empty()) std::memcpy(room.data(), bytes.data(), bytes.size());
  spec_.ops->landed(state, room);
}

void SpaceOn::check_size_read(const Fetch& fetch, const std::size_t bytes) const {
  const std::uint64_t guid = fetch.state->guid;
  const std::size_t expected = size_of(guid);
  if (expected == bytes || expected == detail::ValueOps::varying) return;
  throw Error(other_size(guid, bytes, fetch.home, futures_.transfers_.rank(), expected));
}

void SpaceOn::on_data(const Head& head, const Bytes body) {
  Fetch& fetch = *reinterpret_cast<Fetch*>(head.token);
  if (!detail::take(*fetch.state)) return end_fetch(fetch);
  fetch.taken = true;
  std::exception_ptr error;
  try {
    check_size_read(fetch, body.size());
    fill(*fetch.state, body);
  } catch (...) {
    error = std::current_exception();
  }
  finish_fetch(fetch, std::move(error));
}

void SpaceOn::on_size(const int from, const Head& head) {
  Fetch& fetch = *reinterpret_cast<Fetch*>(head.token);
  Head answer = this->head(FutureMessage::not_now, head.guid);
  answer.token = head.token;
  if (!detail::take(*fetch.state)) {
    send(from, answer);
    return end_fetch(fetch);
  }
  fetch.taken = true;
  try {
    check_size_read(fetch, head.bytes);
    fetch.make_room(head.bytes);
    fetch.landing = futures_.transfers_.offer(from, fetch.room, fetched, &fetch);
  } catch (...) {
    send(from, answer);
    return finish_fetch(fetch, std::current_exception());
  }
  answer.message = FutureMessage::go;
  answer.landing = fetch.landing;
  send(from, answer);
}

void SpaceOn::on_error(const Head& head, const Bytes body) {
  Fetch& fetch = *reinterpret_cast<Fetch*>(head.token);
  const auto error = std::make_exception_ptr(RemoteError(text_in(body)));
  fetch.is_of_leaving = head.of_leaving;
  if (head.landing.tag < 0 || head.bytes != 0) return finish_fetch(fetch, error);
  // The memory belongs to the transfer until that has ended; the sending rank ends it.
  fetch.error = error;
  Head message = this->head(FutureMessage::give_up, head.guid);
  message.landing = fetch.landing;
  // The landing was for data from the rank that this message came from.
  send(fetch.home, message);
}

// ---- puts ------------------------------------------------------------------------------------

void SpaceOn::answer_put(const int to, const std::uint64_t guid, const std::uint64_t token,
                         const std::string& refusal) {
  Head message = head(refusal.empty() ? FutureMessage::taken : FutureMessage::refused, guid);
  message.token = token;
  send(to, message, bytes_of_text(refusal));
}

void SpaceOn::on_put(const int from, const Head& head, const Bytes body) {
  SpaceFuture* state = nullptr;
  try {
    check_left();
    check_home(head.guid);
    check_type(head.guid, head.type);
    check_size(head.guid, head.bytes);
    const std::string place = text_in(body.first(head.text_bytes));
    state = &claim(head.guid, {from, {}, detail::keep_text(place)});
  } catch (...) {
    return answer_put(from, head.guid, head.token, detail::thrown_text(std::current_exception()));
  }
  std::exception_ptr error;
  try {
    if (head.message == FutureMessage::announce) {
      auto arriving = std::make_unique<Arriving>(Arriving{*this, *state, from, head.token});
      arriving->room = spec_.ops->room(*state, head.bytes, arriving->scratch);
      Head land = this->head(FutureMessage::land, head.guid);
      land.token = head.token;
      land.landing =
          futures_.transfers_.offer(from, arriving->room, landed_here, arriving.get());
      (void)arriving.release();
      return send(from, land);
    }
    fill(*state, body.subspan(head.text_bytes));
  } catch (...) {
    error = std::current_exception();
  }
  const std::string refusal = error == nullptr ? "" : detail::thrown_text(error);
  complete(*state, std::move(error));
  answer_put(from, head.guid, head.token, refusal);
}

void SpaceOn::landed_here(void* const context, std::exception_ptr error) noexcept {
  const std::unique_ptr<Arriving> arriving(static_cast<Arriving*>(context));
  SpaceOn& space = arriving->space;
  const std::uint64_t guid = arriving->state.guid;
  try {
    try {
      if (error == nullptr) space.spec_.ops->landed(arriving->state, arriving->room);
    } catch (...) {
      error = std::current_exception();
    }
    const std::string refusal = error == nullptr ? "" : detail::thrown_text(error);
    space.complete(arriving->state, std::move(error));
    space.answer_put(arriving->from, guid, arriving->token, refusal);
  } catch (...) {
    report_at_end(std::current_exception());
  }
}

// No report at the end has this error: the ranks have the exception, and the Error of close().
void SpaceOn::fail_of_leaving(SpaceFuture& state, std::exception_ptr error) {
  detail::fail(state, std::move(error));
  (void)detail::take_failure(state);
}

// The values that this home lacks are not waited for any more: the leaving rank may be the one that
// would have put them.
void SpaceOn::on_left(const int from) {
  const bool is_own = from == futures_.transfers_.rank();
  if (is_own) has_left_.store(true);
  int none = -1;
  left_by_.compare_exchange_strong(none, from);
  references_.fetch_add(1, std::memory_order_relaxed);  // completions may end the space
  std::vector<SpaceFuture*> missing;
  for (Shard& part : shards_) {
    const std::lock_guard guard(part.mutex);
    for (auto& [guid, entry] : part.entries) {
      const bool is_home = entry.requested_here || entry.waiters != nullptr;
      if (!is_home || entry.there || entry.site.rank >= 0) continue;
      entry.site = {from, {}, "an exception"};
      if (entry.state == nullptr) entry.state = &make_state(guid);
      (void)detail::take(*entry.state);
      detail::retain(*entry.state);
      missing.push_back(entry.state);
    }
  }
  for (SpaceFuture* const state : missing) {
    fail_of_leaving(*state,
                    std::make_exception_ptr(RemoteError(Leaving::text(from, object_text()))));
    complete(*state, nullptr);
  }
  if (is_own) left_here_->set();
  release();
}

void SpaceOn::on_land(const Head& head) {
  auto& put = *reinterpret_cast<Put*>(head.token);
  put.sending = true;
  futures_.transfers_.deliver(
      head.landing, put.data,
      [](void* const context, const std::exception_ptr error) noexcept {
        Put& sent = *static_cast<Put*>(context);
        sent.sending = false;
        if (error != nullptr || sent.answered) sent.space.end_put(sent, error);
      },
      &put);
}

}  // namespace imbrex::distributed
