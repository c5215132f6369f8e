// SPDX-License-Identifier: BSD-3-Clause
// The functions that the headers of phasers and accumulators reduce to, and that plug-ins with
// phasers of their own call. imbrex/phaser.hpp explains the operations.
//
// Thread safety: only the running task acts on its registration; any thread may call the rest.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

#include "imbrex/detail/waist.hpp"
#include "imbrex/values/phaser_mode.hpp"

#pragma GCC visibility push(default)

namespace imbrex::detail {

// The part of a phaser that headers read. A completion: its event fires when no signaller is left.
struct PhaserState : PromiseState {
  // The current phase; written by the thread that ends the phase before. Waiting tasks read it
  // again and again.
  alignas(64) std::atomic<std::uint64_t> phase{0};
};

// An accumulator, as the phaser uses it.
class AccumulatorBase {
 public:
  AccumulatorBase() = default;
  AccumulatorBase(const AccumulatorBase&) = delete;
  AccumulatorBase& operator=(const AccumulatorBase&) = delete;
  virtual ~AccumulatorBase() = default;

  // All values of `phase` have been put: combines them. The last signaller calls it, once for each
  // phase, one phase after the other; it must not wait. `over`: no signaller is left, so an empty
  // phase has no result.
  virtual void end_phase(std::uint64_t phase, bool over) noexcept = 0;

  // Where a phaser spans several processes, the next four functions replace end_phase(), in this
  // order. Messages have message_bytes() bytes, may be copied as bytes, and are aligned as
  // max_align_t. 0: the values of the type cannot be sent.
  [[nodiscard]] virtual std::size_t message_bytes() const noexcept = 0;
  // Combines the values of this process.
  virtual void collect(std::uint64_t phase, void* message) noexcept = 0;
  // Combines `in`, of lower ranks, and `inout`, of higher ones, in `inout`. Any thread.
  virtual void combine(const void* in, void* inout) const noexcept = 0;
  // Stores the result of all processes. `over`: as for end_phase().
  virtual void publish(std::uint64_t phase, const void* message, bool over) noexcept = 0;
  // Called in place of publish(), if the result cannot be known.
  virtual void fail(std::uint64_t phase, const std::exception_ptr& error) noexcept = 0;

  AccumulatorBase* following = nullptr;  // the next accumulator of the phaser
  int rank = 0;             // rank of this process, where the phaser spans several
  bool ordered = false;     // combine() must see lower ranks first
};

// Whether a phase follows the phase that ends.
enum class PhaseFollows : std::uint8_t {
  yes,
  no,                 // no signaller is left here
  none_has_signalled  // no signaller is left here, and none has signalled the phase that ends
};

// The part of a phaser that spans several processes. A phase in which all tasks have signalled here
// ends when the backend says so. The functions are called in the order of phases, and must not
// wait.
class PhaserBackend {
 public:
  PhaserBackend() = default;
  PhaserBackend(const PhaserBackend&) = delete;
  PhaserBackend& operator=(const PhaserBackend&) = delete;
  virtual ~PhaserBackend() = default;

  // Checks once whether a phase can end now. Any thread.
  virtual void look() noexcept = 0;
  // The first signal of `phase` has come. Called only if `early` is set, and not if all signallers
  // leave instead. It may be called again, or late, when the phase is over, and while another
  // thread calls the other functions.
  virtual void first_signal(std::uint64_t phase, AccumulatorBase* accumulators) noexcept = 0;
  // The last signal has come. Calls collect() of all `accumulators`, and publish() or fail(); or
  // only their end_phase(), if there is no other process. Returns true if the phase is over now;
  // otherwise a thread calls end_phase(phaser) later, once. fail_phaser(phaser) may be called
  // before.
  [[nodiscard]] virtual bool last_signal(PhaserState& phaser, std::uint64_t phase,
                                         AccumulatorBase* accumulators,
                                         PhaseFollows follows) noexcept = 0;
  // No signaller is left here, and all phases are over; no function is called after it. Not called
  // if the task that makes the phaser does not signal.
  virtual void closed() noexcept = 0;

