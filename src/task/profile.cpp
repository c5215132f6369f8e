// SPDX-License-Identifier: BSD-3-Clause
#include "task/profile.hpp"

#include <algorithm>
#include <cmath>

#include "task/access_block.hpp"

namespace imbrex::task {

namespace {

[[nodiscard]] std::uint64_t mix(const std::uint64_t hash, const std::uint64_t word) noexcept {
  const std::uint64_t mixed = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return mixed ^ (mixed >> 29);
}

template <class Pointer>
[[nodiscard]] std::uint64_t number(const Pointer* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

[[nodiscard]] std::uint64_t body(const Task& task) noexcept {
  if (task.ops->code == nullptr) return number(task.ops);
  return number(task.ops->code(reinterpret_cast<const std::byte*>(&task) + sizeof(Task)));
}

// A multilinear hash: a few instructions for each word; it confuses one of 2^60 pairs of kinds.
[[nodiscard]] std::uint64_t kind_of(const Task& task) noexcept {
  std::uint64_t captured = task.slot_class;
  std::uint64_t count = 0;
  if (task.accesses != nullptr) {
    captured = number(task.accesses) - number(&task);
    count = task.accesses->count;
  }
  const std::source_location& here = task.where;
  const std::source_location& above = task.parent->where;
  // The texts of one spawn site have one address.
  const std::uint64_t sum =
      number(here.file_name()) * 0x9E3779B97F4A7C15u +
      (std::uint64_t{here.line()} << 32 | here.column()) * 0xC2B2AE3D27D4EB4Fu +
      body(task) * 0x165667B19E3779F9u +
      (captured << 33 | count << 1 | (task.tied ? 1 : 0)) * 0xD6E8FEB86659FD93u +
      number(above.file_name()) * 0xA0761D6478BD642Fu +
      (std::uint64_t{above.line()} << 32 | above.column()) * 0xE7037ED1A0B428DBu;
  return (sum ^ sum >> 32) | 1;
}

}  // namespace

Profile* Profiles::enter(Task& task) noexcept {
  constexpr std::size_t neighbours = 16;
  const std::uint64_t kind = kind_of(task);
  task.profile = 0;
  for (std::size_t i = 0; i < neighbours; ++i) {
    const std::size_t place = (kind / 2 + i) % places;
    Profile& profile = profiles_[place];
    std::uint64_t found = profile.kind.load(std::memory_order_relaxed);
    const bool is_new =
        found == 0 && profile.kind.compare_exchange_strong(found, kind, std::memory_order_relaxed);
    if (!is_new && found != kind) continue;
    if (is_new) profile.above.store(of(*task.parent), std::memory_order_relaxed);
    task.profile = static_cast<std::uint16_t>(place + 1);
    return &profile;
  }
  return nullptr;
}

bool Profiles::sends(Profile& profile) noexcept {
  bool news = false;
  std::uint32_t level = 1;
  for (Profile* each = &profile; each != nullptr;
       each = each->above.load(std::memory_order_relaxed), ++level) {
    const std::uint32_t known = each->level.load(std::memory_order_relaxed);
    if (known != 0 && known <= level) break;  // the levels above are known, too
    each->level.store(level, std::memory_order_relaxed);
    news = true;
  }
  return news;
}

std::uint64_t Profiles::identity(const Task& task) const noexcept {
  std::uint64_t hash = profiles_[task.profile - 1u].kind.load(std::memory_order_relaxed);
  if (task.accesses == nullptr) return hash;
  for (const Access& access : task.accesses->accesses()) hash = mix(hash, number(access.address));
  return hash;
}

const Profiles::Peer* Profiles::peer(const std::uint32_t rank) const noexcept {
  const Peer& found = peers_[rank % peers];
  const bool known = found.rank.load(std::memory_order_relaxed) == rank &&
                     found.behind_us.load(std::memory_order_relaxed) > 0;
  return known ? &found : nullptr;
}

int Profiles::urgency(const Task& task) const noexcept {
  const std::uint64_t mine = identity(task);
  const Known& known = known_[mine % tasks];
  if (known.task.load(std::memory_order_relaxed) != mine) return 0;
  return urgency_at(known.peer.load(std::memory_order_relaxed));
}

int Profiles::urgency_at(const std::uint32_t rank) const noexcept {
  const Peer* const to = peer(rank);
  return to == nullptr ? 0 : to->urgency.load(std::memory_order_relaxed);
}

float Profiles::sends(const Task& task, const std::uint64_t message) noexcept {
  const auto rank = static_cast<std::uint32_t>(message >> 32);
  const Peer* const to = peer(rank);
  const int its = to == nullptr ? 0 : to->urgency.load(std::memory_order_relaxed);
  if (urgency(task) <= its) {
    const std::uint64_t mine = identity(task);
    Known& known = known_[mine % tasks];
    known.peer.store(rank, std::memory_order_relaxed);
    known.task.store(mine, std::memory_order_relaxed);
  }
  return to == nullptr ? 0 : to->behind_us.load(std::memory_order_relaxed);
}

void Profiles::learn(const std::uint64_t message, const float behind_us) noexcept {
  constexpr std::uint32_t recent = 256;  // number of values in the average
  const auto rank = static_cast<std::uint32_t>(message >> 32);
  Peer& to = peers_[rank % peers];
  if (to.rank.exchange(rank, std::memory_order_relaxed) != rank) to.reports = 0;
  const float old = to.reports == 0 ? 0 : to.behind_us.load(std::memory_order_relaxed);
  to.reports = std::min(to.reports + 1, recent);
  const float next = old + (behind_us - old) / static_cast<float>(to.reports);
  to.behind_us.store(std::max(next, 1.0F), std::memory_order_relaxed);
  if (++reports_ % reports_min == 0) compare_peers();
}

void Profiles::compare_peers() noexcept {
  float least = 0;
  for (std::size_t place = 0; place < peers; ++place) {
    const float its = peers_[place].behind_us.load(std::memory_order_relaxed);
    if (peers_[place].reports >= reports_min && (least == 0 || its < least)) least = its;
  }
  for (std::size_t place = 0; place < peers; ++place) {
    Peer& each = peers_[place];
    int urgency = 0;
    if (each.reports >= reports_min) {
      const float longer = each.behind_us.load(std::memory_order_relaxed) / least;
      urgency = std::min(static_cast<int>(std::log(longer) / std::log(1.5F)), urgency_max);
    }
    each.urgency.store(urgency, std::memory_order_relaxed);
  }
}

}  // namespace imbrex::task
