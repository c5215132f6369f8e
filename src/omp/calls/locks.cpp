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

void take_heard(int& lock, const tools::Mutex kind, const char* const what,
                const tools::Call call) {
  tools::enter(call);
  tools::acquire(kind, &lock);
  take(lock, what);
  tools::acquired(kind, &lock);
}

bool try_take_heard(int& lock, const tools::Call call) {
  tools::enter(call);
  tools::acquire(tools::Mutex::test_lock, &lock);
  const bool taken = try_take(lock);
  if (taken) tools::acquired(tools::Mutex::test_lock, &lock);
  return taken;
}

void put_heard(int& lock, const tools::Mutex kind, const tools::Call call) {
  tools::enter(call);
  put(lock);
  tools::released(kind, &lock);
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

// ---- for the functions of the faces: these also tell a tool ------------------------------------

template <class Nest>
[[gnu::always_inline]] inline int take_nest_here(Nest& nest, int (*const take_it)(Nest&, bool),
                                                 const bool wait) {
  tools::entered();
  const tools::Mutex kind = wait ? tools::Mutex::nest_lock : tools::Mutex::test_nest_lock;
  if (tools::on()) [[unlikely]] tools::acquire(kind, &nest);
  const int count = take_it(nest, wait);
  if (!tools::on() || count == 0) [[likely]] return count;
  if (count == 1) {
    tools::acquired(kind, &nest);
  } else {
    tools::nest(tools::Endpoint::begin, &nest);
  }
  return count;
}
template <class Nest>
[[gnu::always_inline]] inline void put_nest_here(Nest& nest, void (*const put_it)(Nest&) noexcept) {
  tools::entered();
  const bool is_last = nest.count == 1;
  put_it(nest);
  if (!tools::on()) [[likely]] return;
  if (is_last) {
    tools::released(tools::Mutex::nest_lock, &nest);
  } else {
    tools::nest(tools::Endpoint::end, &nest);
  }
}
template <class Nest>
[[gnu::always_inline]] inline void init_nest_here(Nest& nest, const int hint) {
  tools::entered();
  nest = {};
  if (tools::on()) [[unlikely]] {
    tools::init_lock(tools::Mutex::nest_lock, &nest, static_cast<unsigned>(hint));
  }
}
[[gnu::always_inline]] inline void destroy_nest_here(const void* const nest) {
  tools::entered();
  if (tools::on()) [[unlikely]] tools::destroy_lock(tools::Mutex::nest_lock, nest);
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

void GOMP_critical_start() { take_here(region_lock, tools::Mutex::critical, "critical"); }
void GOMP_critical_end() { put_here(region_lock, tools::Mutex::critical); }
// `word` belongs to the compiler, one for each name; this library may store any value in it.
void GOMP_critical_name_start(void** word) {
  take_here(*reinterpret_cast<int*>(word), tools::Mutex::critical, "critical");
}
void GOMP_critical_name_end(void** word) {
  put_here(*reinterpret_cast<int*>(word), tools::Mutex::critical);
}
void GOMP_atomic_start() { take_here(atomic_lock, tools::Mutex::atomic, "atomic"); }
void GOMP_atomic_end() { put_here(atomic_lock, tools::Mutex::atomic); }

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

IMBREX_OMP_LOCK(void, omp_init_lock, (int* lock), { init_here(*lock, 0); })
IMBREX_OMP_LOCK(void, omp_init_lock_with_hint, (int* lock, int hint), { init_here(*lock, hint); })
IMBREX_OMP_LOCK(void, omp_destroy_lock, (int* lock), { destroy_here(*lock); })
IMBREX_OMP_LOCK(void, omp_set_lock, (int* lock), {
  take_here(*lock, tools::Mutex::lock, "lock");
})
IMBREX_OMP_LOCK(void, omp_unset_lock, (int* lock), { put_here(*lock, tools::Mutex::lock); })
IMBREX_OMP_LOCK(int, omp_test_lock, (int* lock), { return try_take_here(*lock) ? 1 : 0; })

IMBREX_OMP_NEST_LOCK(void, omp_set_nest_lock, { (void)take_nest_here(*nest, &take_nested, true); },
                     { (void)take_nest_here(*nest, &take_old, true); })
IMBREX_OMP_NEST_LOCK(void, omp_unset_nest_lock, { put_nest_here(*nest, &put_nested); },
                     { put_nest_here(*nest, &put_old); })
IMBREX_OMP_NEST_LOCK(int, omp_test_nest_lock,
                     { return take_nest_here(*nest, &take_nested, false); },
                     { return take_nest_here(*nest, &take_old, false); })

void omp_init_nest_lock(NestLock* nest) { init_nest_here(*nest, 0); }
void old_omp_init_nest_lock(OldNestLock* nest) { init_nest_here(*nest, 0); }
void old_omp_init_nest_lock_(OldNestLock* nest) { init_nest_here(*nest, 0); }
void omp_init_nest_lock_(NestLock** address) {
  *address = new NestLock{};
  init_nest_here(**address, 0);
}
void omp_init_nest_lock_with_hint_(NestLock** address, int hint) {
  *address = new NestLock{};
  init_nest_here(**address, hint);
}
void omp_destroy_nest_lock(NestLock* nest) { destroy_nest_here(nest); }
void old_omp_destroy_nest_lock(OldNestLock* nest) { destroy_nest_here(nest); }
void old_omp_destroy_nest_lock_(OldNestLock* nest) { destroy_nest_here(nest); }
void omp_destroy_nest_lock_(NestLock** address) {
  destroy_nest_here(*address);
  delete *address;
  *address = nullptr;
}

}
#pragma GCC visibility pop
