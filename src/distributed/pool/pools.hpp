// SPDX-License-Identifier: BSD-3-Clause
// The work pools of a process, by number. A message for a pool that is not made here yet is kept
// for it, because its sender came out of the constructor first.
//
// Thread safety: any thread; receive() as handlers of messages are called.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "distributed/pool/rank_pool.hpp"

namespace imbrex::distributed {

class Pools {
 public:
  explicit Pools(Carrier& carrier) noexcept : carrier_(carrier) {}

  [[nodiscard]] Carrier& carrier() const noexcept { return carrier_; }
  void add(Pool& pool);
  void remove(Pool& pool) noexcept;  // Returns when no message is handled for it any more.
  void receive(int from, Bytes message);

 private:
  struct Kept {
    int from;
    std::vector<std::byte> message;
  };
  void hand(int from, Bytes message, Pool& pool);

  Carrier& carrier_;
  std::mutex mutex_;  // held for a look into the maps
  std::map<std::uint64_t, Pool*> pools_ IMBREX_GUARDED_BY(mutex_);
  std::map<std::uint64_t, std::vector<Kept>> kept_ IMBREX_GUARDED_BY(mutex_);
  int inside_ IMBREX_GUARDED_BY(mutex_) = 0;  // handlers: none but while a message is handled
};

// The pools of this process, by active messages. REQUIRES: active messages are open.
[[nodiscard]] Pools& pools();

}  // namespace imbrex::distributed
