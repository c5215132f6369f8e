// SPDX-License-Identifier: BSD-3-Clause
// Tells ThreadSanitizer and AddressSanitizer of a switch, in builds with a sanitizer. In other
// builds the program alone may be compiled with AddressSanitizer: listens() is then true, and a
// second form of the switch in fiber.cpp tells it by tell_start() and tell_finish().
#pragma once

#include "base/arch.hpp"
#include "fiber/fiber.hpp"
#include "trace/races.hpp"

#if IMBREX_TSAN
#include <sanitizer/tsan_interface.h>
#elif !IMBREX_RACES
// Declared as in the sanitizer's headers; null where the process has no sanitizer.
extern "C" {
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* memory, std::size_t bytes);
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** saved, const void* bottom,
                                                  std::size_t bytes);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* saved, const void** old_bottom,
                                                   std::size_t* old_bytes);
}
#endif

namespace imbrex::fiber::sanitizer {

#if IMBREX_TSAN

inline void clean(void*, std::size_t) noexcept {}
inline void create(Fiber& fiber) noexcept { fiber.sanitizer = __tsan_create_fiber(0); }
inline void destroy(Fiber& fiber) noexcept { __tsan_destroy_fiber(fiber.sanitizer); }
inline void adopt(Fiber& fiber) noexcept { fiber.sanitizer = __tsan_get_current_fiber(); }
inline void start_switch(Fiber&, Fiber& to) noexcept {
  __tsan_switch_to_fiber(to.sanitizer, 0);
}
inline void finish_switch(Fiber&, Fiber&) noexcept {}
inline bool listens() noexcept { return false; }
inline void tell_start(Fiber&, Fiber&) noexcept {}
inline void tell_finish(Fiber&) noexcept {}

#elif IMBREX_RACES

// A stack has a context only while it is suspended in code of the program.
inline void clean(void*, std::size_t) noexcept {}
inline void create(Fiber& fiber) noexcept { fiber.sanitizer = nullptr; }
inline void destroy(Fiber&) noexcept {}
inline void adopt(Fiber&) noexcept {}
inline void start_switch(Fiber& from, Fiber& to) noexcept {
  trace::races::change(from.sanitizer, to.sanitizer);
}
inline void finish_switch(Fiber&, Fiber&) noexcept {}
inline bool listens() noexcept { return false; }
inline void tell_start(Fiber&, Fiber&) noexcept {}
inline void tell_finish(Fiber&) noexcept {}

#else

// Removes the marks in a stack's memory that a loop left whose frames never returned, before the
// memory is reused or unmapped.
inline void clean(void* const memory, const std::size_t bytes) noexcept {
  if (__asan_unpoison_memory_region == nullptr) return;
  __asan_unpoison_memory_region(memory, bytes);
}
inline void create(Fiber& fiber) noexcept {
  clean(fiber.stack.bottom, static_cast<std::size_t>(fiber.stack.top - fiber.stack.bottom));
}
inline void destroy(Fiber&) noexcept {}
inline void adopt(Fiber&) noexcept {}
inline void tell_start(Fiber& from, Fiber& to) noexcept {
  __sanitizer_start_switch_fiber(&from.sanitizer, to.stack.bottom,
                                 static_cast<std::size_t>(to.stack.top - to.stack.bottom));
}
inline void tell_finish(Fiber& to) noexcept {
  __sanitizer_finish_switch_fiber(to.sanitizer, nullptr, nullptr);
}
#if defined(__SANITIZE_ADDRESS__)
inline bool listens() noexcept { return false; }  // each switch tells the sanitizer
inline void start_switch(Fiber& from, Fiber& to) noexcept { tell_start(from, to); }
inline void finish_switch(Fiber&, Fiber& to) noexcept { tell_finish(to); }
#else
inline bool listens() noexcept { return __sanitizer_start_switch_fiber != nullptr; }
inline void start_switch(Fiber&, Fiber&) noexcept {}
inline void finish_switch(Fiber&, Fiber&) noexcept {}
#endif

#endif

}  // namespace imbrex::fiber::sanitizer
