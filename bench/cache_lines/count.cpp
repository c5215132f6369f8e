// SPDX-License-Identifier: BSD-3-Clause
// This file alone is compiled without -fsanitize=thread. It uses no inline function of a library:
// the linker keeps one copy of such a function, which may be the instrumented one, and the counter
// would then call itself.
#include "count.hpp"

#include <dlfcn.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "instrumented.hpp"

namespace {

constexpr int threads_most = 64;  // a bit each in Line::holders

// In ticks, about what a processor of 2.5 GHz needs.
constexpr std::uint64_t turn_length = 100;
constexpr std::uint64_t access_cost = 1;
constexpr std::uint64_t move_cost = 100;
constexpr std::uint64_t clock_cost = 20;
constexpr std::uint64_t pause_cost = 40;
constexpr std::uint64_t call_cost = 500;    // of the kernel
constexpr std::uint64_t futex_cost = 2500;  // also of other calls that interrupt processors
constexpr std::uint64_t line_bits = 6;
constexpr std::uint64_t lines_most = std::uint64_t{1} << 22;
constexpr std::uint64_t places_most = std::uint64_t{1} << 14;

struct Line {
  std::uint64_t key;      // its address by 64, and `in_use`; any thread sets it once
  std::uint64_t holders;  // a bit for each thread that has the line; any thread
};
constexpr std::uint64_t in_use = std::uint64_t{1} << 63;

// An instruction that accesses memory, and how many lines it has moved.
struct Place {
  std::uint64_t address;
  std::uint64_t moved;
};

struct Thread {
  bench::lines::Counts counts;
  Place* places;
};

struct Data {
  std::uint64_t begin;
  std::uint64_t end;
};

Line* table;                    // a table by address; filled in any order, never emptied
Thread threads[threads_most];   // each written by its thread only, while `counting`
int thread_count;               // any thread adds
int counting;                   // the caller of start() and stop() writes
Data data[8];                   // constant while `counting`
int data_count;
std::uint64_t present = 2'500'000'000;  // ticks, at the last turn's end; the thread with the turn

struct Self {
  int index = -1;               // in `threads`
  std::uint32_t random = 0;
  std::uint64_t now = 0;        // ticks
  std::uint64_t turn_end = 0;   // when the thread gives way
};
thread_local Self self;

[[noreturn]] void die(const char* const what) {
  fprintf(stderr, "bench: lines: %s\n", what);
  abort();
}

void* zeros(const std::uint64_t bytes) noexcept {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) die("no memory for the counts");
  return memory;
}

long call_kernel(const long number, const long a, const long b, const long c, const long d,
                 const long e, const long f) noexcept {
  using Call = long (*)(long, ...);
  static Call call;
  if (call == nullptr) call = reinterpret_cast<Call>(dlsym(RTLD_NEXT, "syscall"));
  return call(number, a, b, c, d, e, f);
}

// ---- turns -------------------------------------------------------------------------------------
// One thread at a time has the turn, and passes it to the thread whose time is the earliest of
// those that want it. A thread that waits in the kernel without a word to the counter, or has
// ended, keeps the turn: after `patience_ns` another thread takes it. The turn is also taken from a
// thread that has waited so long for a processor: two threads then run at once, out of order.

constexpr int nobody = -1;
constexpr long patience_ns = 20'000'000;

int holder = nobody;           // any thread
int wants_turn[threads_most];  // each by its thread, and by a thread that takes its turn
int may_go[threads_most];      // a futex each; set by the thread that passes the turn
std::uint64_t times[threads_most];  // ticks, of each thread at its last turn's end; its thread

