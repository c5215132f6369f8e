// SPDX-License-Identifier: BSD-3-Clause
#include "omp/region/share.hpp"

#include <algorithm>
#include <cstdlib>

#include "omp/region/gate.hpp"
#include "omp/region/doacross.hpp"
#include "omp/tools/events.hpp"

namespace imbrex::omp {

Share::~Share() {
  std::free(memory);
  delete doacross;
}

namespace {

void pass(Share& share, const int members) noexcept {
  if (share.passed.fetch_add(1, std::memory_order_acq_rel) + 1 == members) delete &share;
}

void begin(Implicit& member, Share& share) noexcept {
  member.share = &share;
  member.trip = 0;
  member.begin = member.end = 0;
}

}  // namespace

Share* go_on(Implicit& member) noexcept {
  Share& last = *member.share;
  Share* const next = last.following.load(std::memory_order_acquire);
  if (next == nullptr) return nullptr;
  pass(last, member.team->size);
  begin(member, *next);
  return next;
}

bool go_on(Implicit& member, Share& mine) noexcept {
  Share& last = *member.share;
  Share* next = nullptr;
  const bool first = last.following.compare_exchange_strong(
      next, &mine, std::memory_order_acq_rel, std::memory_order_acquire);
  if (first) {
    next = &mine;
  } else {
    delete &mine;
  }
  pass(last, member.team->size);
  begin(member, *next);
  return first;
}

bool any_begun(const Implicit& member) noexcept {
  const Share& last = *member.share;
  return !last.is_first || last.following.load(std::memory_order_acquire) != nullptr;
}

void pass_all(Implicit& member) noexcept {
  const int members = member.team->size;
  for (Share* share = member.share; share != nullptr;) {
    Share* const next = share->following.load(std::memory_order_acquire);
    pass(*share, members);
    share = next;
  }
  member.share = nullptr;
}

void tell_begin(const Share& share) {
  tools::begin_loop(share.has_sections ? tools::Work::sections : work_of(share.schedule),
                    share.iterations.count);
}

tools::Work work_of(const Schedule schedule) noexcept {
  switch (schedule) {
    case Schedule::by_blocks: return tools::Work::loop_static;
    case Schedule::dynamic: return tools::Work::loop_dynamic;
    case Schedule::guided: return tools::Work::loop_guided;
    default: return tools::Work::loop_other;
  }
}

namespace {

// Blocks of nearly equal size in the order of the members; the first ones are larger by one.
bool next_block(Implicit& member, const Share& share, Chunk& chunk) noexcept {
  if (member.trip++ != 0) return false;
  const auto members = static_cast<std::uint64_t>(member.team->size);
  const auto number = static_cast<std::uint64_t>(member.number);
  const std::uint64_t each = share.iterations.count / members;
  const std::uint64_t larger = share.iterations.count % members;
  chunk.begin = each * number + std::min(number, larger);
  chunk.end = chunk.begin + each + (number < larger ? 1 : 0);
  return chunk.begin != chunk.end;
}

bool next_in_turn(Implicit& member, const Share& share, Chunk& chunk) noexcept {
  const auto members = static_cast<std::uint64_t>(member.team->size);
  const std::uint64_t chunks = (share.iterations.count - 1) / share.chunk + 1;
  const std::uint64_t index = static_cast<std::uint64_t>(member.number) + member.trip * members;
  if (index >= chunks) return false;
  ++member.trip;
  chunk.begin = index * share.chunk;
  chunk.end = chunk.begin + std::min(share.chunk, share.iterations.count - chunk.begin);
  return true;
}

// Takes `wanted(left)` of the remaining iterations. No addition to `next` may pass the count,
// because it could wrap.
template <class Wanted>
bool take_some(Share& share, Chunk& chunk, Wanted wanted) noexcept {
  const std::uint64_t count = share.iterations.count;
  std::uint64_t next = share.next.load(std::memory_order_relaxed);
  do {
    if (next == count) return false;
    chunk = {next, next + std::min(wanted(count - next), count - next)};
    // relaxed: iterations share nothing that this orders
  } while (!share.next.compare_exchange_weak(next, chunk.end, std::memory_order_relaxed));
  return true;
}

// Takes share.chunk of the remaining iterations, by one addition where `next` cannot wrap: it
// passes the count by one chunk for each member at most.
bool take_chunk(Share& share, Chunk& chunk) noexcept {
  const std::uint64_t count = share.iterations.count;
  if ((share.chunk >> 32) != 0 || (count >> 63) != 0) [[unlikely]] {
    return take_some(share, chunk, [&share](std::uint64_t) { return share.chunk; });
  }
  if (share.next.load(std::memory_order_relaxed) >= count) return false;
  // relaxed: as in take_some()
  const std::uint64_t begin = share.next.fetch_add(share.chunk, std::memory_order_relaxed);
  if (begin >= count) return false;
  chunk = {begin, std::min(begin + share.chunk, count)};
  return true;
}

}  // namespace

bool next_chunk(Implicit& member, Share& share, Chunk& chunk) noexcept {
  if (share.iterations.count == 0) return false;
  const auto members = static_cast<std::uint64_t>(member.team->size);
  switch (share.schedule) {
    case Schedule::by_blocks:
      return share.chunk == 0 ? next_block(member, share, chunk)
                              : next_in_turn(member, share, chunk);
    case Schedule::guided:
      return take_some(share, chunk, [&share, members](const std::uint64_t left) {
        return std::max(share.chunk, (left - 1) / members + 1);
      });
    default: return take_chunk(share, chunk);
  }
}

bool next_ordered_chunk(Implicit& member, Share& share, Chunk& chunk) {
  if (member.begin != member.end) {
    wait_until(&share.turn, "ordered", [&] {
      return share.turn.load(std::memory_order_acquire) == member.begin;
    });
    share.turn.store(member.end, std::memory_order_release);
    wake_all(&share.turn);
    member.begin = member.end;
  }
  if (!next_chunk(member, share, chunk)) return false;
  member.begin = chunk.begin;
  member.end = chunk.end;
  return true;
}

}  // namespace imbrex::omp
