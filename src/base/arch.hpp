// SPDX-License-Identifier: BSD-3-Clause
// Everything that depends on processor, compiler or kernel: pause, time stamp, barriers. This file
// knows nothing of the rest of imbrex.
#pragma once

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>

#if defined(__SANITIZE_THREAD__)
#define IMBREX_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IMBREX_TSAN 1
#endif
#endif
#ifndef IMBREX_TSAN
#define IMBREX_TSAN 0
#endif

namespace imbrex::base {

inline constexpr std::size_t cache_line_bytes = 64;
extern const std::size_t page_bytes;  // 4 KiB; on AArch64 4, 16 or 64 KiB, as the kernel was built

// What a thread does between two looks at a word that another thread is about to write.
inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // `yield` does nothing on processors without hardware threads
#else
#error "imbrex runs on x86-64 and on AArch64"
#endif
}

// The identity of the calling thread. No other code of src/ and include/ asks the system for it
// (tools/check.py). A task may resume in another thread after each call that suspends, and the C
// library declares pthread_self() const, so a compiler would keep its value over such a call. These
// two functions are never inlined, and the assembly keeps a compiler from treating their result as
// constant.
[[gnu::noinline]] inline pthread_t this_thread() noexcept {
  asm volatile("" ::: "memory");
  return pthread_self();
}
[[nodiscard]] inline bool is_this_thread(const pthread_t thread) noexcept {
  return pthread_equal(thread, this_thread()) != 0;
}
// The kernel's number of the thread; getpid() for the main thread.
[[gnu::noinline]] inline pid_t kernel_thread_id() noexcept {
  asm volatile("" ::: "memory");
  return gettid();
}

// Ticks of a clock that all processors of the machine share; cheap, not ordered with memory. On
// AArch64 the counter has 25 MHz to 1 GHz: a tick may be as long as 40 ns.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#endif
}
// A number of ticks, without a measurement: wrong by a factor of two on some processors.
inline std::uint64_t about_a_microsecond() noexcept {
#if defined(__x86_64__)
  return 2'000;
#elif defined(__aarch64__)
  std::uint64_t hertz;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
  return hertz / 1'000'000;
#endif
}
// Measured at the first call, in 0.2 ms; above 0.
[[nodiscard]] double ticks_per_microsecond() noexcept;
[[nodiscard]] double measure_ticks_per_microsecond() noexcept;  // at each call

inline std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}
inline std::uint64_t monotonic_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }

struct Moment {
  std::uint64_t ticks;
  std::uint64_t ns;
};
// Reads ticks() and `clock` at one moment: the closest pair of a few readings, since a thread may
// lose its processor between the two.
[[nodiscard]] Moment read_clocks(clockid_t clock) noexcept;

// An asymmetric pair of sequentially consistent fences. The frequent side costs a compiler barrier;
// the rare side (a worker that is about to sleep) interrupts the other processors. Without
// membarrier in the kernel, and under ThreadSanitizer, both are real fences. The rare side sees the
// frequent side's store and later load in order: if the rare side stored after that load, its own
// load after heavy_fence() sees that store.
extern const bool membarrier_works;

inline void light_fence() noexcept {
#if IMBREX_TSAN
  static std::atomic<int> fence{0};
  fence.fetch_add(0, std::memory_order_seq_cst);  // ThreadSanitizer does not know bare fences
#else
  if (membarrier_works) [[likely]] {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
#endif
}

inline void heavy_fence() noexcept {
#if IMBREX_TSAN
  light_fence();
#else
  if (membarrier_works) {
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  } else {
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
#endif
}

}  // namespace imbrex::base
