// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/phasers/phaser_communicators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <source_location>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/future.hpp"
#include "mpi/calls/spare.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/messages/matching/wait.hpp"

namespace imbrex::mpi::phasers {

struct Pair {
  MPI_Comm phases = MPI_COMM_NULL;
  MPI_Comm farewells = MPI_COMM_NULL;
};

namespace {

constexpr const char* made_call = "MpiPhaser made";  // the call, for reports
constexpr std::size_t shared_slots = 64;        // slots for reuse; bits of a word
constexpr int key_most = (1 << 29) - 1;         // two tags for each

void require(const int code) {
  if (code != MPI_SUCCESS) throw make_error(made_call, code, detail::describe_current_task());
}

// Carries out a collective of this library on `comm`. Suspends.
template <class Start>
void collective(const MPI_Comm comm, Start start) {
  const Call call{.name = made_call, .comm = comm, .kind = Kind::collective, .throws = true};
  require(carry_out(call, MPI_STATUS_IGNORE, start));
}

MPI_Comm duplicate(const MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  collective(comm, [&](MPI_Request* const request) {
    return PMPI_Comm_idup(comm, &copy, request);
  });
  PMPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  return copy;
}

void free_pair(Pair& pair) noexcept {
  PMPI_Comm_free(&pair.phases);
  PMPI_Comm_free(&pair.farewells);
}

}  // namespace

struct Pool {
  struct Slot {
    Pair pair;
    bool idle = false;
  };
  struct Keyed {
    Pair pair;
    Promise<void> ended{"the end of the MpiPhaser that has this key", std::source_location()};
  };

  // Written before `ready`.
  MPI_Comm comm = MPI_COMM_NULL;  // of the pool itself
  int rank = 0;
  int size = 0;
  std::exception_ptr failure = nullptr;  // it could not be made

  Promise<void> ready{"the first MpiPhaser of this communicator", std::source_location()};
  Future<void> is_ready = ready.future();
  std::atomic<bool> making{false};  // a task makes a phaser without a key

