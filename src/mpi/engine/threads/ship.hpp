// SPDX-License-Identifier: BSD-3-Clause
// One thread makes every call of MPI, where MPI gives less than MPI_THREAD_MULTIPLE: other threads
// ship their calls to it, and wait for the result.
//
// A generated header renames each PMPI_X in the sources of this library to Shipped<PMPI_X>::call or
// similar (export_calls.py), so that no call, of the library or the program, bypasses it.
#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "base/guarded.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/abi/error_handlers.hpp"
#include "mpi/abi/next.hpp"
#include "mpi/abi/switches.hpp"

namespace imbrex::mpi::threads {

[[nodiscard]] bool on_mpi_thread() noexcept;

// Runs `function(arguments)` on the thread that makes MPI's calls, and returns when it has run.
// REQUIRES: that thread runs, and is not the caller. Blocks for the time of one call of MPI.
void ship(void (*function)(void* arguments), void* arguments) noexcept;

// Called between two attempts at a lock under which MPI is called: its holder may wait for this
// thread.
void wait_for_lock() noexcept;

// A lock under which MPI is called. First come, first served: MPI may yield the processor inside a
// probe, and where threads outnumber processors the others then run only while the lock is held. A
// thread that probes in a loop would keep them out for seconds.
class IMBREX_LOCK CallLock {
 public:
  void lock() noexcept IMBREX_ACQUIRE() {
    const unsigned mine = next_.fetch_add(1, std::memory_order_relaxed);
    while (served_.load(std::memory_order_acquire) != mine) wait_for_lock();  // pairs with unlock()
  }
  void unlock() noexcept IMBREX_RELEASE() {
    served_.store(served_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

 private:
  std::atomic<unsigned> next_{0};
  std::atomic<unsigned> served_{0};
};

template <class F>
void ship(F call) {
  ship([](void* arguments) { (*static_cast<F*>(arguments))(); }, &call);
}

// Calls `Function` on the calling thread; init_and_finalize.cpp says which thread that is.
template <auto Function>
struct Passed;

template <class Result, class... Parameters, Result (*Function)(Parameters...)>
struct Passed<Function> {
  static Result call(Parameters... parameters) { return call_next<Function>(parameters...); }
};

// Calls `Function` on the thread that may call MPI.
template <auto Function>
struct Shipped;

template <class Result, class... Parameters, Result (*Function)(Parameters...)>
struct Shipped<Function> {
  static Result call(Parameters... parameters) {
    if (!switches.ships_calls.load(std::memory_order_relaxed) || on_mpi_thread()) [[likely]] {
      return call_next<Function>(parameters...);
    }
    Result result{};
    KeptHandler kept;
    ship([&] {
      result = call_next<Function>(parameters...);
      if (kept_count.load(std::memory_order_relaxed) != 0) [[unlikely]] kept = take_kept();
    });
    if (kept.kind != KeptHandler::Kind::none) [[unlikely]] keep(kept);  // it belongs to the caller
    return result;
  }
};

// ---- calls in which MPI calls functions of the program ---------------------------------------

// Operations of reductions, functions of attributes and of generalised requests: MPI may hold a
// lock meanwhile, and a suspended task would take the thread out of the call. These functions
// therefore run outside of tasks.

// A literal as an argument of a template.
template <std::size_t Size>
struct CallName {
  consteval CallName(const char (&text)[Size]) { std::copy_n(text, Size, characters); }
  char characters[Size];
};

class InCallback {
 public:
  explicit InCallback(const char* const call) noexcept { detail::enter_callback(call); }
  ~InCallback() { detail::leave_callback(); }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;
};

template <auto Function, CallName Name>
struct CallsBack;

template <class Result, class... Parameters, Result (*Function)(Parameters...), CallName Name>
struct CallsBack<Function, Name> {
  static Result call(Parameters... parameters) {
    const InCallback here(Name.characters);
    return Shipped<Function>::call(parameters...);
  }
};

}  // namespace imbrex::mpi::threads
