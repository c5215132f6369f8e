// SPDX-License-Identifier: BSD-3-Clause
// What the headers of phasers and accumulators, and plug-ins that make phasers of their own, reduce
// to. imbrex/phaser.hpp says what the operations mean.
//
// Thread safety: what acts on the running task's registration, that task; the rest any thread.
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

#pragma GCC visibility push(default)

namespace imbrex {

// What a task that is registered on a phaser does there. A task hands on its own mode or a weaker
// one: `single` may hand on all, `signal_wait` the last three, the last two only themselves.
enum class PhaserMode : std::uint8_t {
  single,       // as signal_wait; and next() may name a function that one of the tasks runs
  signal_wait,  // the others wait for its signal, and it waits for theirs
  signal_only,  // it never waits, and may run ahead
  wait_only     // nobody waits for it
};

}  // namespace imbrex

namespace imbrex::detail {

// The part of a phaser that headers see. A completion: its event fires when no signaller is left.
struct PhaserState : PromiseState {
  // That is under way, or just about to be; written by whoever ends the one before. It begins the
  // cache line that ends of phases write.
  alignas(64) std::atomic<std::uint64_t> phase{0};
};

// An accumulator, as the phaser sees it.
class AccumulatorBase {
 public:
  AccumulatorBase() = default;
  AccumulatorBase(const AccumulatorBase&) = delete;
  AccumulatorBase& operator=(const AccumulatorBase&) = delete;
  virtual ~AccumulatorBase() = default;

  // All that belongs to `phase` has been put: puts it together. Called once a phase, for one phase
  // after the other, by whoever signals last; it must not wait. `over`: no signaller is left, so
  // what nobody has put anything into is no result.
  virtual void end_phase(std::uint64_t phase, bool over) noexcept = 0;

  // Where a phaser spans several processes, these take the place of end_phase(), in this order.
  // Messages have message_bytes() bytes, may be copied as bytes, and are aligned as max_align_t.
  // 0: the type's values cannot be sent.
  [[nodiscard]] virtual std::size_t message_bytes() const noexcept = 0;
  // Puts together what this process has.
  virtual void collect(std::uint64_t phase, void* message) noexcept = 0;
  // Puts `in`, of lower ranks, and `inout`, of higher ones, together in `inout`. Any thread.
  virtual void combine(const void* in, void* inout) const noexcept = 0;
  // What all processes have. `over` as above.
  virtual void publish(std::uint64_t phase, const void* message, bool over) noexcept = 0;
  // Instead, if it cannot be known.
  virtual void fail(std::uint64_t phase, const std::exception_ptr& error) noexcept = 0;

  AccumulatorBase* following = nullptr;  // of the same phaser
  int rank = 0;             // of this process, where the phaser spans several
  bool ordered = false;     // combine() must see lower ranks first
};

// Whether a phase comes after the one that ends.
enum class PhaseFollows : std::uint8_t {
  yes,
  no,                 // no signaller is left here
  none_has_signalled  // the same, and none has signalled the one that ends: all have left before
};

// What stands behind a phaser that spans several processes: a phase in which all have signalled
// here ends when this says so. The functions are called in the order of phases, and must not wait.
class PhaserBackend {
 public:
  PhaserBackend() = default;
  PhaserBackend(const PhaserBackend&) = delete;
  PhaserBackend& operator=(const PhaserBackend&) = delete;
  virtual ~PhaserBackend() = default;

  // Looks once whether it has become possible to end a phase. Any thread.
  virtual void look() noexcept = 0;
  // The first signal of `phase` has come. Called only where this is `early`, and not where all
  // leave instead; may be called again, or late, when the phase is over already; and while another
  // thread calls the others.
  virtual void first_signal(std::uint64_t phase, AccumulatorBase* accumulators) noexcept = 0;
  // The last one has. Calls collect() of all `accumulators`, and publish() or fail(); or just
  // end_phase() of them, where there is no other process. Returns true if the phase is over now;
  // else somebody calls end_phase(phaser) later, once. fail_phaser(phaser) may be called before
  // that.
  [[nodiscard]] virtual bool last_signal(PhaserState& phaser, std::uint64_t phase,
                                         AccumulatorBase* accumulators,
                                         PhaseFollows follows) noexcept = 0;
  // No signaller is left here, and all phases are over; nothing is called after it. Not called if
  // the one who makes the phaser does not signal.
  virtual void closed() noexcept = 0;

