// SPDX-License-Identifier: BSD-3-Clause
// The table of requests: open addressing with linear probing, without marks for deleted entries.
#include "mpi/messages/requests/request_table.hpp"

#include <mutex>
#include <utility>

#include "mpi/check/checks.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/requests/persistent.hpp"

namespace imbrex::mpi::messages {

namespace {

std::uintptr_t key_of(MPI_Request request) noexcept { return (std::uintptr_t)request; }

}  // namespace

// The entry of `key`, or the empty one where it would be. REQUIRES: the shard has entries.
RequestTable::Entry& RequestTable::place_of(Shard& shard, std::uintptr_t key) noexcept {
  const std::size_t mask = shard.entries.size() - 1;
  std::size_t place = home(shard, key);
  while (shard.entries[place].key != 0 && shard.entries[place].key != key) {
    place = (place + 1) & mask;
  }
  return shard.entries[place];
}

void RequestTable::grow(Shard& shard) {
  std::vector<Entry> old(shard.entries.empty() ? 64 : 2 * shard.entries.size());
  std::swap(old, shard.entries);
  for (const Entry& entry : old) {
    if (entry.key != 0) place_of(shard, entry.key) = entry;
  }
}

void RequestTable::count(Known known, int change) noexcept {
  size_.fetch_add(change, std::memory_order_relaxed);
  if (Communicator* const on = known.posted_on()) {
    on->count_open(change);
  } else {
    substitutes_.fetch_add(change, std::memory_order_relaxed);
  }
}

void RequestTable::know(MPI_Request request, Known known, const Envelope& wanted) {
  const std::uintptr_t key = key_of(request);
  Shard& shard = shard_of(hash(key));
  const std::lock_guard guard(shard.lock);
  if (4 * (shard.size + 1) > 3 * shard.entries.size()) grow(shard);
  Entry& entry = place_of(shard, key);
  if (entry.key == 0) {
    ++shard.size;
  } else {
    count(entry.known, -1);
  }
  entry = {key, known, wanted};
  count(known, +1);
}

Known RequestTable::find(MPI_Request request) noexcept {
  const std::uintptr_t key = key_of(request);
  Shard& shard = shard_of(hash(key));
  const std::lock_guard guard(shard.lock);
  if (shard.size == 0) return {};
  const Entry& entry = place_of(shard, key);
  return entry.key == 0 ? Known() : entry.known;
}

bool RequestTable::find(MPI_Request request, Envelope& wanted, MPI_Comm& comm) noexcept {
  const std::uintptr_t key = key_of(request);
  Shard& shard = shard_of(hash(key));
  const std::lock_guard guard(shard.lock);
  if (shard.size == 0) return false;
  const Entry& entry = place_of(shard, key);
  if (entry.key == 0) return false;
  if (const Communicator* const on = entry.known.posted_on()) {
    wanted = entry.wanted;
    comm = on->handle_unless_freed();
  } else if (const Persistent* const persistent = entry.known.persistent();
             persistent != nullptr && !persistent->sends) {
    wanted = persistent->arguments.wanted;
    comm = persistent->communicator.handle_unless_freed();
  } else {
    return false;
  }
  return true;
}

void RequestTable::forget(MPI_Request request) noexcept {
  const std::uintptr_t key = key_of(request);
  Shard& shard = shard_of(hash(key));
  const std::lock_guard guard(shard.lock);
  if (shard.size == 0) return;
  Entry& entry = place_of(shard, key);
  if (entry.key != 0) remove(shard, entry);
}

void RequestTable::complete(MPI_Request request) noexcept {
  check::end_request(request);
  if (request == MPI_REQUEST_NULL || empty()) return;
  const std::uintptr_t key = key_of(request);
  Shard& shard = shard_of(hash(key));
  const std::lock_guard guard(shard.lock);
  if (shard.size == 0) return;
  Entry& entry = place_of(shard, key);
  if (entry.key == 0) return;
  if (entry.known.posted_on() != nullptr) {
    remove(shard, entry);
  } else if (Persistent* const persistent = entry.known.persistent()) {
    if (std::exchange(persistent->posted, false)) persistent->communicator.count_open(-1);
  }
}

void RequestTable::remove(Shard& shard, Entry& entry) noexcept {
  count(entry.known, -1);
  --shard.size;
  close_gap(shard, static_cast<std::size_t>(&entry - shard.entries.data()));
}

// Moves entries back that would not be found past the gap: see (2).
void RequestTable::close_gap(Shard& shard, std::size_t gap) noexcept {
  const std::size_t mask = shard.entries.size() - 1;
  shard.entries[gap] = {};
  for (std::size_t place = (gap + 1) & mask; shard.entries[place].key != 0;
       place = (place + 1) & mask) {
    const std::size_t away = (place - home(shard, shard.entries[place].key)) & mask;
    if (away < ((place - gap) & mask)) continue;  // its home lies behind the gap
    shard.entries[gap] = std::exchange(shard.entries[place], {});
    gap = place;
  }
}

RequestTable& requests() noexcept {
  static RequestTable& table = *new RequestTable;
  return table;
}

}  // namespace imbrex::mpi::messages