  std::mutex lock;
  std::vector<Slot> slots IMBREX_GUARDED_BY(lock);  // the same on all ranks, except `idle`
  std::map<int, Keyed> keyed IMBREX_GUARDED_BY(lock);
  // The communicator of the phasers has been freed: each pair is freed with its phaser.
  bool orphaned IMBREX_GUARDED_BY(lock) = false;
};

namespace {

// ---- the pool of a communicator ----------------------------------------------------------------

struct Pools {
  std::mutex lock;
  std::map<MPI_Comm, std::shared_ptr<Pool>> all IMBREX_GUARDED_BY(lock);
  int key IMBREX_GUARDED_BY(lock) = MPI_KEYVAL_INVALID;  // of the attribute that reports the end
};

Pools& pools() {
  static Pools& the_pools = *new Pools;  // used while static destructors run
  return the_pools;
}

// Idle pairs are freed at once. Each rank frees communicators on its own: the known MPIs do not
// communicate for that.
void orphan(Pool& pool) noexcept {
  const std::lock_guard guard(pool.lock);
  pool.orphaned = true;
  for (Pool::Slot& slot : pool.slots) {
    if (std::exchange(slot.idle, false)) free_pair(slot.pair);
  }
  for (auto& [key, keyed] : pool.keyed) {
    if (keyed.ended.future().ready() && keyed.pair.phases != MPI_COMM_NULL) free_pair(keyed.pair);
  }
  if (pool.comm != MPI_COMM_NULL) PMPI_Comm_free(&pool.comm);
}

int forget_pool(const MPI_Comm comm, int, void*, void*) {
  std::shared_ptr<Pool> pool;
  {
    const std::lock_guard guard(pools().lock);
    const auto found = pools().all.find(comm);
    if (found == pools().all.end()) return MPI_SUCCESS;
    pool = std::move(found->second);
    pools().all.erase(found);
  }
  orphan(*pool);
  return MPI_SUCCESS;
}

// True for the task that must make it.
bool find_pool(const MPI_Comm comm, std::shared_ptr<Pool>& pool) {
  const std::lock_guard guard(pools().lock);
  std::shared_ptr<Pool>& found = pools().all[comm];
  const bool is_new = found == nullptr;
  if (is_new) found = std::make_shared<Pool>();
  pool = found;
  return is_new;
}

void make_pool(const MPI_Comm comm, Pool& pool) {
  try {
    pool.comm = duplicate(comm);
    PMPI_Comm_rank(comm, &pool.rank);
    PMPI_Comm_size(comm, &pool.size);
    const std::lock_guard guard(pools().lock);
    int& key = pools().key;
    if (key == MPI_KEYVAL_INVALID) {
      require(PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &forget_pool, &key, nullptr));
    }
    require(PMPI_Comm_set_attr(comm, key, &pool));
  } catch (...) {
    {
      const std::lock_guard guard(pools().lock);
      pools().all.erase(comm);
    }
    pool.failure = std::current_exception();
    pool.ready.set();
    throw;
  }
  pool.ready.set();
}

std::shared_ptr<Pool> pool_of(const MPI_Comm comm) {
  std::shared_ptr<Pool> pool;
  if (find_pool(comm, pool)) {
    make_pool(comm, *pool);
  } else {
    pool->is_ready.get();
    if (pool->failure) std::rethrow_exception(pool->failure);
  }
  return pool;
}

// ---- what ranks wish ---------------------------------------------------------------------------

// Reports the different wishes of the ranks. All ranks know that they differ.
[[noreturn]] void refuse_wishes(const Pool& pool, const MPI_Comm comm, const std::string& wish) {
  using Text = std::array<char, 256>;
  Text mine{};
  std::memcpy(mine.data(), wish.data(), std::min(wish.size(), mine.size() - 1));
  std::vector<Text> all(static_cast<std::size_t>(pool.size));
  collective(comm, [&](MPI_Request* const request) {
    constexpr int bytes = sizeof(Text);
    return PMPI_Iallgather(mine.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, comm,
                           request);
  });
  const auto other = std::ranges::find_if(all, [&](const Text& text) { return text != all[0]; });
  throw Error(fmt::format(
      "imbrex: the ranks do not make the same MpiPhaser: rank 0 makes {}, rank {} makes {}. All "
      "ranks of a communicator must make their MpiPhasers in the same order, with the same names "
      "and options; or give each a key (made by {})",
      all[0].data(), other - all.begin(), other == all.end() ? "?" : other->data(),
      detail::describe_current_task()));
}

// The bitwise "and" of all ranks' `mine`. Throws Error if their wishes differ.
std::uint64_t agree(const Pool& pool, const MPI_Comm comm, const std::string& wish,
                    const std::uint64_t mine) {
  const std::uint64_t hash = std::hash<std::string>()(wish);
  const std::array<std::uint64_t, 3> from{mine, hash, ~hash};
  std::array<std::uint64_t, 3> all{};
  collective(comm, [&](MPI_Request* const request) {
    return PMPI_Iallreduce(from.data(), all.data(), 3, MPI_UINT64_T, MPI_BAND, comm, request);
  });
  if (all[1] != hash || all[2] != ~hash) refuse_wishes(pool, comm, wish);
  return all[0];
}

// ---- by order ----------------------------------------------------------------------------------

class Making {
 public:
  explicit Making(Pool& pool) : pool_(pool) {
    if (!pool_.making.exchange(true, std::memory_order_acquire)) return;
    throw Error(fmt::format(
        "imbrex: an MpiPhaser is made by {} while another task makes one over the same "
        "communicator: other ranks may make the two in another order. Make one after the other, or "
        "give each a key",
        detail::describe_current_task()));
  }
  ~Making() { pool_.making.store(false, std::memory_order_release); }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

 private:
  Pool& pool_;
};

std::uint64_t idle_slots(Pool& pool) {
  const std::lock_guard guard(pool.lock);
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < std::min(pool.slots.size(), shared_slots); ++i) {
    if (pool.slots[i].idle) mask |= std::uint64_t{1} << i;
  }
  return mask;
}

Channel take_in_order(const std::shared_ptr<Pool>& pool, const std::string& wish) {
  const Making guard_of_order(*pool);
  const std::uint64_t idle = agree(*pool, pool->comm, wish, idle_slots(*pool));
  Pair fresh;
  if (idle == 0) fresh = {duplicate(pool->comm), duplicate(pool->comm)};
  const std::lock_guard guard(pool->lock);
  std::size_t slot = static_cast<std::size_t>(std::countr_zero(idle));
  if (idle == 0) {
    slot = pool->slots.size();
    pool->slots.push_back({fresh, false});
  }
  pool->slots[slot].idle = false;
  const Pair& pair = pool->slots[slot].pair;
  return {pair.phases, pair.farewells, pool->rank, pool->size, pool, slot};
}

