// SPDX-License-Identifier: BSD-3-Clause
// Only in the variant for ThreadSanitizer; see races.hpp.
#include "trace/races.hpp"

#include <sanitizer/tsan_interface.h>
#include <alloca.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "base/check.hpp"
#include "base/guarded.hpp"
#include "base/spin_lock.hpp"

namespace imbrex::trace::races {

namespace {

// A context costs ThreadSanitizer half a millisecond, and 8,128 contexts are its limit. So contexts
// are reused, the oldest one first. A task is then ordered before the next task that gets its
// context; any two tasks are compared except those whose begins are about a multiple of this number
// apart. The number is a prime, since programs make tasks in rows of round numbers.
constexpr std::size_t plenty = 251;
constexpr std::size_t contexts_max = 7900;  // the other contexts are the program's threads

struct Contexts {
  base::LastingLock<base::SpinLock> lock;
  std::deque<void*> free IMBREX_GUARDED_BY(lock);
  std::size_t made IMBREX_GUARDED_BY(lock) = 0;
  // All neutral contexts: about one for each thread.
  std::vector<void*> neutral IMBREX_GUARDED_BY(lock);
  std::vector<void*> neutral_free IMBREX_GUARDED_BY(lock);
  // Knows the state of the start: other contexts are made there.
  void* origin IMBREX_GUARDED_BY(lock) = nullptr;
};

Contexts& contexts() {
  static auto& all = *new Contexts;  // never destroyed: tasks may run at exit
  return all;
}

char holds;  // its address is a key

void* key(const void* const address) noexcept { return const_cast<void*>(address); }

void enter(void* const context) noexcept {
  __tsan_switch_to_fiber(context, __tsan_switch_to_fiber_no_sync);
}

void* make(Contexts& all) noexcept IMBREX_REQUIRES(all.lock) {
  if (all.origin == nullptr) all.origin = __tsan_create_fiber(0);
  if (++all.made == contexts_max) {
    base::report("more tasks are suspended than ThreadSanitizer has contexts for: its limit is "
                 "some 7,900 tasks at a time; use a smaller input");
  }
  void* const here = __tsan_get_current_fiber();
  enter(all.origin);
  void* const made = __tsan_create_fiber(0);
  enter(here);
  return made;
}

void* take() noexcept {
  Contexts& all = contexts();
  const std::lock_guard guard(all.lock);
  if (all.made < plenty || all.free.empty()) return make(all);
  void* const context = all.free.front();
  all.free.pop_front();
  return context;
}

void give(void* const context) noexcept {
  Contexts& all = contexts();
  const std::lock_guard guard(all.lock);
  all.free.push_back(context);
}

// Enters the neutral context of a worker's loop. Nothing that runs there is visible, and it follows
// no task, so it orders no task behind another.
void enter_neutral() noexcept {
  Contexts& all = contexts();
  void* context = nullptr;
  {
    const std::lock_guard guard(all.lock);
    if (!all.neutral_free.empty()) {
      context = all.neutral_free.back();
      all.neutral_free.pop_back();
    }
  }
  if (context != nullptr) return enter(context);
  {
    const std::lock_guard guard(all.lock);
    context = make(all);
    all.neutral.push_back(context);
  }
  enter(context);
  __tsan_ignore_thread_begin();
  AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
}

bool is_neutral(void* const context) noexcept {
  Contexts& all = contexts();
  const std::lock_guard guard(all.lock);
  return std::ranges::find(all.neutral, context) != all.neutral.end();
}

void give_neutral(void* const context) noexcept {
  Contexts& all = contexts();
  const std::lock_guard guard(all.lock);
  all.neutral_free.push_back(context);
}

}  // namespace

void before(const void* const address) noexcept { __tsan_release(key(address)); }
void after(const void* const address) noexcept { __tsan_acquire(key(address)); }

void pass(const void* const from, const void* const to) noexcept {
  const Inside other(nullptr);
  after(from);
  before(to);
}

void let_go_hold(const void* const event, const void* const source) noexcept {
  before(&holds);
  before(event);
  if (source == nullptr) return;
  pass(source, &holds);
  pass(source, event);
}
void after_holds() noexcept { after(&holds); }

void begin() noexcept {
  Contexts& all = contexts();
  const std::lock_guard guard(all.lock);
  if (all.origin == nullptr) all.origin = __tsan_create_fiber(0);
}

Inside::Inside(const char* const name) noexcept : own_(take()), outer_(nullptr) {
  if (name != nullptr) __tsan_set_fiber_name(own_, name);
  change(outer_, own_);
}
Inside::~Inside() {
  outer_ != nullptr ? enter(outer_) : enter_neutral();
  give(own_);
}

// A context is given back only after it has been left: another thread may take it at once.
void change(void*& left, void* const to) noexcept {
  void* const now = __tsan_get_current_fiber();
  const bool neutral = is_neutral(now);
  left = neutral ? nullptr : now;
  if (to != nullptr) {
    enter(to);
    if (neutral) give_neutral(now);
  } else if (!neutral) {
    enter_neutral();
  }
}

Outside::Outside() noexcept { change(left_, nullptr); }
Outside::~Outside() {
  void* neutral = nullptr;
  if (left_ != nullptr) change(neutral, left_);
}

namespace {

// munmap() of an address in the middle of a page fails in the kernel, but ThreadSanitizer drops its
// knowledge of the memory before.
void forget(void* const memory, const std::size_t bytes) noexcept {
  constexpr std::size_t off = 8;
  if (bytes <= off) return;
  const int before_call = errno;
  IMBREX_CHECK(munmap(static_cast<std::byte*>(memory) + off, bytes - off) != 0,
               "a stack was unmapped");
  errno = before_call;
}

}  // namespace

// The frames of `function` lie in memory whose shadow begins with a page of its own. All of that
// shadow is dropped, because another task has used the memory.
[[gnu::noinline]] void call(std::byte* const bottom, void (*const function)(void*),
                            void* const argument) {
  constexpr std::uintptr_t step = 4096;  // its shadow is at least as large
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const std::uintptr_t top = (here - 2 * step) / step * step;
  void* const skipped = alloca(here - top);
  asm volatile("" : : "r"(skipped) : "memory");
  forget(bottom, top - reinterpret_cast<std::uintptr_t>(bottom));
  function(argument);
  asm volatile("" : : "r"(skipped) : "memory");
}

// The stack may belong to a task in the middle of a call. The shadow of the memory below is dropped
// afterwards, too.
void visit(const void* const key, void (*const function)(void*), void* const argument) {
  struct Around {
    explicit Around(const void* const its_key) noexcept : key(its_key) { after(key); }
    ~Around() {
      before(key);
      forget(bottom, static_cast<std::size_t>(here - bottom));
    }
    const void* key;
    Inside inside{"a function that is called by the runtime"};
    std::byte* here = static_cast<std::byte*>(__builtin_frame_address(0)) - 1024;
    std::byte* bottom = here - 64 * 1024;  // a guess: stacks are larger
  };
  Around around(key);
  call(around.bottom, function, argument);
}

}  // namespace imbrex::trace::races