  bool early = false;  // wants to know of first signals; written before others are registered
  // No other process takes part: last_signal() ends all phases at once, and where there is no
  // accumulator it need not be called. Any thread may take that back; relaxed, since nothing else
  // depends on it.
  std::atomic<bool> alone{false};
};

struct PhaserSpec {
  PhaserMode mode;
  std::uint32_t ahead;  // 0: any number of phases
  const char* name;     // not copied
  PhaserBackend* backend;  // owned by the phaser from then on; null: this process only
};
// Registers the running task. The caller owns the reference. Throws Error.
[[nodiscard]] PhaserState& make_phaser(const PhaserSpec& spec, const std::source_location& where);
// The phaser owns `accumulator` from then on. Throws Error if the running task is not registered,
// or others are, or its values cannot be sent and the phaser spans several processes. One that is
// `ordered` asks for Standing::path.
void add_accumulator(PhaserState& phaser, AccumulatorBase& accumulator);
// What accumulators say where the operation has thrown on another rank.
[[nodiscard]] std::exception_ptr failure_of_rank(int rank);

// A phaser that a task under construction is to be registered on.
struct Phased {
  PhaserState* phaser;  // null: on all of the running task's
  PhaserMode mode;
  bool inherits;        // the running task's mode
};
// The phasers of one task under construction, which keeps them alive; none, mostly, at no cost.
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
// Between create() and submit(). Throws Error; then the caller discards the task.
void put_phased(void* closure, std::span<const Phased> phased);

// A null `phaser` is all that the running task is registered on. All throw Error; the first three
// may suspend.
void signal(PhaserState* phaser);
void wait(PhaserState* phaser);
void next(PhaserState* phaser);
void next_single(PhaserState* phaser, void (*run)(void* context), void* context);
void drop(PhaserState* phaser);
// See PhaserBackend. Any thread.
void end_phase(PhaserState& phaser) noexcept;
// Between the last signal of a phase and its end: from now on who waits for the end of this phase
// or a later one, and who signals, throws `error`, and `span` is not called but for closed().
void fail_phaser(PhaserState& phaser, const std::exception_ptr& error) noexcept;

[[nodiscard]] bool is_registered(const PhaserState& phaser) noexcept;  // the running task
[[nodiscard]] PhaserMode mode_on(const PhaserState& phaser);           // its mode. Throws Error
// Ready when `phase` is over. The caller owns the reference.
[[nodiscard]] Completion* passed(PhaserState& phaser, std::uint64_t phase);

// How many phases a task may put values ahead: PhaserSpec::ahead, 1 at least.
[[nodiscard]] std::uint32_t ahead_of(const PhaserState& phaser) noexcept;

// Where the running task stands: for its accumulators.
struct Standing {
  std::uint64_t signalled;  // the phase that its next signal belongs to
  std::uint64_t waited;     // the phase that it waits for next
  const std::vector<std::uint32_t>* path;  // its place among the registrations, as they were made
  PhaserMode mode;
};
[[nodiscard]] Standing standing_on(const PhaserState& phaser, const char* what);
// The same; false if it is not registered.
[[nodiscard]] bool find_standing(const PhaserState& phaser, Standing& standing) noexcept;
// Where no signaller is left: suspends until the last phase is over.
void await_last_phase(PhaserState& phaser);
[[noreturn]] void throw_of_accumulator(const PhaserState& phaser, const char* what,
                                       const char* why);

// How many workers have a slot of their own in a table of slots; those that join later may have
// none. The number of the worker that the caller stands on; SIZE_MAX in other threads.
[[nodiscard]] std::size_t worker_slots() noexcept;
[[nodiscard]] std::size_t worker_slot() noexcept;

}  // namespace imbrex::detail

#pragma GCC visibility pop
