// SPDX-License-Identifier: BSD-3-Clause
// Fibers: stacks that one thread at a time stands on, and the switch between them. On
// Boost.Context, whose switch keeps the floating-point control words; C++'s exception state and the
// sanitizers' are switched here. Knows no task and no worker.
//
// Thread safety: none; a fiber belongs to the thread that stands on it or that found it suspended.
#pragma once

#include <cfenv>
#include <cstddef>
#include <cstdint>

#include "fiber/stack.hpp"

namespace imbrex::fiber {

// The state that the C++ runtime keeps for each thread and that must follow the fiber: exceptions
// being handled, and the number of those in flight.
struct ExceptionState {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

struct Fiber {
  void* context = nullptr;  // where it goes on; valid while it is suspended
  Stack stack;              // a native fiber's is the thread's own
  ExceptionState exceptions;
  void* sanitizer = nullptr;   // ThreadSanitizer's fiber, or AddressSanitizer's fake stack
  void* task = nullptr;        // the user's: what it stands in
  const void* reason = nullptr;  // the user's: why it is suspended
  void* tied_to = nullptr;     // the user's: the only thread that may resume it, or null
  bool native = false;         // the stack a thread was born with
  Fiber* next = nullptr;       // link in a list of the user's
};

// A function that runs on the new stack first; it gets the fiber that was left behind. Not null.
using Arrival = void (*)(Fiber& left, void* argument);
inline void do_nothing(Fiber&, void*) noexcept {}
using Entry = void (*)();

// A fiber on `stack`, in its topmost bytes; when first switched to it calls `entry`, which must
// never return, with these floating-point control words.
[[nodiscard]] Fiber& make_fiber(const Stack& stack, const std::fenv_t& floating_point,
                                Entry entry) noexcept;
// Forgets a suspended fiber whose stack holds nothing that must be destroyed. Its stack is free.
Stack destroy_fiber(Fiber& fiber) noexcept;

// Fills in `fiber` for the thread that calls, on its native stack.
void adopt_native(Fiber& fiber) noexcept;

// The C++ runtime's exception state of the calling thread; the same for the thread's whole life.
[[nodiscard]] void* thread_exception_globals() noexcept;

// Leaves `from`, which must be where the caller stands, for `to`; there `arrival(from, argument)`
// runs before anything else. Returns when someone switches to `from` again, perhaps on another
// thread: callers must read anew whatever depends on the thread. `globals`: the calling thread's
// thread_exception_globals().
void switch_to(Fiber& from, Fiber& to, void* globals, Arrival arrival, void* argument) noexcept;

// The first two members of the C++ ABI's __cxa_eh_globals.
struct ExceptionGlobals {
  void* caught;
  unsigned int uncaught;
};

// Whether the thread of these globals stands in the handler of an exception, or in a destructor
// that one runs. Other code on the same stack would take the exception for its own.
[[nodiscard]] inline bool in_exception(const void* const globals) noexcept {
  const auto* const state = static_cast<const ExceptionGlobals*>(globals);
  return state->caught != nullptr || state->uncaught != 0;
}

// How many bytes of the stack are left below the caller's frame.
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
