// SPDX-License-Identifier: BSD-3-Clause
// Phasers: barriers and point-to-point signals between tasks that may come and go (Shirako et al.,
// ICS 2008; Chatterjee et al., IPDPS 2013).
//
// Each registered task signals and waits, phase after phase, as its mode says. A phase is over when
// every registered signaller has signalled it; the tasks that wait for it then resume. The spawn
// registers a task, not its start:
//
//   imbrex::finish([&] {
//     imbrex::Phaser step(imbrex::signal_wait);
//     for (int i = 0; i < parts; ++i) {
//       imbrex::task("part").phased(step).launch([=] {
//         compute(i); step.next(); exchange(i);
//       });
//     }
//   });
//
// A registered task registers its children, with its own mode or a weaker one. A child begins in
// the phase of its parent: if the parent has signalled already, the child counts as having
// signalled, too. A task drops all its phasers when it ends, also if it fails, or never runs
// because a task that it depends on has failed.
//
// Scope: a phaser belongs to the innermost finish() around the place where it is made. At the end
// of that finish() the task that called it drops the phaser, then waits. Tasks of an inner finish()
// may not be registered, because the inner finish() would wait for them.
//
// Phasers alone cause no deadlock if each task waits for all of its phasers at once, by next(). A
// task that waits for another thing between two phases, or on one phaser of several, may be part of
// a circle of waits. Such a circle is reported, as every stall is, with the missing signals.
#pragma once

#include "imbrex/detail/language.hpp"

#include <cstdint>
#include <source_location>
#include <type_traits>
#include <utility>

#include "imbrex/name.hpp"
#include "imbrex/detail/phasers.hpp"
#include "imbrex/error.hpp"
#include "imbrex/future.hpp"

#pragma GCC visibility push(default)

namespace imbrex {

using enum PhaserMode;

class Phaser;
namespace detail {
[[nodiscard]] PhaserState& state_of(const Phaser& phaser) noexcept;  // for plug-ins
}  // namespace detail

struct PhaserOptions {
  // The number of phases that a signaller may be ahead of the slowest waiter; its next signal then
  // suspends it. 0: any number. 65,536 at most. Accumulators keep as many further results.
  std::uint32_t ahead = 0;
  Name name = "phaser";  // for reports
};

/// A handle: copies name the same phaser, which lives as long as a handle or a registration. Tasks
/// that use it by name capture a copy, since the body of finish() ends before the tasks do. Thread
/// safety: any task or thread may call every member; each acts on the registration of its caller.
/// Members that act throw Error if the caller is not registered.
class Phaser {
 public:
  /// Makes a phaser and registers the running task as `mode`, in phase 0. Never suspends. Throws
  /// Error if `ahead` is too large.
  explicit Phaser(const PhaserMode mode, const PhaserOptions& options = {},
                  const std::source_location& where = std::source_location::current())
      : state_(&detail::make_phaser({mode, options.ahead, options.name.text(), nullptr}, where)) {}
  Phaser(const Phaser& other) noexcept : state_(other.state_) { detail::retain(*state_); }
  Phaser& operator=(Phaser other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Phaser() { detail::release(*state_); }

  /// Says that the running task has reached the end of its phase; waits for others only if the
  /// phaser is bounded, and then suspends. A second signal before the task has waited changes
  /// nothing. A task of mode signal_only may signal any number of phases; in mode wait_only the
  /// call does nothing.
  void signal() const { detail::signal(state_); }
  /// Suspends until the phase that the running task waits for is over; its next wait is for the
  /// phase after that. Throws Error if the task must signal first. In mode signal_only the call
  /// does nothing.
  void wait() const { detail::wait(state_); }
  /// signal(), then wait(). Suspends.
  void next() const { detail::next(state_); }
  /// signal(), then wait(), for a phaser on which all tasks are registered as `single`. When all
  /// have signalled, and before any task goes on, one of the callers runs its `function`, and
  /// throws what the function throws. Suspends. Throws Error for another mode.
  template <class F>
  void next(const PhaserMode mode, F&& function) const {
    next_single(state_, mode, function);
  }
  /// Ends the registration of the running task; that may end a phase, as a signal may. Never
  /// suspends.
  void drop() const { detail::drop(state_); }

  /// These act on all phasers of the running task, as the `next` statement of Habanero: next_all()
  /// gives every signal first, then waits for each phaser. Suspend as the members above.
  static void signal_all() { detail::signal(nullptr); }
  static void wait_all() { detail::wait(nullptr); }
  static void next_all() { detail::next(nullptr); }
  static void drop_all() { detail::drop(nullptr); }
  /// next(single), on the only phaser of the running task. Suspends. Throws Error if the running
  /// task is registered on several phasers.
  template <class F>
  static void next_all(const PhaserMode mode, F&& function) {
    next_single(nullptr, mode, function);
  }

  /// Returns a future that is ready when `phase`, counted from 0, is over, or when no signaller is
  /// left: for tasks that are not registered, and for when_any(). Any thread; never suspends.
  [[nodiscard]] Future<void> passed(const std::uint64_t phase) const {
    return detail::future_of(detail::passed(*state_, phase));
  }
  /// The number of the current phase. It may be over by the time that the caller reads it. Any
  /// thread; never suspends.
  [[nodiscard]] std::uint64_t phase() const noexcept {
    return state_->phase.load(std::memory_order_acquire);
  }
  /// Whether the running task is registered, and with which mode. mode() throws Error if it is not.
  /// Never suspend.
  [[nodiscard]] bool is_registered() const noexcept { return detail::is_registered(*state_); }
  [[nodiscard]] PhaserMode mode() const { return detail::mode_on(*state_); }

 protected:
  // Takes over a reference.
  explicit Phaser(detail::PhaserState& state) noexcept : state_(&state) {}

 private:
  template <class F>
  static void next_single(detail::PhaserState* const state, const PhaserMode mode, F& function) {
    if (mode != single) {
      throw Error("imbrex: next() with a function takes the mode `single` and no other");
    }
    using Plain = std::remove_reference_t<F>;
    detail::next_single(
        state, [](void* const context) { (*static_cast<Plain*>(context))(); },
        const_cast<void*>(static_cast<const void*>(&function)));
  }

  friend detail::PhaserState& detail::state_of(const Phaser& phaser) noexcept;
  detail::PhaserState* state_;  // owns a reference
};

namespace detail {
inline PhaserState& state_of(const Phaser& phaser) noexcept { return *phaser.state_; }
}  // namespace detail

}  // namespace imbrex

#pragma GCC visibility pop