[[nodiscard]] bool take_from(int who) noexcept {
  return __atomic_compare_exchange_n(&holder, &who, self.index, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}

void wait_for_turn() noexcept {
  int* const word = &may_go[self.index];
  const timespec patience{0, patience_ns};
  __atomic_store_n(&wants_turn[self.index], 1, __ATOMIC_SEQ_CST);
  if (take_from(nobody)) return;
  for (;;) {
    const std::uint64_t before = __atomic_load_n(&present, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(word, 0, __ATOMIC_SEQ_CST) != 0) return;
    const long result = call_kernel(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAIT_PRIVATE, 0,
                                    reinterpret_cast<long>(&patience), 0, 0);
    if (result == 0 || before != __atomic_load_n(&present, __ATOMIC_RELAXED)) continue;
    const int other = __atomic_load_n(&holder, __ATOMIC_SEQ_CST);
    if (other == self.index || !take_from(other)) continue;
    if (other != nobody) __atomic_store_n(&wants_turn[other], 0, __ATOMIC_SEQ_CST);
    return;
  }
}

// The thread with the earliest time among those that want the turn; `nobody` if there is none.
[[nodiscard]] int earliest() noexcept {
  const int count = __atomic_load_n(&thread_count, __ATOMIC_RELAXED);
  int found = nobody;
  for (int each = 0; each < count; ++each) {
    if (__atomic_load_n(&wants_turn[each], __ATOMIC_SEQ_CST) == 0) continue;
    if (found == nobody || __atomic_load_n(&times[each], __ATOMIC_RELAXED) <
                               __atomic_load_n(&times[found], __ATOMIC_RELAXED)) {
      found = each;
    }
  }
  return found;
}

// The calling thread gives the turn away. Returns false if it still has the turn, since no other
// thread wants it before.
bool pass_turn() noexcept {
  const int next = earliest();
  int own = self.index;
  if (next == own) return __atomic_load_n(&holder, __ATOMIC_SEQ_CST) != own;
  const bool had = __atomic_compare_exchange_n(&holder, &own, next, false, __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST);
  if (!had || next == nobody) return true;  // another thread has taken it, or it is free
  __atomic_store_n(&may_go[next], 1, __ATOMIC_SEQ_CST);
  (void)call_kernel(SYS_futex, reinterpret_cast<long>(&may_go[next]), FUTEX_WAKE_PRIVATE, 1, 0, 0,
                    0);
  return true;
}

// The time passes also for a thread that waits in the kernel.
void catch_up() noexcept {
  const std::uint64_t now = __atomic_load_n(&present, __ATOMIC_RELAXED);
  if (self.now < now) self.now = now;
}

// Around a call of the kernel that may wait.
void leave() noexcept {
  __atomic_store_n(&wants_turn[self.index], 0, __ATOMIC_SEQ_CST);
  (void)pass_turn();
}
void come_back() noexcept {
  catch_up();
  __atomic_store_n(&times[self.index], self.now, __ATOMIC_RELAXED);
  wait_for_turn();
}

// Turns differ in length, so that threads do not meet at the same places again and again.
[[gnu::noinline]] void give_way() noexcept {
  if (self.index < 0) {
    self.index = __atomic_fetch_add(&thread_count, 1, __ATOMIC_RELAXED);
    if (self.index >= threads_most) die("more than 64 threads");
    self.random = 12345 + 77 * static_cast<std::uint32_t>(self.index);
    come_back();
  } else {
    __atomic_store_n(&times[self.index], self.now, __ATOMIC_RELAXED);
    __atomic_store_n(&present, self.now, __ATOMIC_RELAXED);
    if (pass_turn()) wait_for_turn();
  }
  self.random = self.random * 1664525u + 1013904223u;
  self.turn_end = self.now + turn_length / 2 + (self.random >> 8) % turn_length;
}

inline void spend(const std::uint64_t ticks) noexcept {
  self.now += ticks;
  if (self.now >= self.turn_end) give_way();
}

std::uint64_t hash(const std::uint64_t value) noexcept { return value * 0x9E3779B97F4A7C15u; }

Line& line_at(const std::uint64_t address) noexcept {
  const std::uint64_t key = address >> line_bits | in_use;
  std::uint64_t at = hash(key) >> 42;
  for (std::uint64_t tries = 0; tries < lines_most; ++tries, at = (at + 1) % lines_most) {
    Line& line = table[at];
    std::uint64_t found = __atomic_load_n(&line.key, __ATOMIC_RELAXED);
    if (found == 0) {
      if (__atomic_compare_exchange_n(&line.key, &found, key, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
        return line;
      }
    }
    if (found == key) return line;
  }
  die("the program uses more than 256 MiB");
}
static_assert(lines_most == std::uint64_t{1} << (64 - 42));

[[gnu::noinline]] void note(Thread& thread, const std::uint64_t address,
                            const std::uint64_t place) noexcept {
  for (int each = 0; each < data_count; ++each) {
    if (data[each].begin <= address && address < data[each].end) {
      ++thread.counts.data;
      return;
    }
  }
  ++thread.counts.moved;
  if (thread.places == nullptr) {
    thread.places = static_cast<Place*>(zeros(places_most * sizeof(Place)));
  }
  std::uint64_t at = hash(place) % places_most;
  for (std::uint64_t tries = 0; tries < places_most; ++tries, at = (at + 1) % places_most) {
    Place& here = thread.places[at];
    if (here.address != 0 && here.address != place) continue;
    here.address = place;
    ++here.moved;
    return;
  }
  die("too many places");
}

// A whole step of the protocol is one change of `holders`, so it needs no lock.
[[nodiscard]] bool moves(std::uint64_t& holders, const bool writes) noexcept {
  const std::uint64_t own = std::uint64_t{1} << self.index;
  const std::uint64_t before = __atomic_load_n(&holders, __ATOMIC_RELAXED);
  if (writes) {
    if (before == own) return false;
    return (__atomic_exchange_n(&holders, own, __ATOMIC_RELAXED) & ~own) != 0;
  }
  if ((before & own) != 0) return false;
  return __atomic_fetch_or(&holders, own, __ATOMIC_RELAXED) != 0;
}

inline void access(const volatile void* const memory, const bool writes,
                   const void* const place) noexcept {
  spend(access_cost);
  if (__atomic_load_n(&counting, __ATOMIC_RELAXED) == 0) return;
  Thread& thread = threads[self.index];
  ++thread.counts.accesses;
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  if (moves(line_at(address).holders, writes)) {
    note(thread, address, reinterpret_cast<std::uint64_t>(place));
    self.now += move_cost;  // the access itself shall be in this turn
  }
}

void access_all(const void* const memory, const unsigned long bytes, const bool writes,
                const void* const place) noexcept {
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  for (std::uint64_t line = begin >> line_bits; line <= (begin + bytes - 1) >> line_bits; ++line) {
    access(reinterpret_cast<const void*>(line << line_bits), writes, place);
  }
}

}  // namespace

namespace bench::lines {

void name_data(const void* const memory, const std::size_t bytes) noexcept {
  if (data_count == static_cast<int>(sizeof data / sizeof *data)) die("too much data");
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  data[data_count++] = {begin, begin + bytes};
}

void start() noexcept {
  if (table != nullptr) munmap(table, lines_most * sizeof(Line));
  table = static_cast<Line*>(zeros(lines_most * sizeof(Line)));
  for (Thread& thread : threads) {
    if (thread.places != nullptr) munmap(thread.places, places_most * sizeof(Place));
    thread = {};
  }
  __atomic_store_n(&counting, 1, __ATOMIC_SEQ_CST);
}

Counts stop() noexcept {
  __atomic_store_n(&counting, 0, __ATOMIC_SEQ_CST);
  Counts sum;
  for (const Thread& thread : threads) {
    sum.accesses += thread.counts.accesses;
    sum.moved += thread.counts.moved;
    sum.data += thread.counts.data;
  }
  return sum;
}

}  // namespace bench::lines

extern "C" char __executable_start;  // of the linker

namespace bench::lines {

void print_places() noexcept {
  const char* before = "[";
  for (const Thread& thread : threads) {
    for (std::uint64_t at = 0; thread.places != nullptr && at < places_most; ++at) {
      const Place& place = thread.places[at];
      if (place.address == 0) continue;
      // One less: the address is that of the instruction after the call.
      const auto base = reinterpret_cast<std::uint64_t>(&__executable_start);
      printf("%s[%llu, %llu]", before, static_cast<unsigned long long>(place.address - base - 1),
             static_cast<unsigned long long>(place.moved));
      before = ", ";
    }
  }
  printf("%s]", before[0] == '[' ? "[" : "");
}

}  // namespace bench::lines

// ---- time --------------------------------------------------------------------------------------

unsigned long long bench_lines_ticks() {
  spend(clock_cost);
  return self.now;
}
void bench_lines_pause() { spend(pause_cost); }

extern "C" {
// In place of the C library's functions.
[[gnu::visibility("default")]] int clock_gettime(const clockid_t clock, timespec* const time) {
  if (clock != CLOCK_MONOTONIC) {
    return static_cast<int>(call_kernel(SYS_clock_gettime, clock, reinterpret_cast<long>(time), 0,
                                        0, 0, 0));
  }
  spend(clock_cost);
  const std::uint64_t ns = self.now * 2 / 5;
  *time = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  return 0;
}

[[gnu::visibility("default")]] int sched_yield() {
  spend(call_cost);
  return 0;
}

[[gnu::visibility("default")]] long syscall(const long number, ...) {
  va_list list;
  va_start(list, number);
  long words[6];
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  spend(futex_cost);
  const bool waits = number == SYS_futex && (words[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
  timespec end;
  std::uint64_t end_ticks = 0;
  if (waits && words[3] != 0) {  // the kernel knows its own clock only
    const auto& time = *reinterpret_cast<const timespec*>(words[3]);
    end_ticks = (static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
                 static_cast<std::uint64_t>(time.tv_nsec)) * 5 / 2;
    const std::uint64_t ns = end_ticks <= self.now ? 0 : (end_ticks - self.now) * 2 / 5;
    (void)call_kernel(SYS_clock_gettime, CLOCK_MONOTONIC, reinterpret_cast<long>(&end), 0, 0, 0, 0);
    const std::uint64_t nsec = static_cast<std::uint64_t>(end.tv_nsec) + ns;
    end = {end.tv_sec + static_cast<time_t>(nsec / 1'000'000'000),
           static_cast<long>(nsec % 1'000'000'000)};
    words[3] = reinterpret_cast<long>(&end);
  }
  if (waits) leave();
  const long result = call_kernel(number, words[0], words[1], words[2], words[3], words[4],
                                  words[5]);
  if (result != 0 && end_ticks > self.now) self.now = end_ticks;  // the time is over
  if (waits) come_back();
  return result;
}
}

// ---- what instrumented code calls ------------------------------------------------------------
// The names, arguments and orders are those of gcc's and clang's sanitizer. Atomic accesses are
// sequentially consistent, whatever the code asks for.

#define PLACE __builtin_return_address(0)
#define ACCESS(name, type, writes) \
  void __tsan_##name(type* memory) { access(memory, writes, PLACE); }
#define PLAIN(size)                       \
  ACCESS(read##size, void, false)         \
  ACCESS(write##size, void, true)         \
  ACCESS(unaligned_read##size, void, false) \
  ACCESS(unaligned_write##size, void, true)
#define CHANGE(bits, type, name)                                                \
  type __tsan_atomic##bits##_##name(volatile type* memory, type value, int) {   \
    access(memory, true, PLACE);                                                \
    return __atomic_##name(memory, value, __ATOMIC_SEQ_CST);                    \
  }
#define COMPARE(bits, type, name)                                                         \
  int __tsan_atomic##bits##_compare_exchange_##name(volatile type* memory, type* expected, \
                                                    type value, int, int) {               \
    access(memory, true, PLACE);                                                          \
    return __atomic_compare_exchange_n(memory, expected, value, false, __ATOMIC_SEQ_CST,  \
                                       __ATOMIC_SEQ_CST);                                 \
  }
#define ATOMIC(bits, type)                                              \
  type __tsan_atomic##bits##_load(const volatile type* memory, int) {   \
    access(memory, false, PLACE);                                       \
    return __atomic_load_n(memory, __ATOMIC_SEQ_CST);                   \
  }                                                                     \
  void __tsan_atomic##bits##_store(volatile type* memory, type value, int) { \
    access(memory, true, PLACE);                                        \
    __atomic_store_n(memory, value, __ATOMIC_SEQ_CST);                  \
  }                                                                     \
  type __tsan_atomic##bits##_exchange(volatile type* memory, type value, int) { \
    access(memory, true, PLACE);                                        \
    return __atomic_exchange_n(memory, value, __ATOMIC_SEQ_CST);        \
  }                                                                     \
  CHANGE(bits, type, fetch_add)                                         \
  CHANGE(bits, type, fetch_sub)                                         \
  CHANGE(bits, type, fetch_and)                                         \
  CHANGE(bits, type, fetch_or)                                          \
  CHANGE(bits, type, fetch_xor)                                         \
  COMPARE(bits, type, strong)                                           \
  COMPARE(bits, type, weak)

extern "C" {
PLAIN(1) PLAIN(2) PLAIN(4) PLAIN(8) PLAIN(16)
ACCESS(vptr_read, void*, false)
void __tsan_vptr_update(void** memory, void*) { access(memory, true, PLACE); }
void __tsan_read_range(const void* memory, unsigned long bytes) {
  access_all(memory, bytes, false, PLACE);
}
void __tsan_write_range(const void* memory, unsigned long bytes) {
  access_all(memory, bytes, true, PLACE);
}
ATOMIC(8, std::uint8_t) ATOMIC(16, std::uint16_t) ATOMIC(32, std::uint32_t)
ATOMIC(64, std::uint64_t)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
}
