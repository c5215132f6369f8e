// SPDX-License-Identifier: BSD-3-Clause
// The communicators by their handles: one object for each that a call has named, kept with the
// communicator as an attribute, so that it ends with it.
#include "mpi/messages/matching/communicators.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/guarded.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/lifetime.hpp"

namespace imbrex::mpi::messages {

// Found by their handles. Thread safety: any thread uses every member. Invariant (1): an object is
// never freed, but reused for other communicators: a thread that walks a chain may meet an object
// that has just moved to another chain, miss its own, and then search under the lock.
class Communicators {
 public:
  // The object of `comm`. Null if there is none or, seldom, if chains change meanwhile: see (1).
  [[nodiscard]] Communicator* find_known(MPI_Comm comm) noexcept {
    const std::uintptr_t key = key_of(comm);
    for (Communicator* one = chain_of(key).load(std::memory_order_acquire); one != nullptr;
         one = one->next_.load(std::memory_order_acquire)) {
      if (one->key_.load(std::memory_order_acquire) == key) return one;
    }
    return nullptr;
  }
  // Searches under the lock, and makes the object if there is none.
  [[nodiscard]] Communicator* find_or_make(MPI_Comm comm);

  void forget(Communicator& gone) {
    const std::lock_guard guard(mutex_);
    std::atomic<Communicator*>* link = &chain_of(gone.key_.load(std::memory_order_relaxed));
    while (Communicator* const one = link->load(std::memory_order_relaxed)) {
      if (one == &gone) {
        link->store(one->next_.load(std::memory_order_relaxed), std::memory_order_release);
        gone.key_.store(0, std::memory_order_release);
        unused_.push_back(&gone);
        return;
      }
      link = &one->next_;
    }
  }

  void for_each(const std::function<void(Communicator&)>& visit) {
    const std::lock_guard guard(mutex_);
    for (const auto& chain : chains_) {
      for (Communicator* one = chain.load(std::memory_order_relaxed); one != nullptr;
           one = one->next_.load(std::memory_order_relaxed)) {
        visit(*one);
      }
    }
  }

  // MPI itself keeps the key for as long as an attribute needs it.
  void end() noexcept {
    const std::lock_guard guard(mutex_);
    if (keyval_ != MPI_KEYVAL_INVALID) PMPI_Comm_free_keyval(&keyval_);
  }

 private:
  using Chain = std::atomic<Communicator*>;
  static constexpr std::size_t chain_count = 1024;

  // Handles are pointers or ints; none is 0.
  [[nodiscard]] static std::uintptr_t key_of(MPI_Comm comm) noexcept {
    return (std::uintptr_t)comm;
  }
  [[nodiscard]] Chain& chain_of(std::uintptr_t key) noexcept {
    return chains_[(key * 0x9E3779B97F4A7C15u) >> 54];
  }

  [[nodiscard]] int keyval() IMBREX_REQUIRES(mutex_);

  std::array<Chain, chain_count> chains_{};  // written under the lock, release; read without
  std::mutex mutex_;
  std::vector<Communicator*> unused_ IMBREX_GUARDED_BY(mutex_);
  int keyval_ IMBREX_GUARDED_BY(mutex_) = MPI_KEYVAL_INVALID;
};

namespace {

Communicators& communicators() {
  static Communicators& all = *new Communicators;
  return all;
}

// Called by MPI when a communicator is freed. Receives that still wait there fail. MPI_Comm_free
// has given them to MPI before.
int forget(MPI_Comm, int, void* value, void*) {
  Communicator& gone = *static_cast<Communicator*>(value);
  // in_service() would complain.
  if (switches.is_active.load(std::memory_order_relaxed)) gone.close(false);
  communicators().forget(gone);
  return MPI_SUCCESS;
}

}  // namespace

int Communicators::keyval() {
  if (keyval_ == MPI_KEYVAL_INVALID) {
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &messages::forget, &keyval_, nullptr);
  }
  return keyval_;
}

// The calls of MPI under the lock are local and call no function of the user.
Communicator* Communicators::find_or_make(MPI_Comm comm) {
  const std::lock_guard guard(mutex_);
  if (Communicator* const known = find_known(comm)) return known;  // under the lock: certain
  const std::uintptr_t key = key_of(comm);
  if (unused_.empty()) unused_.push_back(std::make_unique<Communicator>().release());
  Communicator& one = *unused_.back();
  if (PMPI_Comm_set_attr(comm, keyval(), &one) != MPI_SUCCESS) return nullptr;
  unused_.pop_back();
  one.name(comm);
  one.next_.store(chain_of(key).load(std::memory_order_relaxed), std::memory_order_release);
  one.key_.store(key, std::memory_order_release);
  chain_of(key).store(&one, std::memory_order_release);
  return &one;
}

Communicator* communicator_of(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return nullptr;
  Communicator* const known = communicators().find_known(comm);
  return known != nullptr ? known : communicators().find_or_make(comm);
}

Communicator* known_communicator_of(MPI_Comm comm) noexcept {
  return comm == MPI_COMM_NULL ? nullptr : communicators().find_known(comm);
}

void for_each_communicator(const std::function<void(Communicator&)>& visit) {
  communicators().for_each(visit);
}

void end_communicators() noexcept { communicators().end(); }

}  // namespace imbrex::mpi::messages
