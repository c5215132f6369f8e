// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/futures.hpp"

#include <fmt/format.h>

#include "distributed/carrier/errors.hpp"
#include "distributed/future_messages.hpp"
#include "imbrex/detail/distributed/future_names.hpp"
#include "imbrex/error.hpp"
#include "imbrex/serialise.hpp"

namespace imbrex::distributed {

using detail::Build;
using detail::SpaceFuture;
using detail::ValueOps;

// ---- spaces ----------------------------------------------------------------------------------

detail::Space& Futures::open(detail::SpaceSpec spec) {
  if (!spec.home) {
    throw Error(fmt::format("imbrex: the space of futures \"{}\" has no function `home`",
                            spec.name));
  }
  auto& space = *new SpaceOn(*this, std::move(spec));
  std::vector<std::pair<int, std::vector<std::byte>>> kept;
  if (const std::lock_guard guard(mutex_); true) {
    Known& known = spaces_[space.id()];
    known.space = &space;
    kept = std::move(known.kept);
  }
  // Handlers may use the space already: kept messages need no order with new ones.
  for (const auto& [from, message] : kept) receive(from, message);
  return space;
}

void Futures::receive(const int from, const Bytes message) noexcept {
  SpaceOn::Head head;
  std::memcpy(&head, message.data(), sizeof head);
  SpaceOn* space = nullptr;
  if (const std::lock_guard guard(mutex_); true) {
    const auto found = spaces_.find(head.space);
    if (found != spaces_.end()) space = found->second.space;
    if (space == nullptr) {
      // Only this message starts anything before a space is open, or after its end.
      using enum FutureMessage;
      if (head.message == ask || head.message == put || head.message == announce) {
        spaces_[head.space].kept.emplace_back(from, std::vector(message.begin(), message.end()));
      }
      return;
    }
  }
  space->receive(from, head, message.subspan(sizeof head));
}

void Futures::forget(const std::uint64_t id) {
  const std::lock_guard guard(mutex_);
  spaces_.erase(id);
}

SpaceOn::SpaceOn(Futures& futures, detail::SpaceSpec spec)
    : futures_(futures), name_(detail::keep_text(spec.name)), spec_(std::move(spec)) {
  if (spec_.expects) expect();
}

void SpaceOn::expect() {
  if (!expects_.exchange(true)) futures_.transfers_.expect();
}

void SpaceOn::release() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void SpaceOn::ended() {
  if (open_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  // Nothing starts any more, so the code reaches this line once.
  references_.fetch_add(1, std::memory_order_relaxed);  // for the wave; the caller holds one, too
  // identifies these waves among all groups
  constexpr std::uint64_t of_spaces = std::uint64_t{0xf5} << 56;
  const WaveSums mine = has_left_.load() ? WaveSums{1, futures_.transfers_.rank()} : WaveSums{};
  futures_.waves_.join({of_spaces | spec_.id, 0}, spec_.members, mine,
                       [](void* const context, const WaveSums& sums) noexcept {
                         auto& space = *static_cast<SpaceOn*>(context);
                         space.end_.leavers = sums[0];
                         space.end_.leaver = static_cast<int>(sums[1]);
                         detail::complete(space.end_);
                         if (space.has_left_.load()) {
                           space.leaving_.over();
                           space.end_entries();
                         }
                         space.release();
                       },
                       this);
}

SpaceOn::End::End(SpaceOn& its_space) noexcept : space(its_space) {
  references.store(1, std::memory_order_relaxed);  // one for the space, for ever
  failure = nullptr;
  kind = detail::CompletionKind::remote;
  destroy = [](detail::PromiseState&) noexcept {};
  name = "the end of a space of futures";
  describe = [](const detail::RemoteState& state, std::string& text) {
    static_cast<const End&>(state).space.describe_open(text);
  };
}

void SpaceOn::describe_open(std::string& text) {
  constexpr int most = 4;
  int found = 0;
  text += fmt::format("the end of the space of futures \"{}\": ", name_);
  for (Shard& part : shards_) {
    const std::lock_guard guard(part.mutex);
    for (const auto& [guid, entry] : part.entries) {
      if (entry.state == nullptr || entry.state->event.has_fired() || ++found > most) continue;
      text += fmt::format("{}{}", found == 1 ? "" : ", ", name_of(guid));
      if (!has_left_.load()) text += fmt::format("{}{}", detail::home_begins, home_of(guid));
    }
  }
  if (found > most) text += fmt::format(" and {} more", found - most);
  text += found == 0 ? "other ranks have not closed it, or still await futures of it"
                     : found == 1 ? " was asked for, and no rank has set it"
                                  : " were asked for, and no rank has set them";
}

void SpaceOn::close() {
  if (closing_.exchange(true)) {
    throw Error(fmt::format("imbrex: the space of futures \"{}\" is closed twice", name_));
  }
  ended();
  detail::await(end_);
  end_entries();
  if (end_.leavers == 0) return;
  throw Error(end_.leavers == 1
                  ? Leaving::text(end_.leaver, object_text())
                  : fmt::format("imbrex: exceptions have ended {} on {} ranks", object_text(),
                                end_.leavers));
}

void SpaceOn::let_go() noexcept {
  try {
    if (!closing_.load()) leaving_.is_unwound() ? leave() : close();
  } catch (...) {  // the caller is a destructor
    report_at_end(std::current_exception());
  }
  release();
}

// Waits for a handler of this rank only, for the reason of (3).
void SpaceOn::leave() {
  closing_.store(true);
  leaving_.begin(object_text());
  Promise<void> left("the handlers of a space of futures", std::source_location());
  left_here_ = &left;
  const auto future = left.future();
  for (const int rank : spec_.members) send(rank, head(FutureMessage::left, 0));
  futures_.transfers_.flush();
  future.get();
  ended();
}

std::string SpaceOn::object_text() const {
  return fmt::format("the space of futures \"{}\"", name_);
}

void SpaceOn::end_entries() {
  futures_.forget(spec_.id);
  if (expects_.exchange(false)) futures_.transfers_.expect_no_more();
  for (Shard& part : shards_) {
    std::unordered_map<std::uint64_t, Entry> entries;
    if (const std::lock_guard guard(part.mutex); true) entries.swap(part.entries);
    for (const auto& [guid, entry] : entries) {
      // Other homes, and freed values: see (2).
      if (entry.given_back || (entry.site.rank < 0 && !entry.requested_here)) continue;
      if (entry.state != nullptr) detail::release(*entry.state);
    }
  }
}

void SpaceOn::check_left() const {
  const int rank = left_by_.load();
  if (rank >= 0) throw Error(Leaving::text(rank, object_text()));
}

void SpaceOn::check_open(const std::uint64_t guid) const {
  check_left();
  if (!closing_.load()) return;
  throw Error(fmt::format("imbrex: future {} of space \"{}\" is used after the space was closed",
                          guid, name_));
}

// ---- ranks and places ------------------------------------------------------------------------

SpaceOn::Shard& SpaceOn::shard(const std::uint64_t guid) noexcept {
  return shards_[(guid * 0x9e3779b97f4a7c15u) >> 60];  // Fibonacci hashing
}

int SpaceOn::home_of(const std::uint64_t guid) const {
  const int home = spec_.home(guid);
  if (home < 0 || static_cast<std::size_t>(home) >= spec_.members.size()) {
    throw Error(fmt::format("imbrex: home({}) of space \"{}\" is {}, but the space has {} ranks",
                            guid, name_, home, spec_.members.size()));
  }
  return spec_.members[static_cast<std::size_t>(home)];
}

bool SpaceOn::is_home(const int home) const noexcept { return home == futures_.transfers_.rank(); }

std::string SpaceOn::name_of(const std::uint64_t guid) const {
  return fmt::format("{}{}{}{}\"", detail::future_begins, guid, detail::space_begins, name_);
}

std::string SpaceOn::text_of(const Site& site) const {
  return fmt::format("rank {} at {}", site.rank,
                     site.text != nullptr ? site.text : site_text(site.where));
}

SpaceFuture& SpaceOn::make_state(const std::uint64_t guid) {
  SpaceFuture& state = *spec_.ops->make();
  references_.fetch_add(1, std::memory_order_relaxed);  // the caller holds one, too
  state.references.store(1, std::memory_order_relaxed);
  state.failure = nullptr;
  state.kind = detail::CompletionKind::remote;
  state.plain = false;
  state.destroy = destroy_state;
  state.name = name_;
  state.where = std::source_location();
  state.describe = describe_state;
  state.space = this;
  state.guid = guid;
  return state;
}

void SpaceOn::destroy_state(detail::PromiseState& promise) noexcept {
  auto& state = static_cast<SpaceFuture&>(promise);
  auto& space = static_cast<SpaceOn&>(*state.space);
  Shard& part = space.shard(state.guid);
  if (const std::lock_guard guard(part.mutex); true) {
    const auto found = part.entries.find(state.guid);
    if (found != part.entries.end() && found->second.state == &state) {
      if (found->second.given_back) {
        found->second.state = nullptr;
      } else {
        part.entries.erase(found);
      }
    }
  }
  space.spec_.ops->destroy(state);
  space.release();
}

void SpaceOn::describe_state(const detail::RemoteState& promise, std::string& text) {
  const auto& state = static_cast<const SpaceFuture&>(promise);
  const auto& space = static_cast<const SpaceOn&>(*state.space);
  text += space.name_of(state.guid);
  if (!space.has_left_.load()) {
    text += fmt::format("{}{}", detail::home_begins, space.home_of(state.guid));
  }
  text += ": no value was put, or the value is in flight";
}

// ---- reading ---------------------------------------------------------------------------------

bool try_retain(SpaceFuture& state) noexcept {
  std::uint32_t now = state.references.load(std::memory_order_relaxed);
  while (now != 0) {
    if (state.references.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel)) {
      return true;
    }
  }
  return false;
}

SpaceFuture& SpaceOn::future(const std::uint64_t guid) {
  check_open(guid);
  const int home = home_of(guid);
  return is_home(home) ? future_here(guid) : future_of(home, guid);
}

SpaceFuture& SpaceOn::future_here(const std::uint64_t guid) {
  Shard& part = shard(guid);
  SpaceFuture* state = nullptr;
  bool first = false;
  if (const std::lock_guard guard(part.mutex); true) {
    Entry& entry = part.entries[guid];
    if (entry.given_back) {
      if (entry.state != nullptr && try_retain(*entry.state)) return *entry.state;
      throw Error(fmt::format("imbrex: the value of {} was freed: as many ranks as readers() "
                              "returns have read it", name_of(guid)));
    }
    if (entry.state == nullptr) entry.state = &make_state(guid);
    state = entry.state;
    detail::retain(*state);
    first = !std::exchange(entry.requested_here, true);
    if (first && !entry.there) opened();
  }
  if (first) has_read(guid, 1);
  return *state;
}

SpaceFuture& SpaceOn::future_of(const int home, const std::uint64_t guid) {
  std::size_t bytes = spec_.ops->bytes;
  if (bytes == ValueOps::varying) bytes = size_of(guid);
  auto fetch = std::make_unique<Fetch>();
  Shard& part = shard(guid);
  if (const std::lock_guard guard(part.mutex); true) {
    Entry& entry = part.entries[guid];
    if (entry.state != nullptr && try_retain(*entry.state)) return *entry.state;
    entry.state = &make_state(guid);
    fetch->space = this;
    fetch->home = home;
    fetch->state = entry.state;
    detail::retain(*fetch->state);
    // The transfer that fills the value is the only code that builds it.
    fetch->taken = bytes != ValueOps::varying && bytes > value_bytes_max &&
                   detail::take(*fetch->state);
    opened();
  }
  SpaceFuture& state = *fetch->state;
  try {
    if (fetch->taken) fetch->make_room(bytes);
    Head ask = head(FutureMessage::ask, guid);
    ask.token = reinterpret_cast<std::uintptr_t>(fetch.get());
    if (fetch->taken) {
      fetch->landing =
          futures_.transfers_.offer(home, fetch->room, fetched, static_cast<void*>(fetch.get()));
      ask.landing = fetch->landing;
    }
    Fetch* const under_way = fetch.release();  // the handler owns it from the next line on
    try {
      send(home, ask);
    } catch (...) {
      // A landing that was offered cannot be taken back: its memory stays.
      if (!under_way->taken) fetch.reset(under_way);
      throw;
    }
  } catch (...) {
    if (fetch == nullptr) throw;
    finish_fetch(*fetch.release(), std::current_exception());
  }
  return state;
}

void SpaceOn::Fetch::make_room(const std::size_t bytes) {
  room = space->spec_.ops->room(*state, bytes, scratch);
}

// No other code builds or fires the state; otherwise `fetch` has lost it to a put of this rank.
void SpaceOn::finish_fetch(Fetch& fetch, std::exception_ptr error) noexcept {
  if (fetch.taken || detail::take(*fetch.state)) {
    if (error != nullptr && fetch.is_of_leaving) {
      fail_of_leaving(*fetch.state, std::move(error));
    } else if (error != nullptr) {
      detail::fail(*fetch.state, std::move(error));
    }
    detail::complete(*fetch.state);
  }
  end_fetch(fetch);
}

void SpaceOn::end_fetch(Fetch& fetch) noexcept {
  detail::release(*fetch.state);
  delete &fetch;
  ended();
}

void SpaceOn::fetched(void* const context, std::exception_ptr error) noexcept {
  auto& fetch = *static_cast<Fetch*>(context);
  if (fetch.error != nullptr) error = fetch.error;
  if (error == nullptr) {
    try {
      fetch.space->spec_.ops->landed(*fetch.state, fetch.room);
    } catch (...) {
      error = std::current_exception();
    }
  }
  fetch.space->finish_fetch(fetch, std::move(error));
}

// ---- putting ---------------------------------------------------------------------------------

void SpaceOn::put(const std::uint64_t guid, const Build& build,
                  const std::source_location& where) {
  check_open(guid);
  const int home = home_of(guid);
  if (is_home(home)) return put_here(guid, build, where);
  put_at(home, guid, build, where);
}

SpaceFuture& SpaceOn::claim(const std::uint64_t guid, const Site& site) {
  Shard& part = shard(guid);
  const std::lock_guard guard(part.mutex);
  Entry& entry = part.entries[guid];
  if (entry.site.rank >= 0) {
    throw Error(fmt::format("imbrex: a second put to {}, by {}: it was put by {}", name_of(guid),
                            text_of(site), text_of(entry.site)));
  }
  entry.site = site;
  if (entry.state == nullptr) entry.state = &make_state(guid);
  (void)detail::take(*entry.state);
  detail::retain(*entry.state);
  return *entry.state;
}

std::size_t SpaceOn::size_of(const std::uint64_t guid) const {
  return spec_.size && !has_left_.load() ? spec_.size(guid) : ValueOps::varying;
}

void SpaceOn::check_size(const std::uint64_t guid, const std::size_t bytes) const {
  const std::size_t expected = size_of(guid);
  if (expected == bytes || expected == ValueOps::varying) return;
  throw Error(fmt::format("imbrex: a value of {} bytes is put to {}, for which size() returns {} "
                          "on rank {}",
                          bytes, name_of(guid), expected, futures_.transfers_.rank()));
}

void SpaceOn::put_here(const std::uint64_t guid, const Build& build,
                       const std::source_location& where) {
  SpaceFuture& state = claim(guid, {futures_.transfers_.rank(), where, nullptr});
  try {
    build.call(state, build.argument);
    if (spec_.size) {
      std::vector<std::byte> scratch;
      check_size(guid, spec_.ops->view(state, scratch).size());
    }
  } catch (...) {
    complete(state, std::current_exception());
    throw;
  }
  complete(state, nullptr);
}

void SpaceOn::put_at(const int home, const std::uint64_t guid, const Build& build,
                     const std::source_location& where) {
  SpaceFuture* state = nullptr;  // the value goes to local waiters at once, unless it arrives from
                                 // the home
  Shard& part = shard(guid);
  if (const std::lock_guard guard(part.mutex); true) {
    const auto found = part.entries.find(guid);
    if (found != part.entries.end() && found->second.state != nullptr &&
        !found->second.state->taken.load() && try_retain(*found->second.state)) {
      state = found->second.state;
    }
  }
  if (state != nullptr && !detail::take(*state)) detail::release(*std::exchange(state, nullptr));
  const bool shared = state != nullptr;
  if (!shared) state = &make_state(guid);
  auto put = std::make_unique<Put>(*this, *state, home, where);
  try {
    build.call(*state, build.argument);
    put->data = spec_.ops->view(*state, put->scratch);
    check_size(guid, put->data.size());
  } catch (...) {
    if (shared) {
      detail::fail(*state, std::current_exception());
      detail::complete(*state);
    }
    detail::release(*state);
    throw;
  }
  if (shared) detail::complete(*state);
  if (detail::in_finish()) detail::hold_finish(*detail::completion_of(put->done.future()));
  opened();
  Head message = head(FutureMessage::put, guid);
  message.token = reinterpret_cast<std::uintptr_t>(put.get());
  message.bytes = put->data.size();
  const std::string site = site_text(where);
  message.text_bytes = static_cast<std::uint32_t>(site.size());
  std::vector<std::byte> body;
  Saver saver(body);
  saver.write(site.data(), site.size());
  if (put->data.size() > value_bytes_max) {
    message.message = FutureMessage::announce;
  } else {
    saver.write(put->data.data(), put->data.size());
  }
  Put* const under_way = put.release();  // the handler owns it from the next line on
  try {
    send(home, message, body);
  } catch (...) {
    end_put(*under_way, std::current_exception());
  }
}

void SpaceOn::end_put(Put& put, std::exception_ptr error) noexcept {
  if (error != nullptr) {
    put.done.set_exception(std::move(error));
  } else {
    put.done.set();
  }
  detail::release(put.state);
  delete &put;
  ended();
}

void SpaceOn::complete(SpaceFuture& state, std::exception_ptr error) {
  const std::uint64_t guid = state.guid;
  if (error != nullptr) detail::fail(state, std::move(error));
  detail::complete(state);
  std::unique_ptr<std::vector<Waiter>> waiters;
  bool requested_here = false;
  Shard& part = shard(guid);
  if (const std::lock_guard guard(part.mutex); true) {
    Entry& entry = part.entries[guid];
    entry.there = true;
    waiters = std::move(entry.waiters);
    requested_here = entry.requested_here;
  }
  if (waiters != nullptr) {
    for (const Waiter& waiter : *waiters) serve(state, waiter);
  }
  has_read(guid, 0);
  detail::release(state);
  if (requested_here) ended();
}

// An exception of readers() has no caller here: the value stays, and the program fails at its end.
void SpaceOn::has_read(const std::uint64_t guid, const std::uint32_t more) {
  if (!spec_.readers || has_left_.load()) return;
  std::size_t readers = 0;
  try {
    readers = spec_.readers(guid);
  } catch (...) {
    return report_at_end(std::current_exception());
  }
  SpaceFuture* state = nullptr;
  Shard& part = shard(guid);
  if (const std::lock_guard guard(part.mutex); true) {
    Entry& entry = part.entries[guid];
    entry.readers += more;
    if (!entry.there || entry.readers < readers || entry.given_back) return;
    entry.given_back = true;
    state = entry.state;
  }
  detail::release(*state);
}

}  // namespace imbrex::distributed
