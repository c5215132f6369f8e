// SPDX-License-Identifier: BSD-3-Clause
// Fibers: stacks that one thread at a time runs on, and the switch between them. Built on
// Boost.Context; this file switches C++'s exception state, the sanitizers' state, and what
// Boost.Context leaves of the floating-point modes (modes.hpp). Knows no task and no worker.
//
// Thread safety: none; a fiber belongs to the thread that runs on it, or that resumes it.
#pragma once

#include <atomic>
#include <cfenv>
#include <cstddef>
#include <cstdint>

#include "fiber/stack.hpp"

namespace imbrex::fiber {

// The state that the C++ runtime keeps for each thread and that must follow the fiber: the
// exceptions being handled, and the number of uncaught ones.
struct ExceptionState {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

struct Fiber {
  void* context = nullptr;  // where the fiber resumes; valid while it is suspended
  Stack stack;              // for a native fiber the thread's own stack
  ExceptionState exceptions;
  void* sanitizer = nullptr;   // ThreadSanitizer's fiber, or AddressSanitizer's fake stack
  void* task = nullptr;        // for the user: the task that is suspended on it
  const void* reason = nullptr;  // for the user: the reason of the suspension
  std::atomic<std::uint64_t> waits{0};  // for the user: the number of suspensions here so far
  void* tied_to = nullptr;     // for the user: the only thread that may resume it, or null
  bool native = false;         // the stack of the thread's start
  std::uint32_t modes = 0;     // floating-point modes while it is suspended: modes.hpp
  Fiber* next = nullptr;       // link in a list of the user
};

// A function that runs first on the new stack; it gets the fiber that was left. Not null.
using Arrival = void (*)(Fiber& left, void* argument);
inline void do_nothing(Fiber&, void*) noexcept {}
using Entry = void (*)();

// Makes a fiber in the topmost bytes of `stack`. The first switch to it calls `entry`, which must
// never return, with these floating-point control words.
[[nodiscard]] Fiber& make_fiber(const Stack& stack, const std::fenv_t& floating_point,
                                Entry entry) noexcept;
// Where make_fiber() makes the fiber of that stack: for a thread that looks on. Zeros, if no fiber
// was made there yet.
[[nodiscard]] const Fiber& fiber_on(const Stack& stack) noexcept;
// Destroys a suspended fiber whose stack holds nothing that must be destroyed; returns the stack.
Stack destroy_fiber(Fiber& fiber) noexcept;

// Fills in `fiber` for the calling thread and its native stack.
void adopt_native(Fiber& fiber) noexcept;

// The C++ runtime's exception state of the calling thread; constant for the thread's life.
[[nodiscard]] void* thread_exception_globals() noexcept;

// Switches from `from`, the caller's fiber, to `to`, where `arrival(from, argument)` runs first.
// Returns when a thread switches to `from` again, perhaps another thread: callers must read again
// every value that depends on the thread. `globals`: the calling thread's
// thread_exception_globals().
void switch_to(Fiber& from, Fiber& to, void* globals, Arrival arrival, void* argument) noexcept;

// The first two members of the C++ ABI's __cxa_eh_globals.
struct ExceptionGlobals {
  void* caught;
  unsigned int uncaught;
};

// Whether the thread of these globals runs the handler of an exception, or a destructor that an
// exception runs. Other code on the same stack would take the exception for its own.
[[nodiscard]] inline bool in_exception(const void* const globals) noexcept {
  const auto* const state = static_cast<const ExceptionGlobals*>(globals);
  return state->caught != nullptr || state->uncaught != 0;
}

// The number of bytes of the stack that are left below the caller's frame.
[[nodiscard]] inline std::size_t bytes_left(const Fiber& fiber) noexcept {
  const auto* const here = static_cast<const std::byte*>(__builtin_frame_address(0));
  return static_cast<std::size_t>(here - fiber.stack.bottom);
}

// Whether the caller's frame lies in the upper half of the stack.
[[nodiscard]] inline bool half_left(const Fiber& fiber) noexcept {
  const auto* const here = static_cast<const std::byte*>(__builtin_frame_address(0));
  return here - fiber.stack.bottom > fiber.stack.top - here;
}

}  // namespace imbrex::fiber
