// SPDX-License-Identifier: BSD-3-Clause
// What imbrex knows of requests that programs hold. Most requests are MPI's own and are not here.
#pragma once

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "mpi/messages/matching/match_queue.hpp"

namespace imbrex::mpi::receive {

class Communicator;
struct Persistent;
struct Token;

// What a request is known as: one of three things, or nothing. The lowest bits of the pointer say
// which.
class Known {
 public:
  Known() = default;
  Known(Token& token) noexcept : word_(word(&token) | 1) {}
  Known(Persistent& persistent) noexcept : word_(word(&persistent) | 2) {}
  Known(Communicator& posted_on) noexcept : word_(word(&posted_on) | 3) {}

  // A generalised request that stands for an operation of ours.
  [[nodiscard]] Token* token() const noexcept { return as<Token>(1); }
  // A persistent receive, or one that sends a long message.
  [[nodiscard]] Persistent* persistent() const noexcept { return as<Persistent>(2); }
  // A receive that MPI has, counted by its communicator.
  [[nodiscard]] Communicator* posted_on() const noexcept { return as<Communicator>(3); }

 private:
  static std::uintptr_t word(void* pointer) noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer);
  }
  template <class T>
  [[nodiscard]] T* as(std::uintptr_t kind) const noexcept {
    return (word_ & 3) == kind ? reinterpret_cast<T*>(word_ & ~std::uintptr_t{3}) : nullptr;
  }
  std::uintptr_t word_ = 0;
};

// Maps a handle to what is known of it. The table has shards, each with its own lock.
// Thread safety: every member, any thread.
// Invariants: (1) a shard is less than three quarters full; (2) from the place that a key hashes
// to, its entry is found before an empty one.
class RequestTable {
 public:
  // Replaces what was known. A posted receive that is replaced has ended out of our sight.
  void know(MPI_Request request, Known known) { know(request, known, {}); }
  // `wanted`, of a receive that MPI has, is kept for reports.
  void know(MPI_Request request, Known known, const Envelope& wanted);
  [[nodiscard]] Known find(MPI_Request request) noexcept;
  // Finds what a receive that MPI has, or a persistent one, asks for. False for any other request.
  [[nodiscard]] bool find(MPI_Request request, Envelope& wanted, MPI_Comm& comm) noexcept;
  void forget(MPI_Request request) noexcept;
  // `request` has completed and is no longer counted as open. Its handle is given as it was before
  // the call that completed it.
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

}  // namespace imbrex::mpi::receive
