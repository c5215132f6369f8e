// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/threads/ship.hpp"

#include <sched.h>

#include <chrono>
#include <thread>

#include "mpi/abi/completion_calls.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/threads/ship_blocking.hpp"
#include "mpi/engine/threads/thread.hpp"

namespace imbrex::mpi::threads {

// Never destroyed: the thread may run while static objects are.
ProgressThread& the_thread() noexcept {
  static ProgressThread& the_one = *new ProgressThread;
  return the_one;
}


bool on_mpi_thread() noexcept { return the_thread().is_caller(); }

void ship(void (*function)(void* arguments), void* arguments) noexcept {
  struct Shipment {
    void (*function)(void* arguments);
    void* arguments;
    Asking* asking;
  } shipment{function, arguments, Asking::here()};
  Errand errand{[](void* const place) {
                  const Shipment& its = *static_cast<Shipment*>(place);
                  const Asking::Lent lent(its.asking);
                  its.function(its.arguments);
                },
                &shipment};
  the_thread().run(errand);
}

void wait_for_lock() noexcept {
  if (switches.ships_calls.load(std::memory_order_relaxed) && on_mpi_thread()) {
    the_thread().run_errands();
  }
  sched_yield();
}

void wait_between_questions(const int round) noexcept {
  constexpr int yields = 100;
  if (round < yields) {
    sched_yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace imbrex::mpi::threads