  bool early = false;  // the backend needs first signals; written before other tasks are registered
  bool is_local = false;  // no other process takes part; written as `early`
};

struct PhaserSpec {
  PhaserMode mode;
  std::uint32_t ahead;  // 0: any number of phases
  const char* name;     // not copied
  PhaserBackend* backend;  // owned by the phaser from then on; null: this process only
};
// Registers the running task. The caller owns the reference. Throws Error.
[[nodiscard]] PhaserState& make_phaser(const PhaserSpec& spec, const std::source_location& where);
// Adds `accumulator`, which the phaser owns from then on. Throws Error if the running task is not
// the only registered task, or if the phaser spans several processes and the values cannot be sent.
// An `ordered` accumulator needs Standing::path.
void add_accumulator(PhaserState& phaser, AccumulatorBase& accumulator);
// The exception that accumulators throw where the operation has thrown on another rank.
[[nodiscard]] std::exception_ptr failure_of_rank(int rank);

// A phaser that a task under construction is to be registered on.
struct Phased {
  PhaserState* phaser;  // null: all phasers of the running task
  PhaserMode mode;
  bool inherits;        // takes the mode of the running task
};
// The phasers of one task under construction, which the list keeps alive. An empty list costs
// nothing.
class PhasedList {
 public:
  PhasedList() = default;
  PhasedList(const PhasedList& other) {
    for (const Phased& one : other.span()) add(one);
  }
  PhasedList& operator=(PhasedList other) noexcept {
    std::swap(many_, other.many_);
    return *this;
  }
  [[gnu::always_inline]] ~PhasedList() {
    if (many_ != nullptr) [[unlikely]] give_up();
  }

  [[gnu::noinline]] void add(const Phased& phased) {
    if (many_ == nullptr) many_ = new std::vector<Phased>;
    many_->push_back(phased);
    if (phased.phaser != nullptr) retain(*phased.phaser);
  }
  [[nodiscard]] bool empty() const noexcept { return many_ == nullptr; }
  [[nodiscard]] std::span<const Phased> span() const noexcept {
    if (many_ == nullptr) return {};
    return *many_;
  }

 private:
  [[gnu::noinline]] void give_up() noexcept {
    for (const Phased& one : *many_) {
      if (one.phaser != nullptr) release(*one.phaser);
    }
    delete many_;
  }
  std::vector<Phased>* many_ = nullptr;  // owned
};
// Call between create() and submit(). Throws Error; the caller then discards the task.
void put_phased(void* closure, std::span<const Phased> phased);

// A null `phaser` means all phasers of the running task. All functions throw Error; the first three
// may suspend.
void signal(PhaserState* phaser);
void wait(PhaserState* phaser);
void next(PhaserState* phaser);
void next_single(PhaserState* phaser, void (*run)(void* context), void* context);
void drop(PhaserState* phaser);
// PhaserBackend explains it. Any thread.
void end_phase(PhaserState& phaser) noexcept;
// Called between the last signal of a phase and its end. From now on tasks that signal, or wait for
// the end of this phase or a later one, throw `error`. Only closed() of the backend is called
// afterwards.
void fail_phaser(PhaserState& phaser, const std::exception_ptr& error) noexcept;

// registered: the running task
[[nodiscard]] bool is_registered(const PhaserState& phaser) noexcept;
// the running task's mode. Throws Error
[[nodiscard]] PhaserMode mode_on(const PhaserState& phaser);
// A completion that is ready when `phase` is over. The caller owns the reference.
[[nodiscard]] Completion* passed(PhaserState& phaser, std::uint64_t phase);

// The number of phases that a task may put values ahead: PhaserSpec::ahead, at least 1.
[[nodiscard]] std::uint32_t ahead_of(const PhaserState& phaser) noexcept;

// The phases of the running task, for its accumulators.
struct Standing {
  std::uint64_t signalled;  // the phase that its next signal belongs to
  std::uint64_t waited;     // the phase that it waits for next
  const std::vector<std::uint32_t>* path;  // the order of the registrations from the root to the
                                           // task
  PhaserMode mode;
};
[[nodiscard]] Standing standing_on(const PhaserState& phaser, const char* what);
// Fills in `standing`; returns false if the running task is not registered.
[[nodiscard]] bool find_standing(const PhaserState& phaser, Standing& standing) noexcept;
// For a phaser without signallers: suspends until the last phase is over.
void await_last_phase(PhaserState& phaser);
[[noreturn]] void throw_of_accumulator(const PhaserState& phaser, const char* what,
                                       const char* why);

// worker_slots(): the number of workers that have a slot of their own in a table of slots; workers
// that join later may have none. worker_slot(): the number of the caller's worker; SIZE_MAX in
// other threads.
[[nodiscard]] std::size_t worker_slots() noexcept;
[[nodiscard]] std::size_t worker_slot() noexcept;

}  // namespace imbrex::detail

#pragma GCC visibility pop
