// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/active/post/message_handlers.hpp"

#include <string>
#include <utility>

#include "mpi/engine/mpi_errors.hpp"
#include "mpi/engine/traffic.hpp"

namespace imbrex::mpi::active {

bool MessageHandlers::set(const std::uint32_t id, const Handler handler, void* const context) {
  const std::lock_guard guard(setting_);
  Registered& mine = registered_[id];
  if (mine.handler.load(std::memory_order_relaxed) != nullptr) return false;
  mine.context = context;
  mine.handler.store(handler, std::memory_order_release);
  work_.begin(OpenWork::Kind::kept);
  if (look_at_kept_.exchange(true, std::memory_order_acq_rel)) work_.end(OpenWork::Kind::kept);
  return true;
}

void MessageHandlers::dispatch(const std::uint32_t id, const int from,
                               const std::span<const std::byte> message) noexcept {
  if (id >= ids) return;  // send() refuses such a number
  const Handler handler = registered_[id].handler.load(std::memory_order_acquire);
  if (handler == nullptr || !kept_[id].empty()) {
    kept_[id].push_back({from, {message.begin(), message.end()}});
    return;
  }
  handler(registered_[id].context, from, message);
  traffic().count_handled();
}

int MessageHandlers::take_kept() noexcept {
  if (!look_at_kept_.load(std::memory_order_relaxed)) return 0;
  (void)look_at_kept_.exchange(false, std::memory_order_acq_rel);  // pairs with set()
  int count = 0;
  for (std::uint32_t id = 0; id < ids; ++id) {
    if (registered_[id].handler.load(std::memory_order_acquire) == nullptr) continue;
    for (std::deque<Kept> kept = std::exchange(kept_[id], {}); !kept.empty(); kept.pop_front()) {
      dispatch(id, kept.front().from, kept.front().bytes);
      ++count;
    }
  }
  work_.end(OpenWork::Kind::kept);
  return count;
}

void MessageHandlers::report_kept(const int rank) const {
  for (std::uint32_t id = 0; id < ids; ++id) {
    if (kept_[id].empty()) continue;
    print("MPI_Finalize: " + std::to_string(kept_[id].size()) + " active messages for handler " +
          std::to_string(id) + ", the first of them from rank " +
          std::to_string(kept_[id].front().from) + ", have no handler on rank " +
          std::to_string(rank) + ": call set_handler() on that rank");
  }
}

}  // namespace imbrex::mpi::active
