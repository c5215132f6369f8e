// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/matching/detour.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/guarded.hpp"

namespace imbrex::mpi::receive {

namespace {

// Few at a time: those that are matched or held, and not received.
struct Origins {
  std::atomic<int> size{0};  // written under the lock; whoever has a message has seen it counted
  std::mutex lock;
  std::vector<std::pair<MPI_Message, Origin>> all IMBREX_GUARDED_BY(lock);
};
Origins& origins() noexcept {
  static auto& all = *new Origins;  // requests may end after the end of static objects
  return all;
}

}  // namespace

void know_origin(MPI_Message message, const Origin& origin) {
  Origins& known = origins();
  const std::lock_guard guard(known.lock);
  known.all.emplace_back(message, origin);
  known.size.fetch_add(1, std::memory_order_relaxed);
}

bool find_origin(MPI_Message message, Origin& origin) noexcept {
  Origins& known = origins();
  if (known.size.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard guard(known.lock);
  for (const auto& [its_message, its_origin] : known.all) {
    if (its_message != message) continue;
    origin = its_origin;
    return true;
  }
  return false;
}

bool owns_origin(const void* owner) noexcept {
  Origins& known = origins();
  const std::lock_guard guard(known.lock);
  return std::any_of(known.all.begin(), known.all.end(),
                     [owner](const auto& entry) { return entry.second.owner == owner; });
}

void forget_origin(MPI_Message message) noexcept {
  Origins& known = origins();
  const std::lock_guard guard(known.lock);
  for (auto& entry : known.all) {
    if (entry.first != message) continue;
    entry = known.all.back();
    known.all.pop_back();
    known.size.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
}

}  // namespace imbrex::mpi::receive