// ---- by key ------------------------------------------------------------------------------------

MPI_Comm duplicate_by_tag(const MPI_Comm comm, const int tag) {
  MPI_Group group = MPI_GROUP_NULL;
  require(PMPI_Comm_group(comm, &group));
  MPI_Comm copy = MPI_COMM_NULL;
  const int code = by_spare_thread(
      made_call, [&] { return PMPI_Comm_create_group(comm, group, tag, &copy); });
  PMPI_Group_free(&group);
  require(code);
  PMPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  return copy;
}

// Waits for an earlier phaser of this key to end, and takes its place. Null: there was none.
Pair take_keyed(Pool& pool, const int key) {
  for (;;) {
    Future<void> earlier;
    {
      const std::lock_guard guard(pool.lock);
      const auto [place, is_new] = pool.keyed.try_emplace(key);
      if (is_new) return {};
      if (place->second.ended.future().ready()) {
        place->second.ended = Promise<void>("the end of the MpiPhaser that has this key",
                                            std::source_location());
        return place->second.pair;
      }
      earlier = place->second.ended.future();
    }
    earlier.wait();
  }
}

Channel take_by_key(const std::shared_ptr<Pool>& pool, const int key, const std::string& wish) {
  Pair pair = take_keyed(*pool, key);
  if (pair.phases == MPI_COMM_NULL) {
    try {
      pair = {duplicate_by_tag(pool->comm, 2 * key), duplicate_by_tag(pool->comm, 2 * key + 1)};
    } catch (...) {  // waiting tasks try in their turn
      const std::lock_guard guard(pool->lock);
      pool->keyed.erase(key);
      throw;
    }
    const std::lock_guard guard(pool->lock);
    pool->keyed[key].pair = pair;
  }
  Channel channel{pair.phases, pair.farewells, pool->rank, pool->size, pool, 0, key};
  try {
    (void)agree(*pool, pair.phases, wish, 0);
  } catch (...) {
    give_back(channel, true);
    throw;
  }
  return channel;
}

}  // namespace

Channel take_channel(const MPI_Comm comm, const std::optional<int> key, const std::string& wish) {
  int between_two = 0;
  require(comm == MPI_COMM_NULL ? MPI_ERR_COMM : PMPI_Comm_test_inter(comm, &between_two));
  if (between_two != 0) {
    throw Error("imbrex: an MpiPhaser over an inter-communicator: use MPI_Intercomm_merge first");
  }
  if (key && (*key < 0 || *key > key_most)) {
    throw Error(fmt::format("imbrex: an MpiPhaser with the key {}: keys are 0 to {}", *key,
                            key_most));
  }
  const std::shared_ptr<Pool> pool = pool_of(comm);
  Channel channel = key ? take_by_key(pool, *key, wish) : take_in_order(pool, wish);
  PMPI_Comm_set_name(channel.phases, wish.substr(0, MPI_MAX_OBJECT_NAME - 1).c_str());
  return channel;
}

void give_back(const Channel& channel, const bool reusable) noexcept {
  Pool& pool = *channel.pool;
  std::optional<Promise<void>> ended;
  {
    const std::lock_guard guard(pool.lock);
    if (channel.key) {
      Pool::Keyed& keyed = pool.keyed[*channel.key];
      ended = keyed.ended;
      if (!reusable) {
        keyed.pair = {};  // the next makes another
      } else if (pool.orphaned) {
        free_pair(keyed.pair);
      }
    } else if (reusable && (pool.orphaned || channel.slot >= shared_slots)) {
      free_pair(pool.slots[channel.slot].pair);
    } else {
      pool.slots[channel.slot].idle = reusable;
    }
  }
  if (ended) ended->set();  // waiting tasks may go on, so without the lock
}

void end_pools() noexcept {
  std::map<MPI_Comm, std::shared_ptr<Pool>> all;
  int key = MPI_KEYVAL_INVALID;
  {
    const std::lock_guard guard(pools().lock);
    all.swap(pools().all);
    key = std::exchange(pools().key, MPI_KEYVAL_INVALID);
  }
  for (const auto& [comm, pool] : all) {
    PMPI_Comm_delete_attr(comm, key);
    orphan(*pool);
  }
  if (key != MPI_KEYVAL_INVALID) PMPI_Comm_free_keyval(&key);
}

}  // namespace imbrex::mpi::phasers
