// SPDX-License-Identifier: BSD-3-Clause
// Phasers: barriers and point-to-point signals between tasks that may come and go (Shirako et al.,
// ICS 2008; Chatterjee et al., IPDPS 2013).
//
// Each registered task signals and waits, phase after phase, as its mode says. A phase is over when
// every registered task that signals has signalled it; who waits for it goes on then. Tasks are
// registered where they are spawned, not where they start:
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
// A task is registered by one that is, with the same mode or a weaker one, and begins in the phase
// of that: has it signalled already, so has its child. A task that ends drops all its phasers,
// however it ends, and so does one that never runs since what it depends on has failed.
//
// Scope: a phaser belongs to the innermost finish() around the place where it is made. At the end
// of that the task that called finish() drops it, before it waits. Tasks of an inner finish() may
// not be registered: that would wait for them.
//
// No deadlock comes of phasers alone if each task waits for all of its phasers at once, by next().
// One that waits for something else between two phases, or on one phaser of several, may be waited
// for in a circle; that is reported, as every stall is, with who waits for whose signal.
#pragma once

#include "imbrex/detail/language.hpp"

#include <cstdint>
#include <source_location>
#include <type_traits>
#include <utility>

#include "imbrex/detail/name.hpp"
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
  // So many phases may a signaller be ahead of the slowest of those who wait; then its next signal
  // suspends it. 0: any number. 65,536 at most. Accumulators keep as many results more.
  std::uint32_t ahead = 0;
  Name name = "phaser";  // for reports
};

/// A handle: copies mean the same phaser, which lives as long as one of them, or a registration.
/// Tasks that use it by name take a copy, since the body of finish() ends before they do.
/// Thread safety: every member, any task, or thread of the program's own; each acts for itself.
/// Those that act throw Error if the caller is not registered.
class Phaser {
 public:
  /// Registers the running task as `mode`, in phase 0. Throws Error if `ahead` is too large.
  explicit Phaser(const PhaserMode mode, const PhaserOptions& options = {},
                  const std::source_location& where = std::source_location::current())
      : state_(&detail::make_phaser({mode, options.ahead, options.name.text(), nullptr}, where)) {}
  Phaser(const Phaser& other) noexcept : state_(other.state_) { detail::retain(*state_); }
  Phaser& operator=(Phaser other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~Phaser() { detail::release(*state_); }

  /// Says that the running task has reached the end of its phase; never waits for others, unless
  /// the phaser is bounded. A second one before the task has waited changes nothing, but one of
  /// mode signal_only may signal any number of phases. One of mode wait_only does nothing. May
  /// suspend.
  void signal() const { detail::signal(state_); }
  /// Suspends until the phase is over that the running task waits for, which its next wait follows.
  /// Throws Error if it should signal first. One of mode signal_only does nothing.
  void wait() const { detail::wait(state_); }
  /// signal(), then wait(). Suspends.
  void next() const { detail::next(state_); }
  /// As next() above, where all who are registered are so as `single`: when all have signalled, and
  /// before any goes on, one of those who call this runs its `function`. What that throws, it
  /// throws there. Throws Error for another mode.
  template <class F>
  void next(const PhaserMode mode, F&& function) const {
    next_single(state_, mode, function);
  }
  /// The running task is registered no more; that may end a phase, as a signal may. Never suspends.
  void drop() const { detail::drop(state_); }

  /// As the four above, on all phasers of the running task, as Habanero's `next` statement: first
  /// every signal is given, then it waits for each.
  static void signal_all() { detail::signal(nullptr); }
  static void wait_all() { detail::wait(nullptr); }
  static void next_all() { detail::next(nullptr); }
  static void drop_all() { detail::drop(nullptr); }
  /// Throws Error if the running task is registered on several phasers.
  template <class F>
  static void next_all(const PhaserMode mode, F&& function) {
    next_single(nullptr, mode, function);
  }

  /// Ready when `phase`, counted from 0, is over, or no signaller is left: for tasks that are not
  /// registered, and when_any(). Any thread; never suspends.
  [[nodiscard]] Future<void> passed(const std::uint64_t phase) const {
    return detail::future_of(detail::passed(*state_, phase));
  }
  /// The phase that is under way, about: it may be over by the time that the caller looks at it.
  [[nodiscard]] std::uint64_t phase() const noexcept {
    return state_->phase.load(std::memory_order_acquire);
  }
  /// Whether the running task is registered; and as what. mode() throws Error if it is not.
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
  detail::PhaserState* state_;  // has a reference
};

namespace detail {
inline PhaserState& state_of(const Phaser& phaser) noexcept { return *phaser.state_; }
}  // namespace detail

}  // namespace imbrex

#pragma GCC visibility pop
