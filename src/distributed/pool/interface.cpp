// SPDX-License-Identifier: BSD-3-Clause
// The functions behind imbrex/work_pool.hpp: a pool on the active messages of this process.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "distributed/carrier/errors.hpp"
#include "distributed/pool/pools.hpp"
#include "imbrex/detail/distributed/untyped_pool.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/spare_workers.hpp"
#include "imbrex/error.hpp"
#include "imbrex/runtime.hpp"
#include "mpi/active/active.hpp"

namespace imbrex::detail {

namespace active = mpi::active;

struct PoolState {
  distributed::Pools& pools;
  distributed::Pool pool;

  explicit PoolState(const distributed::Pool::Options& options)
      : pools(distributed::pools()), pool(pools.carrier(), distributed::waves(), options) {
    pools.add(pool);
  }
  ~PoolState() { pools.remove(pool); }

  std::optional<active::Expecting> until_left;  // while other ranks may need a pool that has left
};

PoolState* make_pool(const PoolSpec& spec) {
  distributed::refuse_simulation("work pool ", fmt::format("\"{}\"", spec.name));
  if (!started()) start();
  distributed::Pool::Options options;
  options.id = spec.id;
  options.item_bytes = spec.item_bytes;
  options.ranks.assign(spec.ranks.begin(), spec.ranks.end());
  options.name = spec.name;
  options.chunk = spec.chunk;
  options.interval = spec.poll_interval;
  options.victims = spec.victims;
  options.processors = std::max(1, worker_count());
  options.workers = std::max(options.processors, workers_with_spares());
  return new PoolState(options);
}

// A pool that an exception ends stays until the end of the process: its messages may come late.
void destroy_pool(PoolState* const pool) noexcept {
  if (pool->pool.options().ranks.size() == 1 || !pool->pool.is_unwound()) {
    delete pool;
    return;
  }
  pool->until_left.emplace();
  try {
    pool->pool.leave([](void* const state) noexcept {
      static_cast<PoolState*>(state)->until_left.reset();
    }, pool);
  } catch (...) {  // messages are closed: MPI_Finalize was called before
    distributed::report_at_end(std::current_exception());
  }
}

int pool_workers(const PoolState& pool) noexcept { return pool.pool.options().workers; }

void push_item(PoolState& pool, const void* const item) { pool.pool.push(item); }

WorkPoolCounters process_pool(PoolState& pool, const PoolBody& body) {
  std::optional<active::Expecting> expecting;
  if (pool.pool.options().ranks.size() > 1) expecting.emplace();
  return pool.pool.process(body);
}

void throw_pool_error(const char* const name, const char* const what) {
  throw Error(fmt::format("imbrex: work pool \"{}\" {}", name, what));
}

}  // namespace imbrex::detail
