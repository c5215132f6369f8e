// SPDX-License-Identifier: BSD-3-Clause
// The messages between the ranks of a work pool.
#pragma once

#include <cstddef>
#include <cstdint>

#include "distributed/carrier/carrier.hpp"
#include "imbrex/detail/distributed/untyped_pool.hpp"

namespace imbrex::distributed {

enum class PoolMessage : std::uint8_t {
  steal,  // asks for items
  work,   // items; `last` if they end the answer to a request, `pushed` if no request asked for
          // them
  none,   // the answer to a request: no items
  failed,  // the sender's function has thrown; the text
  left     // an exception has ended the pool on the sending rank, before this round
};

struct PoolHead {
  std::uint64_t pool;
  std::uint32_t round;   // process() of the pool, from 1 on
  PoolMessage kind;
  bool lifeline = false;  // for a request: if there are none, send some as soon as there are
  bool last = false;
  bool pushed = false;
};
static_assert(sizeof(PoolHead) + detail::item_bytes_max == message_bytes_max);

}  // namespace imbrex::distributed
