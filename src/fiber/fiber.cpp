// SPDX-License-Identifier: BSD-3-Clause
#include "fiber/fiber.hpp"

#include <cxxabi.h>
#include <pthread.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstdlib>
#include <new>

#include "base/arch.hpp"
#include "fiber/modes.hpp"
#include "fiber/sanitizer.hpp"

namespace imbrex::fiber {

namespace context = boost::context::detail;

namespace {

// The record of a switch. It lies on the stack that is left, and is read at once on the new stack.
struct Switch {
  Fiber* from;
  Fiber* to;
  void* globals;  // of the switching thread, which is also the arriving one
  Arrival arrival;
  void* argument;
};

void arrive(const context::transfer_t transfer) noexcept {
  const Switch* const record = static_cast<const Switch*>(transfer.data);
  sanitizer::finish_switch(*record->from, *record->to);
  record->from->context = transfer.fctx;
  restore_modes(record->to->modes);
  auto* const globals = static_cast<ExceptionGlobals*>(record->globals);
  globals->caught = record->to->exceptions.caught;
  globals->uncaught = record->to->exceptions.uncaught;
  // The copy comes first: the arrival may let another thread resume `from`, whose stack holds the
  // record.
  const Switch copy = *record;
  copy.arrival(*copy.from, copy.argument);
}

void start(const context::transfer_t transfer) {
#if defined(__x86_64__)
  asm volatile(".cfi_undefined rip");  // backtraces end here
#elif defined(__aarch64__)
  asm volatile(".cfi_undefined x30");
#endif
  Fiber* const self = static_cast<const Switch*>(transfer.data)->to;
  const auto entry = reinterpret_cast<Entry>(self->task);
  self->task = nullptr;
  arrive(transfer);
  entry();
  std::abort();  // an entry never returns
}

inline void switch_at_once(Fiber& from, Fiber& to, void* const globals, const Arrival arrival,
                           void* const argument) noexcept {
  Switch record{&from, &to, globals, arrival, argument};
  const auto* const state = static_cast<const ExceptionGlobals*>(globals);
  from.exceptions = {state->caught, state->uncaught};
  save_modes(from.modes);
  sanitizer::start_switch(from, to);
  arrive(context::jump_fcontext(to.context, &record));
}

// The arrival of a switch that the sanitizer knows. It lies on the stack that is left.
struct ToldArrival {
  Fiber* to;
  Arrival arrival;
  void* argument;
};

void arrive_told(Fiber& left, void* const argument) noexcept {
  const ToldArrival told = *static_cast<const ToldArrival*>(argument);
  sanitizer::tell_finish(*told.to);
  told.arrival(left, told.argument);
}

[[gnu::cold, gnu::noinline]] void switch_told(Fiber& from, Fiber& to, void* const globals,
                                              const Arrival arrival,
                                              void* const argument) noexcept {
  ToldArrival told{&to, arrival, argument};
  sanitizer::tell_start(from, to);
  switch_at_once(from, to, globals, &arrive_told, &told);
}

}  // namespace

// The record lies in the topmost bytes of its own stack, so that one page serves both.
static constexpr std::size_t reserved = (sizeof(Fiber) + 63) / 64 * 64;

const Fiber& fiber_on(const Stack& stack) noexcept {
  return *reinterpret_cast<const Fiber*>(stack.top - reserved);
}

Fiber& make_fiber(const Stack& stack, const std::fenv_t& floating_point,
                  const Entry entry) noexcept {
  auto* const fiber = ::new (stack.top - reserved) Fiber;
  fiber->stack = {stack.bottom, stack.top - reserved};
  fiber->task = reinterpret_cast<void*>(entry);
  // Boost gives a new context the caller's control words, which the caller's task may have changed.
  std::fenv_t present;
  std::fegetenv(&present);
  std::fesetenv(&floating_point);
  fiber->context = context::make_fcontext(
      fiber->stack.top, static_cast<std::size_t>(fiber->stack.top - fiber->stack.bottom), &start);
  std::fesetenv(&present);
  fiber->modes = modes_of(floating_point);
  sanitizer::create(*fiber);
  return *fiber;
}

Stack destroy_fiber(Fiber& fiber) noexcept {
  sanitizer::destroy(fiber);
  return {fiber.stack.bottom, fiber.stack.top + reserved};
}

void adopt_native(Fiber& fiber) noexcept {
  fiber.native = true;
  pthread_attr_t attributes;
  void* bottom = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np(base::this_thread(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &bottom, &bytes);
    pthread_attr_destroy(&attributes);
  }
  fiber.stack = {static_cast<std::byte*>(bottom), static_cast<std::byte*>(bottom) + bytes};
  sanitizer::adopt(fiber);
}

// Never inlined: __cxa_get_globals is declared const, so a compiler could keep its value across a
// switch to another thread.
[[gnu::noinline]] void* thread_exception_globals() noexcept {
  asm volatile("");  // nor treated as const itself
  return abi::__cxa_get_globals();
}

void switch_to(Fiber& from, Fiber& to, void* const globals, const Arrival arrival,
               void* const argument) noexcept {
  if (sanitizer::listens()) [[unlikely]] {
    switch_told(from, to, globals, arrival, argument);
  } else {
    switch_at_once(from, to, globals, arrival, argument);
  }
}

}  // namespace imbrex::fiber
