// SPDX-License-Identifier: BSD-3-Clause
// Locks, critical regions and the lock of atomic operations that the processor does not have. A
// task that waits for a lock is suspended; a task that holds one may be suspended, too: its thread
// runs other tasks.
//
// A lock is a word: 0 free, 1 taken, 2 taken and perhaps waited for. The task that frees it wakes
// one waiter; other tasks may be faster. Why no wake-up is lost: a sleeping task has made the word
// 2 and found it taken. Only the task that frees the lock changes a 2, and then wakes one; a task
// that takes it after sleeping leaves a 2, because others may sleep.
#include "omp/calls/locks.hpp"

#include <atomic>

#include "base/arch.hpp"
#include "imbrex/detail/groups.hpp"
#include "omp/region/context.hpp"
#include "omp/region/gate.hpp"

namespace imbrex::omp {

namespace {

std::atomic_ref<int> word(int& lock) noexcept { return std::atomic_ref(lock); }

// A lock that was taken before locks count may be given back later: note_lock() ignores that.
void count(const int change) noexcept {
  if (detail::locks_matter.load(std::memory_order_relaxed)) detail::note_lock(change);
}

bool try_take_uncounted(int& lock) noexcept {
  int free = 0;
  // acquire: pairs with put()
  return word(lock).load(std::memory_order_relaxed) == 0 &&
         word(lock).compare_exchange_strong(free, 1, std::memory_order_acquire,
                                            std::memory_order_relaxed);
}

}  // namespace

bool try_take(int& lock) noexcept {
  if (!try_take_uncounted(lock)) return false;
  count(1);
  return true;
}

void take(int& lock, const char* const what) {
  if (!try_take_uncounted(lock)) {
    wait_until(
        &lock, what, Patience(true), [&lock] { return try_take_uncounted(lock); },
        [&lock] { return word(lock).exchange(2, std::memory_order_acquire) == 0; });
  }
  count(1);
}

// If no task sleeps, this touches no shared memory but the word.
void put(int& lock) noexcept {
  count(-1);
  if (word(lock).exchange(0, std::memory_order_release) == 2) wake_one(&lock);
}

namespace {

int region_lock = 0;  // of critical regions without a name
int atomic_lock = 0;

// A nested lock belongs to a task, which may take it again.
struct NestLock {
  int lock;
  int count;
  void* owner;  // only its owner finds itself there
};

std::atomic_ref<void*> owner(NestLock& nest) noexcept { return std::atomic_ref(nest.owner); }

int take_nested(NestLock& nest, const bool wait) {
  void* const me = &caller();
  if (owner(nest).load(std::memory_order_relaxed) != me) {
    if (wait) {
      take(nest.lock, "nested lock");
    } else if (!try_take(nest.lock)) {
      return 0;
    }
    owner(nest).store(me, std::memory_order_relaxed);
    nest.count = 0;
  }
  return ++nest.count;
}

void put_nested(NestLock& nest) noexcept {
  if (--nest.count != 0) return;
  owner(nest).store(nullptr, std::memory_order_relaxed);
  put(nest.lock);
}

// A nestable lock of OpenMP before 3.0, when it belonged to a thread.
struct OldNestLock {
  int owner;  // 0: free
  int count;
};

int take_old(OldNestLock& nest, const bool wait) {
  // Read at each attempt: a waiting task may resume in another thread, which is the owner then.
  const auto free = [&nest] {
    int expected = 0;
    return std::atomic_ref(nest.owner).compare_exchange_strong(
        expected, base::kernel_thread_id(), std::memory_order_acquire, std::memory_order_relaxed);
  };
  const int owner = std::atomic_ref(nest.owner).load(std::memory_order_relaxed);
  if (owner != base::kernel_thread_id() && !free()) {
    if (!wait) return 0;
    wait_until(&nest.owner, "nested lock", free);
  }
  if (nest.count == 0) count(1);
  return ++nest.count;
}

void put_old(OldNestLock& nest) noexcept {
  if (--nest.count != 0) return;
  count(-1);
  std::atomic_ref(nest.owner).store(0, std::memory_order_release);
  wake_one(&nest.owner);
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

void GOMP_critical_start() { take(region_lock, "critical"); }
void GOMP_critical_end() { put(region_lock); }
// `word` belongs to the compiler, one for each name; this library may store any value in it.
void GOMP_critical_name_start(void** word) { take(*reinterpret_cast<int*>(word), "critical"); }
void GOMP_critical_name_end(void** word) { put(*reinterpret_cast<int*>(word)); }
void GOMP_atomic_start() { take(atomic_lock, "atomic"); }
void GOMP_atomic_end() { put(atomic_lock); }

// A function for C, and for Fortran with its underscore.
#define IMBREX_OMP_LOCK(type, name, arguments, body) \
  type name arguments body                           \
  type name##_ arguments body

// The functions of OpenMP before 3.0 have their own kind of lock. Fortran's variable has room for
// an address only, and so has that of LLVM's omp.h.
#define IMBREX_OMP_NEST_LOCK(type, name, body, old_body) \
  type name(NestLock* nest) body                         \
  type old_##name(OldNestLock* nest) old_body            \
  type old_##name##_(OldNestLock* nest) old_body         \
  type name##_(NestLock** address) {                     \
    NestLock* const nest = *address;                     \
    body                                                 \
  }

IMBREX_OMP_LOCK(void, omp_init_lock, (int* lock), { *lock = 0; })
IMBREX_OMP_LOCK(void, omp_init_lock_with_hint, (int* lock, int), { *lock = 0; })
IMBREX_OMP_LOCK(void, omp_destroy_lock, (int*), {})
IMBREX_OMP_LOCK(void, omp_set_lock, (int* lock), { take(*lock, "lock"); })
IMBREX_OMP_LOCK(void, omp_unset_lock, (int* lock), { put(*lock); })
IMBREX_OMP_LOCK(int, omp_test_lock, (int* lock), { return try_take(*lock) ? 1 : 0; })

IMBREX_OMP_NEST_LOCK(void, omp_set_nest_lock, { (void)take_nested(*nest, true); },
                     { (void)take_old(*nest, true); })
IMBREX_OMP_NEST_LOCK(void, omp_unset_nest_lock, { put_nested(*nest); }, { put_old(*nest); })
IMBREX_OMP_NEST_LOCK(int, omp_test_nest_lock, { return take_nested(*nest, false); },
                     { return take_old(*nest, false); })

void omp_init_nest_lock(NestLock* nest) { *nest = {}; }
void old_omp_init_nest_lock(OldNestLock* nest) { *nest = {}; }
void old_omp_init_nest_lock_(OldNestLock* nest) { *nest = {}; }
void omp_init_nest_lock_(NestLock** address) { *address = new NestLock{}; }
void omp_init_nest_lock_with_hint_(NestLock** address, int) { *address = new NestLock{}; }
void omp_destroy_nest_lock(NestLock*) {}
void old_omp_destroy_nest_lock(OldNestLock*) {}
void old_omp_destroy_nest_lock_(OldNestLock*) {}
void omp_destroy_nest_lock_(NestLock** address) {
  delete *address;
  *address = nullptr;
}

}
#pragma GCC visibility pop
