// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/handlers.hpp"

#include <cstdio>
#include <exception>
#include <vector>

#include "imbrex/detail/observation.hpp"
#include "mpi/engine/engine.hpp"
#include "trace/races.hpp"

namespace imbrex::mpi {

// Lies on the stack of the thread that is in a handler.
struct Running {
  bool may_call_mpi = true;
  std::vector<Handler> waiting = {};  // in order
};

namespace {

constinit thread_local Running* running_here = nullptr;

char asked_for;  // a key: the code that asks for a handler comes before each later call of it

void call(Running& running, const Handler& handler) noexcept {
  running.may_call_mpi = handler.may_call_mpi;
  try {
    trace::races::visit(&asked_for, handler.function, handler.argument);
  } catch (...) {
    detail::print("imbrex: a continuation or event handler has thrown: " +
                  detail::thrown_text(std::current_exception()) + "\n");
  }
}

}  // namespace

[[gnu::noinline]] bool in_handler() noexcept {
  asm volatile("" ::: "memory");  // two calls may return different values
  return running_here != nullptr;
}

[[gnu::noinline]] void run_handler(const Handler& handler) noexcept {
  if (running_here != nullptr) {
    running_here->waiting.push_back(handler);
    return;
  }
  const Callback callback;
  Running running;
  running_here = &running;
  call(running, handler);
  for (std::size_t i = 0; i < running.waiting.size(); ++i) {  // may grow meanwhile
    call(running, Handler(running.waiting[i]));
  }
  running_here = nullptr;
}

void note_asked_for() noexcept { trace::races::before(&asked_for); }

[[gnu::noinline]] bool report_refused(const char* call) noexcept {
  if (running_here->may_call_mpi) return false;
  std::fprintf(stderr,
               "imbrex: %s is called within an event handler and does nothing there: let the "
               "handler note the event, and make the call outside of the handler\n",
               call);
  return true;
}

}  // namespace imbrex::mpi
