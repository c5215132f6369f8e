// SPDX-License-Identifier: BSD-3-Clause
// The library's knowledge of requests of programs. Most requests are MPI's own and are not here.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "mpi/messages/matching/known.hpp"
#include "mpi/messages/matching/match_queue.hpp"

namespace imbrex::mpi::messages {

// Maps a handle to its meaning. The table has shards, each with its own lock. Thread safety: any
// thread uses every member.
// Invariants:
//   (1) a shard is less than three quarters full.
//   (2) from the place that a key hashes to, its entry is found before an empty one.
class RequestTable {
 public:
  // Replaces an earlier entry. A posted receive that is replaced has ended unobserved.
  void know(MPI_Request request, Known known) { know(request, known, {}); }
  // `wanted`, for a posted receive, is kept for reports.
  void know(MPI_Request request, Known known, const Envelope& wanted);
  [[nodiscard]] Known find(MPI_Request request) noexcept;
  // Finds the envelope of a posted or a persistent receive. False for any other request.
  [[nodiscard]] bool find(MPI_Request request, Envelope& wanted, MPI_Comm& comm) noexcept;
  void forget(MPI_Request request) noexcept;
  // `request` has completed and is no longer counted as open. The argument is its handle before the
  // call that completed it.
  void complete(MPI_Request request) noexcept;

  // True if a request may be a token or persistent. A guess only if another thread makes one now.
  [[nodiscard]] bool has_substitutes() const noexcept {
    return substitutes_.load(std::memory_order_relaxed) != 0;
  }
  [[nodiscard]] bool empty() const noexcept { return size_.load(std::memory_order_relaxed) == 0; }

 private:
  struct Entry {
    std::uintptr_t key = 0;  // 0: empty; no handle is 0
    Known known;
    Envelope wanted = {};
  };
  struct alignas(64) Shard {
    base::SpinLock lock;
    std::size_t size IMBREX_GUARDED_BY(lock) = 0;
    std::vector<Entry> entries IMBREX_GUARDED_BY(lock);  // a power of two
  };

  [[nodiscard]] static std::uint64_t hash(std::uintptr_t key) noexcept {
    return key * 0x9E3779B97F4A7C15u;
  }
  [[nodiscard]] Shard& shard_of(std::uint64_t hash) noexcept { return shards_[hash >> 59]; }
  [[nodiscard]] static std::size_t home(const Shard& shard, std::uintptr_t key) noexcept
      IMBREX_REQUIRES(shard.lock) {
    return (hash(key) >> 20) & (shard.entries.size() - 1);
  }
  [[nodiscard]] static Entry& place_of(Shard& shard, std::uintptr_t key) noexcept
      IMBREX_REQUIRES(shard.lock);
  static void grow(Shard& shard) IMBREX_REQUIRES(shard.lock);
  static void close_gap(Shard& shard, std::size_t gap) noexcept IMBREX_REQUIRES(shard.lock);
  void count(Known known, int change) noexcept;
  void remove(Shard& shard, Entry& entry) noexcept IMBREX_REQUIRES(shard.lock);

  std::array<Shard, 32> shards_;
  std::atomic<int> substitutes_{0};  // any thread, relaxed
  std::atomic<int> size_{0};         // any thread, relaxed
};

[[nodiscard]] RequestTable& requests() noexcept;

}  // namespace imbrex::mpi::messages
