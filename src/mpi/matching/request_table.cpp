// SPDX-License-Identifier: BSD-3-Clause
// The table of requests: open addressing with linear probing, and no marks of deleted entries.
#include "mpi/matching/request_table.hpp"

#include <mutex>
#include <utility>

#include "mpi/matching/communicator.hpp"
#include "mpi/matching/persistent.hpp"
#include "mpi/watch/check/check.hpp"

namespace imbrex::mpi::receive {

namespace {

std::uintptr_t key_of(MPI_Request request) noexcept { return (std::uintptr_t)request; }

}  // namespace

// The entry of `key`, or the empty one where it would be. REQUIRES: the part has entries.
RequestTable::Entry& RequestTable::place_of(Part& part, std::uintptr_t key) noexcept {
  const std::size_t mask = part.entries.size() - 1;
  std::size_t place = home(part, key);
  while (part.entries[place].key != 0 && part.entries[place].key != key) {
    place = (place + 1) & mask;
  }
  return part.entries[place];
}

void RequestTable::grow(Part& part) {
  std::vector<Entry> old(part.entries.empty() ? 64 : 2 * part.entries.size());
  std::swap(old, part.entries);
  for (const Entry& entry : old) {
    if (entry.key != 0) place_of(part, entry.key) = entry;
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
  Part& part = part_of(hash(key));
  const std::lock_guard guard(part.lock);
  if (4 * (part.size + 1) > 3 * part.entries.size()) grow(part);
  Entry& entry = place_of(part, key);
  if (entry.key == 0) {
    ++part.size;
  } else {
    count(entry.known, -1);
  }
  entry = {key, known, wanted};
  count(known, +1);
}

Known RequestTable::find(MPI_Request request) noexcept {
  const std::uintptr_t key = key_of(request);
  Part& part = part_of(hash(key));
  const std::lock_guard guard(part.lock);
  if (part.size == 0) return {};
  const Entry& entry = place_of(part, key);
  return entry.key == 0 ? Known() : entry.known;
}

bool RequestTable::find(MPI_Request request, Envelope& wanted, MPI_Comm& comm) noexcept {
  const std::uintptr_t key = key_of(request);
  Part& part = part_of(hash(key));
  const std::lock_guard guard(part.lock);
  if (part.size == 0) return false;
  const Entry& entry = place_of(part, key);
  if (entry.key == 0) return false;
  if (const Communicator* const on = entry.known.posted_on()) {
    wanted = entry.wanted;
    comm = on->handle_unless_freed();
  } else if (const Persistent* const persistent = entry.known.persistent()) {
    wanted = persistent->arguments.wanted;
    comm = persistent->communicator.handle_unless_freed();
  } else {
    return false;
  }
  return true;
}

void RequestTable::forget(MPI_Request request) noexcept {
  const std::uintptr_t key = key_of(request);
  Part& part = part_of(hash(key));
  const std::lock_guard guard(part.lock);
  if (part.size == 0) return;
  Entry& entry = place_of(part, key);
  if (entry.key != 0) remove(part, entry);
}

void RequestTable::settle(MPI_Request request) noexcept {
  check::end_request(request);
  if (request == MPI_REQUEST_NULL || empty()) return;
  const std::uintptr_t key = key_of(request);
  Part& part = part_of(hash(key));
  const std::lock_guard guard(part.lock);
  if (part.size == 0) return;
  Entry& entry = place_of(part, key);
  if (entry.key == 0) return;
  if (entry.known.posted_on() != nullptr) {
    remove(part, entry);
  } else if (Persistent* const persistent = entry.known.persistent()) {
    if (std::exchange(persistent->posted, false)) persistent->communicator.count_open(-1);
  }
}

void RequestTable::remove(Part& part, Entry& entry) noexcept {
  count(entry.known, -1);
  --part.size;
  close_gap(part, static_cast<std::size_t>(&entry - part.entries.data()));
}

// Moves back what would not be found past the gap: see (2).
void RequestTable::close_gap(Part& part, std::size_t gap) noexcept {
  const std::size_t mask = part.entries.size() - 1;
  part.entries[gap] = {};
  for (std::size_t place = (gap + 1) & mask; part.entries[place].key != 0;
       place = (place + 1) & mask) {
    const std::size_t away = (place - home(part, part.entries[place].key)) & mask;
    if (away < ((place - gap) & mask)) continue;  // its home lies behind the gap
    part.entries[gap] = std::exchange(part.entries[place], {});
    gap = place;
  }
}

RequestTable& requests() noexcept {
  static RequestTable& table = *new RequestTable;
  return table;
}

}  // namespace imbrex::mpi::receive
