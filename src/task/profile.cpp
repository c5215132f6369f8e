// SPDX-License-Identifier: BSD-3-Clause
#include "task/profile.hpp"

#include <algorithm>
#include <limits>

#include "task/depend.hpp"

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

[[nodiscard]] std::uint64_t site(const Task& task) noexcept {
  // The texts of one site have one address.
  return mix(number(task.where.file_name()),
             (std::uint64_t{task.where.line()} << 32) | task.where.column());
}

[[nodiscard]] std::uint64_t kind_of(const Task& task) noexcept {
  std::uint64_t captured = task.slot_class;
  std::uint64_t count = 0;
  if (task.accesses != nullptr) {
    captured = number(task.accesses) - number(&task);
    count = task.accesses->count;
  }
  std::uint64_t hash = mix(site(task), number(task.ops));
  hash = mix(hash, captured << 33 | count << 1 | (task.tied ? 1 : 0));
  hash = mix(hash, site(*task.parent));
  return hash == 0 ? 1 : hash;
}

}  // namespace

void Profile::learn(std::atomic<std::uint32_t>& field, const std::uint64_t figure) noexcept {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  const std::uint64_t old = field.load(std::memory_order_relaxed);
  const std::uint64_t next = old == 0 ? figure : old - old / 8 + figure / 8;
  field.store(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(next, 1, most)),
              std::memory_order_relaxed);
}

Profile* Profiles::enter(Task& task) noexcept {
  constexpr std::size_t neighbours = 16;
  const std::uint64_t kind = kind_of(task);
  task.profile = 0;
  for (std::size_t i = 0; i < neighbours; ++i) {
    const std::size_t place = (kind + i) % places;
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
    if (known != 0 && known <= level) break;  // so are those above
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

std::uint32_t Profiles::behind(const Task& task) const noexcept {
  const std::uint64_t mine = identity(task);
  const Known& known = known_[mine % tasks];
  return known.task.load(std::memory_order_relaxed) == mine
             ? known.behind_us.load(std::memory_order_relaxed)
             : 0;
}

void Profiles::sends(const Task& task, const std::uint64_t message) noexcept {
  Sent& sent = sent_[mix(0, message) % messages];
  sent.task.store(identity(task), std::memory_order_relaxed);
  sent.message.store(message, std::memory_order_relaxed);
}

void Profiles::learn(const std::uint64_t message, const float behind_us) noexcept {
  const Sent& sent = sent_[mix(0, message) % messages];
  if (sent.message.load(std::memory_order_relaxed) != message) return;
  const std::uint64_t task = sent.task.load(std::memory_order_relaxed);
  Known& known = known_[task % tasks];
  if (known.task.exchange(task, std::memory_order_relaxed) != task) {
    known.behind_us.store(0, std::memory_order_relaxed);
  }
  Profile::learn(known.behind_us, static_cast<std::uint64_t>(std::max(behind_us, 1.0F)));
}

}  // namespace imbrex::task
