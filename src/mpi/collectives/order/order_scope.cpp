// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/collectives/order/order_scope.hpp"

#include <fmt/format.h>

#include <mutex>
#include <unordered_map>

#include "base/arch.hpp"
#include "base/guarded.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"
#include "imbrex/mpi.hpp"

namespace imbrex::mpi::order {

std::atomic<int> scopes_open{0};

namespace {

// A task may resume in another thread, so scopes are found by the task. That costs a lock, but only
// for users of scopes.
struct Table {
  std::mutex lock;
  std::unordered_map<std::uint64_t, detail::OrderScope*> innermost IMBREX_GUARDED_BY(lock);
  // The names of keys: as many as the program uses.
  std::unordered_map<std::uint64_t, std::string> names IMBREX_GUARDED_BY(lock);
};
Table& table() {
  static Table& the_table = *new Table;  // tasks may end after static objects are destroyed
  return the_table;
}

constexpr std::uint64_t high_bit = std::uint64_t{1} << 63;

// Identifies the caller: a spawned task, or else the thread, which main and the code of other
// threads never leave. Numbers of tasks are small; numbers of threads have the highest bit set.
std::uint64_t caller() noexcept {
  if (detail::in_spawned_task()) return detail::current_task().id;
  return static_cast<std::uint64_t>(base::this_thread()) | high_bit;
}

}  // namespace

detail::OrderScope by_access(const void* const object, const std::size_t bytes, const int count,
                             const bool is_of_c) {
  if (count < 1) {
    throw Error(fmt::format("imbrex: order_collectives_as_spawned() of {} collectives: give 1 or "
                            "more", count));
  }
  return {.object = object, .bytes = bytes, .left = count, .is_of_c = is_of_c};
}

void open(detail::OrderScope& scope) {
  scope.owner = caller();
  Table& all = table();
  const std::lock_guard guard(all.lock);
  detail::OrderScope*& innermost = all.innermost[scope.owner];
  scope.outer = innermost;
  innermost = &scope;
  scopes_open.fetch_add(1, std::memory_order_relaxed);
}

void close(detail::OrderScope& scope) {
  const bool is_owner = scope.owner == caller();
  Table& all = table();
  const std::lock_guard guard(all.lock);
  const auto place = all.innermost.find(scope.owner);
  if (!is_owner || place == all.innermost.end() || place->second != &scope) {
    throw Error("imbrex: a scope of imbrex::order_collectives() must end in the task that began "
                "it, and after all scopes that were begun inside it");
  }
  place->second = scope.outer;
  if (scope.outer == nullptr) all.innermost.erase(place);
  scopes_open.fetch_sub(1, std::memory_order_relaxed);
}

detail::OrderScope* innermost() {
  const std::uint64_t owner = caller();
  Table& all = table();
  const std::lock_guard guard(all.lock);
  const auto place = all.innermost.find(owner);
  return place == all.innermost.end() ? nullptr : place->second;
}

std::uint64_t key_of(const std::string_view name) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a: the same on all ranks
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  const std::uint64_t key = hash | high_bit;
  Table& all = table();
  const std::lock_guard guard(all.lock);
  const auto [place, is_new] = all.names.try_emplace(key, name);
  if (!is_new && place->second != name) {
    throw Error(fmt::format("imbrex: order_collectives(\"{}\"): the key \"{}\" has the same number "
                            "by chance: change one of the two names",
                            name, place->second));
  }
  return key;
}

std::string text_of(const std::uint64_t key) {
  Table& all = table();
  const std::lock_guard guard(all.lock);
  const auto place = all.names.find(key);
  if (place != all.names.end()) return '"' + place->second + '"';
  return key < high_bit ? std::to_string(key)
                        : std::to_string(key) + " (the number of a name that this rank has not "
                                                "used)";
}

}  // namespace imbrex::mpi::order

namespace imbrex {

CollectiveOrder::CollectiveOrder(const std::uint64_t key)
    : scope_(std::make_unique<detail::OrderScope>(detail::OrderScope{.key = key})) {
  mpi::order::open(*scope_);
}

CollectiveOrder::CollectiveOrder(const std::string_view name)
    : CollectiveOrder(mpi::order::key_of(name)) {}

CollectiveOrder::CollectiveOrder(const void* const object, const std::size_t bytes, const int count)
    : scope_(std::make_unique<detail::OrderScope>(
          mpi::order::by_access(object, bytes, count, false))) {
  mpi::order::open(*scope_);
}

// No code could go on after an error, because the scope belongs to the task.
CollectiveOrder::~CollectiveOrder() { mpi::order::close(*scope_); }

}  // namespace imbrex
