// SPDX-License-Identifier: BSD-3-Clause
// What the workers of this process do with the table of lent processors: when to ask, look and
// wait. Each worker stands for one processor: those of this process for its own, and spare workers
// for those of other ranks. A worker runs tasks only while this process holds its processor. Knows
// no tasks. docs/design/lending.md has the argument.
//
// Thread safety: the worker of a seat calls the functions with a Seat; any worker calls the others.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/arch.hpp"
#include "sched/lend/table.hpp"

namespace imbrex::sched {

// A worker's processor. Only its worker uses it.
struct Seat {
  int processor = -1;       // by the system's number; -1: the worker lends nothing
  bool spare = false;       // another rank owns it
  bool away = false;        // this process owns it, and the worker has lent it
  std::uint64_t since = 0;  // spare: ns; when the loan began; 0: there is none
};

class Lending {
 public:
  struct Setup {
    std::string job;
    std::vector<int> own;     // processors of this process's workers
    std::vector<int> others;  // processors that it may borrow
    std::uint64_t spin_ns = 0;  // how long an idle worker spins
  };
  // Throws Error if the processes of this node cannot lend to each other; its text says why.
  explicit Lending(Setup setup);

  [[nodiscard]] const std::vector<int>& others() const noexcept { return setup_.others; }

  // ---- a worker with a processor of its own ----------------------------------------------------

  void lend(Seat& seat) noexcept;
  // Takes a lent processor back: at once, or as soon as its borrower is between two tasks, or by
  // force after `patience_ns`. False, and nothing is taken, once `still_needed()` is false.
  template <class StillNeeded>
  [[nodiscard]] bool take_back(Seat& seat, StillNeeded still_needed) noexcept;
  // Takes it back if nobody uses it, and no other rank wants a processor.
  void take_back_if_free_unless_wanted(Seat& seat) noexcept {
    if (!table_.others_want()) take_back_if_free(seat);
  }
  // Takes it back if nobody uses it.
  void take_back_if_free(Seat& seat) noexcept {
    if (table_.take_back_if_free(seat.processor)) seat.away = false;
  }
  // Whether a worker that has been idle for this time lends its processor before the end of its
  // usual idle phase.
  [[nodiscard]] bool lends_now(const Seat& seat, std::uint64_t idle_ticks,
                               bool polls) const noexcept;

  // ---- a spare worker --------------------------------------------------------------------------

  // Whether it may begin another task. One read of the table.
  [[nodiscard]] bool may_run(const Seat& seat) const noexcept {
    return table_.may_run(seat.processor);
  }
  // Whether this process has got the processor. The time of the loan begins.
  [[nodiscard]] bool begin_loan(Seat& seat) noexcept;
  [[nodiscard]] bool borrow(Seat& seat) noexcept;
  void give_back(Seat& seat) noexcept;
  // Sleeps until the process gets the processor, or ring() is called; 0: no limit.
  void await(const Seat& seat, const std::uint64_t timeout_ns) noexcept {
    (void)table_.await(seat.processor, timeout_ns);
  }
  void ring(const Seat& seat) noexcept { table_.ring(seat.processor); }

  // ---- all workers -----------------------------------------------------------------------------

  // True for one of the workers that call it between two tasks, now and then.
  [[nodiscard]] bool is_look_due() noexcept;
  // This process has `ready` tasks that no worker runs, and has begun `begun` so far: tells the
  // other ranks, and takes free processors for its spare workers.
  void look(std::int64_t ready, std::uint64_t begun) noexcept;
  [[nodiscard]] bool others_want() const noexcept { return table_.others_want(); }
  // A worker has found nothing to run.
  void want_nothing() noexcept { table_.want(0); }
  // Takes free processors for `ready` tasks at once.
  void borrow_for(std::int64_t ready) noexcept;

  // The runtime has ended. Threads of the program that have joined it may still come here to sleep:
  // the object stays, and they move no processor.
  void leave() noexcept { table_.leave(); }
  // The process ends while its workers run.
  void abandon() noexcept { table_.remove_if_alone(); }

  [[nodiscard]] double lent_s() const noexcept {
    return static_cast<double>(table_.lent_ns()) * 1e-9;
  }
  [[nodiscard]] double borrowed_s() const noexcept {
    return static_cast<double>(table_.borrowed_ns()) * 1e-9;
  }

  // An owner waits so long for a borrower that does not answer: more than most tasks take.
  static constexpr std::uint64_t patience_ns = 10'000'000;

 private:
  static constexpr std::uint64_t wait_ns = 1'000'000;      // between two looks whether it must wait
  static constexpr std::uint64_t burial_ns = 100'000'000;  // between looks for dead processes

  const Setup setup_;
  lend::Table table_;
  const double ticks_per_ns_;
  const std::uint64_t look_gap_;                // ticks between two looks
  std::atomic<std::uint64_t> next_look_{0};     // ticks; the worker that raises it looks
  std::atomic<std::uint64_t> looked_at_{0};     // ticks; the looking worker, as the next two;
                                                // relaxed: a mixture costs one wrong estimate
  std::atomic<std::uint64_t> begun_then_{0};
  std::atomic<std::uint64_t> buried_at_{0};     // ns
};

// ---- bodies ----------------------------------------------------------------------------------

template <class StillNeeded>
bool Lending::take_back(Seat& seat, const StillNeeded still_needed) noexcept {
  const std::uint64_t begin = base::monotonic_ns();
  while (!table_.take_back(seat.processor)) {
    if (!still_needed()) return false;
    (void)table_.await(seat.processor, wait_ns);
    if (base::monotonic_ns() - begin >= patience_ns) table_.force(seat.processor);
  }
  seat.away = false;
  return true;
}

}  // namespace imbrex::sched
