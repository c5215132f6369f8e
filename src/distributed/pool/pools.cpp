// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/pool/pools.hpp"

#include <cstring>
#include <thread>

namespace imbrex::distributed {

void Pools::add(Pool& pool) {
  std::vector<Kept> kept;
  {
    const std::lock_guard guard(mutex_);
    const auto found = kept_.find(pool.options().id);
    if (found != kept_.end()) {
      kept = std::move(found->second);
      kept_.erase(found);
    }
    pools_[pool.options().id] = &pool;
  }
  // These messages are older than those that a handler takes from now on. The order does not
  // matter, since a rank that waits for the answer to a request sends no other.
  for (const Kept& one : kept) hand(one.from, one.message, pool);
}

void Pools::remove(Pool& pool) noexcept {
  const auto is_out = [this, &pool] {
    const std::lock_guard guard(mutex_);
    pools_.erase(pool.options().id);
    return inside_ == 0;
  };
  while (!is_out()) std::this_thread::yield();  // a few microseconds: handlers never wait
}

void Pools::receive(const int from, const Bytes message) {
  PoolHead head;
  std::memcpy(&head, message.data(), sizeof head);
  Pool* pool = nullptr;
  {
    const std::lock_guard guard(mutex_);
    const auto found = pools_.find(head.pool);
    if (found == pools_.end()) {
      kept_[head.pool].push_back({from, {message.begin(), message.end()}});
      return;
    }
    pool = found->second;
    ++inside_;
  }
  hand(from, message, *pool);
  const std::lock_guard guard(mutex_);
  --inside_;
}

void Pools::hand(const int from, const Bytes message, Pool& pool) {
  PoolHead head;
  std::memcpy(&head, message.data(), sizeof head);
  pool.receive(from, head, message.subspan(sizeof head));
}

}  // namespace imbrex::distributed
