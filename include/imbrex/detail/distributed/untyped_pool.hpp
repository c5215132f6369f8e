// SPDX-License-Identifier: BSD-3-Clause
// Work pools without their type: the functions that imbrex/work_pool.hpp reduces to. Items are
// bytes. Names no type of MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <vector>

#pragma GCC visibility push(default)

namespace imbrex {

// The work of one worker in a process(), or of all workers of a rank. Each moment of a worker is of
// one of four kinds (Chatterjee et al., table III).
struct WorkPoolTally {
  std::uint64_t items = 0;  // items that `f` was called for
  double work_s = 0;        // in `f`, and on the worker's private stack
  // Between two pieces of work: sharing items, answering other ranks, polling, and other tasks of
  // the program.
  double overhead_s = 0;
  double search_s = 0;      // without items, between two pieces of work
  double idle_s = 0;        // before its first item and after its last one
};

// Counters of one rank.
struct WorkPoolCounters : WorkPoolTally {
  double elapsed_s = 0;
  std::uint64_t steals = 0;         // requests to another rank that brought items
  std::uint64_t failed_steals = 0;  // requests to another rank that brought none
  std::uint64_t lifeline_pushes = 0;  // times that items went to a rank that had stopped asking
  std::uint64_t items_sent = 0;       // to other ranks
  std::uint64_t items_received = 0;
  std::vector<WorkPoolTally> workers;
};

namespace detail {

inline constexpr std::size_t item_bytes_max = 3952;  // a message of one item
inline constexpr std::size_t item_alignment_max = 64;

// Items in a row; the last ones are worked on, the first ones given away. One thread at a time uses
// a stack.
class ItemStack {
 public:
  ItemStack() = default;
  ~ItemStack();
  ItemStack(const ItemStack&) = delete;
  ItemStack& operator=(const ItemStack&) = delete;

  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(top - bottom);
  }
  void make_room(std::size_t more);  // at least so many bytes behind `top`; all items may move
  void clear() noexcept { top = bottom; }
  // Moves that many bytes, the first or the last ones of `from`, behind the items that are here.
  void take_first(ItemStack& from, std::size_t some);
  void take_last(ItemStack& from, std::size_t some);
  void add(const void* items, std::size_t some);

  std::byte* bottom = nullptr;
  std::byte* top = nullptr;
  std::byte* end = nullptr;
  int worker = 0;

 private:
  std::byte* memory_ = nullptr;
};

struct PoolBody {
  // Calls the function for the last item, again and again, at most `count` times; returns the
  // number of calls.
  std::uint64_t (*run)(void* function, ItemStack& stack, std::uint64_t count);
  void* function;
  std::source_location where;  // of process()
};

struct PoolSpec {
  std::uint64_t id;  // the same on all ranks
  std::size_t item_bytes;
  std::span<const int> ranks;  // ranks of MPI_COMM_WORLD, this one among them
  const char* name;            // not copied
  std::uint32_t chunk, poll_interval, victims;  // as in WorkPoolOptions
};

struct PoolState;
[[nodiscard]] PoolState* make_pool(const PoolSpec& spec);
void destroy_pool(PoolState* pool) noexcept;
[[nodiscard]] int pool_workers(const PoolState& pool) noexcept;
void push_item(PoolState& pool, const void* item);
[[nodiscard]] WorkPoolCounters process_pool(PoolState& pool, const PoolBody& body);  // Suspends.
[[noreturn]] void throw_pool_error(const char* name, const char* what);

}  // namespace detail
}  // namespace imbrex

#pragma GCC visibility pop
