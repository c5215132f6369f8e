// SPDX-License-Identifier: BSD-3-Clause
// Tells ThreadSanitizer and AddressSanitizer of a switch; does nothing in other builds.
#pragma once

#include "base/arch.hpp"
#include "fiber/fiber.hpp"
#include "trace/races.hpp"

#if IMBREX_TSAN
#include <sanitizer/tsan_interface.h>
#elif defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
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

#elif defined(__SANITIZE_ADDRESS__)

// Forgets what was marked in a stack's memory: by a loop whose frames never returned, before the
// memory serves another one, or somebody else once it is unmapped.
inline void clean(void* const memory, const std::size_t bytes) noexcept {
  __asan_unpoison_memory_region(memory, bytes);
}
inline void create(Fiber& fiber) noexcept {
  clean(fiber.stack.bottom, static_cast<std::size_t>(fiber.stack.top - fiber.stack.bottom));
}
inline void destroy(Fiber&) noexcept {}
inline void adopt(Fiber&) noexcept {}
inline void start_switch(Fiber& from, Fiber& to) noexcept {
  __sanitizer_start_switch_fiber(&from.sanitizer, to.stack.bottom,
                                 static_cast<std::size_t>(to.stack.top - to.stack.bottom));
}
inline void finish_switch(Fiber&, Fiber& to) noexcept {
  __sanitizer_finish_switch_fiber(to.sanitizer, nullptr, nullptr);
}

#elif IMBREX_RACES

// A stack has a context only while it is suspended in some code of the program's.
inline void clean(void*, std::size_t) noexcept {}
inline void create(Fiber& fiber) noexcept { fiber.sanitizer = nullptr; }
inline void destroy(Fiber&) noexcept {}
inline void adopt(Fiber&) noexcept {}
inline void start_switch(Fiber& from, Fiber& to) noexcept {
  trace::races::change(from.sanitizer, to.sanitizer);
}
inline void finish_switch(Fiber&, Fiber&) noexcept {}

#else

inline void clean(void*, std::size_t) noexcept {}
inline void create(Fiber&) noexcept {}
inline void destroy(Fiber&) noexcept {}
inline void adopt(Fiber&) noexcept {}
inline void start_switch(Fiber&, Fiber&) noexcept {}
inline void finish_switch(Fiber&, Fiber&) noexcept {}

#endif

}  // namespace imbrex::fiber::sanitizer
