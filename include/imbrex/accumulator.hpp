// SPDX-License-Identifier: BSD-3-Clause
// Accumulators: reductions over the tasks of a phaser, phase after phase (Chatterjee et al., IPDPS
// 2013, section II.C).
//
//   imbrex::Phaser step(imbrex::signal_wait);
//   imbrex::Accumulator<double> residual(step, imbrex::op::sum);
//   ... tasks with .phased(step):  residual.put(mine); step.next(); if (residual.get() < e) ...
//
// The values that tasks put in phase k are combined once, when phase k is over. The result can be
// read in phase k + 1, until the next next().
#pragma once

#include "imbrex/detail/language.hpp"

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "imbrex/detail/phasers.hpp"
#include "imbrex/phaser.hpp"

#pragma GCC visibility push(default)

namespace imbrex {

// Operations: function objects that combine two values and name an identity. An operation of the
// program is any type that can be called as T(T, T), is associative and commutative, and comes with
// an identity.
namespace op {
struct Sum {
  /// `identity` is the value that changes nothing; the call combines two values. Every operation
  /// here has both members. Any thread may call them; they never suspend.
  template <class T>
  [[nodiscard]] static T identity() { return T(); }
  template <class T>
  [[nodiscard]] T operator()(const T& a, const T& b) const { return a + b; }
};
struct Product {
  /// The identity is 1; the call returns the product. Any thread; never suspends.
  template <class T>
  [[nodiscard]] static T identity() { return T(1); }
  template <class T>
  [[nodiscard]] T operator()(const T& a, const T& b) const { return a * b; }
};
/// The smallest value.
struct Min {
  /// The identity is infinity or the largest value of T; the call returns the smaller value. Any
  /// thread; never suspends.
  template <class T>
  [[nodiscard]] static T identity() {
    if constexpr (std::numeric_limits<T>::has_infinity) return std::numeric_limits<T>::infinity();
    return std::numeric_limits<T>::max();
  }
  template <class T>
  [[nodiscard]] T operator()(const T& a, const T& b) const { return b < a ? b : a; }
};
struct Max {
  /// The identity is minus infinity or the lowest value of T; the call returns the larger value.
  /// Any thread; never suspends.
  template <class T>
  [[nodiscard]] static T identity() {
    if constexpr (std::numeric_limits<T>::has_infinity) return -std::numeric_limits<T>::infinity();
    return std::numeric_limits<T>::lowest();
  }
  template <class T>
  [[nodiscard]] T operator()(const T& a, const T& b) const { return a < b ? b : a; }
};
/// Any one of the values that tasks have put; which one is not specified.
struct Any {
  /// The identity is a value-initialised T; the call returns either value. Any thread; never
  /// suspends.
  template <class T>
  [[nodiscard]] static T identity() { return T(); }
  template <class T>
  [[nodiscard]] T operator()(const T&, const T& b) const { return b; }
};
inline constexpr Sum sum;
inline constexpr Product product;
inline constexpr Min min;
inline constexpr Max max;
inline constexpr Any any;
}  // namespace op

enum class Accumulation : std::uint8_t {
  lazy,         // in a place of each worker; they are put together at the end of the phase
  shared,       // in one place, at once: atomic, or under a lock for types that are not
  reproducible  // in the order of registration: the same result, to the last bit, in every run
};

namespace detail {

template <class T, class Op>
void put_into(std::optional<T>& slot, const Op& op, const T& value) {
  if (slot) {
    slot = op(*slot, value);
  } else {
    slot.emplace(value);
  }
}

// The values of several phases. A put goes to the phase of the task that puts. A take writes
// nothing, so that the cache line stays with the thread that puts.
template <class T>
class Ring {
 public:
  explicit Ring(const std::size_t phases) : cells_(phases) {}

  template <class Op>
  void put(const std::uint64_t phase, const Op& op, const T& value) {
    Cell& cell = cells_[phase % cells_.size()];
    if (cell.after == phase + 1) {
      cell.value = op(*cell.value, value);
    } else {
      cell.value.emplace(value);
      cell.after = phase + 1;
    }
  }
  // Adds the values that were put in `phase` to `all`.
  template <class Op>
  void add(const std::uint64_t phase, const Op& op, std::optional<T>& all) const {
    const Cell& cell = cells_[phase % cells_.size()];
    if (cell.after == phase + 1) put_into(all, op, *cell.value);
  }

 private:
  struct Cell {
    std::uint64_t after = 0;  // one more than the phase of the value; 0: no value
    std::optional<T> value;
  };
  std::vector<Cell> cells_;
};

// The ways to collect the values of a phase. take() is called when all values of the phase have
// been put, and empties the collection.

template <class T, class Op>
class LazyStore {
 public:
  LazyStore(const std::size_t phases, const Op& op)
      : op_(op), phases_(phases), count_(worker_slots()), slots_(new Slot[count_]) {}
  ~LazyStore() {
    for (std::size_t i = 0; i < count_; ++i) delete slots_[i].load(std::memory_order_relaxed);
  }
  LazyStore(const LazyStore&) = delete;
  LazyStore& operator=(const LazyStore&) = delete;

  void put(const Standing& by, const T& value) {
    const std::size_t worker = worker_slot();
    if (worker >= count_) {  // a thread of the program's own, or a worker that joined later
      const std::lock_guard guard(mutex_);
      if (!others_) others_.emplace(phases_);
      has_others_.store(true, std::memory_order_relaxed);  // the signals order it before take()
      return others_->put(by.signalled, op_, value);
    }
    // only this thread writes its slot
    Values* mine = slots_[worker].load(std::memory_order_relaxed);
    if (mine == nullptr) {
      mine = new Values{Ring<T>(phases_)};
      slots_[worker].store(mine, std::memory_order_release);  // pairs with take()
      // the signals order this field, too
      std::size_t used = used_.load(std::memory_order_relaxed);
      while (used <= worker && !used_.compare_exchange_weak(used, worker + 1,
                                                            std::memory_order_relaxed)) {
      }
    }
    mine->ring.put(by.signalled, op_, value);
  }
  [[nodiscard]] std::optional<T> take(const std::uint64_t phase) {
    std::optional<T> all;
    const std::size_t used = used_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < used; ++i) {
      const Values* const one = slots_[i].load(std::memory_order_acquire);
      if (one != nullptr) one->ring.add(phase, op_, all);
    }
    if (has_others_.load(std::memory_order_relaxed)) {
      const std::lock_guard guard(mutex_);
      others_->add(phase, op_, all);
    }
    return all;
  }

 private:
  struct alignas(64) Values {
    Ring<T> ring;
  };
  using Slot = std::atomic<Values*>;

  const Op op_;
  const std::size_t phases_;
  const std::size_t count_;  // of workers
  const std::unique_ptr<Slot[]> slots_;
  std::atomic<std::size_t> used_{0};  // workers below this one have put
  std::mutex mutex_;
  std::optional<Ring<T>> others_;
  std::atomic<bool> has_others_{false};
};

template <class T>
inline constexpr bool is_word = false;
template <class T>
  requires(std::is_trivially_copyable_v<T>)
inline constexpr bool is_word<T> = std::atomic<T>::is_always_lock_free;

template <class T, class Op>
class EagerStore {
 public:
  EagerStore(const std::size_t phases, const Op& op, const T& identity)
      : op_(op), identity_(identity), cells_(phases) {
    if constexpr (is_word<T>) {
      for (Cell& cell : cells_) cell.value.store(identity, std::memory_order_relaxed);
    }
  }

  void put(const Standing& by, const T& value) {
    Cell& cell = cells_[by.signalled % cells_.size()];
    if constexpr (is_word<T>) {
      T before = cell.value.load(std::memory_order_relaxed);
      // relaxed: the signals order what is put before what is taken.
      while (!cell.value.compare_exchange_weak(before, op_(before, value),
                                               std::memory_order_relaxed)) {
      }
      cell.used.store(true, std::memory_order_relaxed);
    } else {
      const std::lock_guard guard(cell.mutex);
      put_into(cell.slot, op_, value);
    }
  }
  [[nodiscard]] std::optional<T> take(const std::uint64_t phase) {
    Cell& cell = cells_[phase % cells_.size()];
    if constexpr (is_word<T>) {
      if (!cell.used.exchange(false, std::memory_order_relaxed)) return std::nullopt;
      return cell.value.exchange(identity_, std::memory_order_relaxed);
    } else {
      const std::lock_guard guard(cell.mutex);
      return std::exchange(cell.slot, std::nullopt);
    }
  }

 private:
  struct alignas(64) WordCell {
    std::atomic<T> value;
    std::atomic<bool> used{false};
  };
  struct LockedCell {
    std::mutex mutex;
    std::optional<T> slot;
  };
  using Cell = std::conditional_t<is_word<T>, WordCell, LockedCell>;
  const Op op_;
  const T identity_;
  std::vector<Cell> cells_;
};

template <class T, class Op>
class ReproducibleStore {
 public:
  ReproducibleStore(const std::size_t phases, const Op& op) : op_(op), cells_(phases) {}

  void put(const Standing& by, const T& value) {
    const std::lock_guard guard(mutex_);
    put_into(cells_[by.signalled % cells_.size()][*by.path], op_, value);
  }
  [[nodiscard]] std::optional<T> take(const std::uint64_t phase) {
    const std::lock_guard guard(mutex_);
    std::optional<T> all;
    const auto values = std::exchange(cells_[phase % cells_.size()], {});
    for (const auto& [path, value] : values) put_into(all, op_, *value);
    return all;
  }

 private:
  const Op op_;
  std::mutex mutex_;
  std::vector<std::map<std::vector<std::uint32_t>, std::optional<T>>> cells_;
};

// The results of the last phases, three at least; a new result takes the place of the oldest. A
// member that signals and waits (`keeps_up`) needs no lock to read the result of phase w - 1, the
// phase before its own. It has signalled w at most, so phase w + 1 is not over. The result that
// takes that place belongs to phase w + 2 at the earliest. Values that are more than their bytes
// are copied under the lock all the same, because a copy must not overlap with another copy of the
// same object.
template <class T>
class Results {
 public:
  explicit Results(const std::size_t phases) : results_(phases) {}

  void set(const std::uint64_t phase, const T& value) {
    const std::lock_guard guard(mutex_);
    put(phase, value, nullptr);
  }
  void fail(const std::uint64_t phase, const std::exception_ptr& error) {
    const std::lock_guard guard(mutex_);
    put(phase, std::nullopt, error);
  }
  // Returns std::nullopt if the result is gone. Rethrows an exception that the operation threw.
  [[nodiscard]] std::optional<T> of(const std::uint64_t phase, const bool keeps_up) const {
    if constexpr (std::is_trivially_copyable_v<T>) {
      if (keeps_up) return look(phase);
    }
    const std::lock_guard guard(mutex_);
    return look(phase);
  }
  // Returns the result of the last phase that has one; `none` if no phase has a result.
  [[nodiscard]] T last(const T& none) const {
    const std::lock_guard guard(mutex_);
    return after_ == 0 ? none : *look(after_ - 1);
  }

 private:
  struct alignas(64) Result {
    std::uint64_t after = 0;  // one more than the phase; 0: no phase yet
    std::optional<T> value;
    std::exception_ptr error;
  };
  void put(const std::uint64_t phase, const std::optional<T>& value,
           const std::exception_ptr& error) {
    Result& place = results_[phase % results_.size()];
    after_ = place.after = phase + 1;
    place.value = value;
    place.error = error;
  }
  [[nodiscard]] std::optional<T> look(const std::uint64_t phase) const {
    const Result& found = results_[phase % results_.size()];
    if (found.after != phase + 1) return std::nullopt;
    if (found.error) std::rethrow_exception(found.error);
    return found.value;
  }

  mutable std::mutex mutex_;
  std::uint64_t after_ = 0;  // one more than the phase of the last result
  std::vector<Result> results_;
};

// The part of an accumulator that tasks see, whatever its operation and its way to collect.
template <class T>
class AccumulatorState : public AccumulatorBase {
 public:
  // `phases` is the number of phases that are in use at a time, for a phaser with `ahead`: a task
  // may put into that many phases from the current one on, and another task may still read the
  // results of the phases before.
  AccumulatorState(const std::size_t phases, const T& identity)
      : identity_(identity), results_(phases) {}

  virtual void put(const Standing& by, const T& value) = 0;

  [[nodiscard]] const T& identity() const noexcept { return identity_; }
  [[nodiscard]] Results<T>& results() noexcept { return results_; }

 private:
  const T identity_;
  Results<T> results_;
};

// The values of one phase that a process sends to the others. Types that cannot be sent have no
// such message.
template <class T>
inline constexpr bool can_be_sent =
    std::is_trivially_copyable_v<T> && alignof(T) <= alignof(std::max_align_t);

enum class Content : std::int32_t { nothing, value, failure };
template <class T>
struct AccumulatorMessage {
  Content content;
  std::int32_t rank;  // rank on which the operation threw
  alignas(T) std::byte bytes[sizeof(T)];

  [[nodiscard]] const T& value() const noexcept {
    return *std::launder(reinterpret_cast<const T*>(bytes));
  }
  void set(const T& value) noexcept {
    content = Content::value;
    std::memcpy(bytes, &value, sizeof value);
  }
};

template <class T, class Op, class Store>
class AccumulatorOf final : public AccumulatorState<T> {
 public:
  template <class... Arguments>
  AccumulatorOf(const std::size_t phases, const T& identity, const Op& op,
                const Arguments&... arguments)
      : AccumulatorState<T>(phases, identity), op_(op), store_(phases, op, arguments...) {}

  void put(const Standing& by, const T& value) override { store_.put(by, value); }
  void end_phase(const std::uint64_t phase, const bool over) noexcept override {
    try {
      set(phase, store_.take(phase), over);
    } catch (...) {
      fail(phase, std::current_exception());
    }
  }

  [[nodiscard]] std::size_t message_bytes() const noexcept override {
    return can_be_sent<T> ? sizeof(Message) : 0;
  }
  void collect(const std::uint64_t phase, void* const message) noexcept override {
    if constexpr (can_be_sent<T>) {
      Message& mine = *static_cast<Message*>(message);
      mine.content = Content::nothing;
      thrown_ = nullptr;
      try {
        if (const std::optional<T> all = store_.take(phase)) mine.set(*all);
      } catch (...) {
        thrown_ = std::current_exception();
        mine.content = Content::failure;
        mine.rank = this->rank;
      }
    }
  }
  void combine(const void* const in, void* const inout) const noexcept override {
    if constexpr (can_be_sent<T>) {
      const Message& low = *static_cast<const Message*>(in);
      Message& high = *static_cast<Message*>(inout);
      if (low.content == Content::nothing || high.content == Content::failure) return;
      if (high.content == Content::nothing || low.content == Content::failure) {
        std::memcpy(inout, in, sizeof(Message));
        return;
      }
      try {
        high.set(op_(low.value(), high.value()));
      } catch (...) {
        high.content = Content::failure;
        high.rank = this->rank;
      }
    }
  }
  void publish(const std::uint64_t phase, const void* const message,
               const bool over) noexcept override {
    if constexpr (can_be_sent<T>) {
      const Message& all = *static_cast<const Message*>(message);
      if (all.content == Content::failure) {
        const std::exception_ptr error = thrown_ ? thrown_ : failure_of_rank(all.rank);
        return fail(phase, error);
      }
      set(phase, all.content == Content::value ? std::optional<T>(all.value()) : std::nullopt,
          over);
    }
  }
  void fail(const std::uint64_t phase, const std::exception_ptr& error) noexcept override {
    this->results().fail(phase, error);
  }

 private:
  using Message = AccumulatorMessage<T>;
  void set(const std::uint64_t phase, const std::optional<T>& all, const bool over) {
    if (all || !over) this->results().set(phase, all ? *all : this->identity());
  }

  const Op op_;
  Store store_;
  std::exception_ptr thrown_;  // the exception of this process in the phase that ends
};

}  // namespace detail

/// A handle: copies name the same accumulator, which lives as long as its phaser. A handle keeps
/// the phaser alive. Tasks capture a copy, since the body of finish() ends before the tasks do. T
/// must be copyable. Operations, and T's copy constructor and destructor, must not wait. put() or
/// get() throws the exception that an operation throws. The accumulator destroys its values before
/// the phaser's finish() ends, or together with the last handle of the accumulator or the phaser.
/// Thread safety: any task or thread may call every member; each acts on the registration of its
/// caller.
template <class T>
  requires std::copy_constructible<T>
class Accumulator {
 public:
  /// Makes an accumulator with the operation `op`. The running task must be the only task that is
  /// registered on `phaser`, and must not have signalled; else Error. The identity is that of T for
  /// the operations above. Never suspends.
  template <class Op>
    requires std::invocable<const Op&, const T&, const T&>
  Accumulator(const Phaser& phaser, const Op& op, const T& identity,
              const Accumulation how = Accumulation::lazy)
      : phaser_(phaser), state_(add(phaser, op, identity, how)) {}
  template <class Op>
    requires requires(const Op& op) { op.template identity<T>(); }
  Accumulator(const Phaser& phaser, const Op& op, const Accumulation how = Accumulation::lazy)
      : Accumulator(phaser, op, Op::template identity<T>(), how) {}

  /// Adds `value` to the phase that the caller's next signal belongs to. Never suspends. Throws
  /// Error if the caller is not registered, does not signal, or is further ahead than the phaser
  /// allows.
  void put(const T& value) const {
    const detail::Standing by = detail::standing_on(detail::state_of(phaser_), "put()");
    if (by.mode == PhaserMode::wait_only) {
      detail::throw_of_accumulator(detail::state_of(phaser_), "put()",
                                   "a task of mode wait_only has no phase of its own to add to; "
                                   "register it as signal_wait or signal_only");
    }
    if (by.mode == PhaserMode::signal_only &&
        by.signalled > phaser_.phase() + detail::ahead_of(detail::state_of(phaser_))) {
      detail::throw_of_accumulator(detail::state_of(phaser_), "put()",
                                   "this task has signalled so many phases ahead that there is no "
                                   "room for the value; make the phaser with {.ahead = n}");
    }
    state_->put(by, value);
  }

  /// Returns the result of the phase before the caller's phase: the identity if no value was put,
  /// or if there was no such phase. A caller that is not registered gets the last result. Suspends
  /// only where no signaller is left and the result of the last phase has not yet come from the
  /// other ranks. Throws Error if the caller has mode signal_only, or is so far behind that the
  /// result is gone (PhaserOptions::ahead).
  [[nodiscard]] T get() const {
    detail::Standing by;
    if (!detail::find_standing(detail::state_of(phaser_), by)) {
      detail::await_last_phase(detail::state_of(phaser_));
      return state_->results().last(state_->identity());
    }
    if (by.mode == PhaserMode::signal_only) {
      detail::throw_of_accumulator(detail::state_of(phaser_), "get()",
                                   "a task of mode signal_only does not know which phase is over; "
                                   "register it as signal_wait or wait_only");
    }
    if (by.waited == 0) return state_->identity();
    const bool keeps_up = by.mode != PhaserMode::wait_only;
    std::optional<T> result = state_->results().of(by.waited - 1, keeps_up);
    if (result) return *std::move(result);
    if (by.waited > phaser_.phase()) {  // no signaller is left
      return state_->results().last(state_->identity());
    }
    detail::throw_of_accumulator(detail::state_of(phaser_), "get()",
                                 "other tasks are so many phases ahead that the result is gone; "
                                 "make the phaser with {.ahead = n}");
  }

 private:
  template <class Op>
  static detail::AccumulatorState<T>* add(const Phaser& phaser, const Op& op, const T& identity,
                                          const Accumulation how) {
    using namespace detail;
    const std::size_t phases = std::size_t{ahead_of(state_of(phaser))} + 2;
    AccumulatorState<T>* made = nullptr;
    switch (how) {
      case Accumulation::lazy:
        made = new AccumulatorOf<T, Op, LazyStore<T, Op>>(phases, identity, op);
        break;
      case Accumulation::shared:
        made = new AccumulatorOf<T, Op, EagerStore<T, Op>>(phases, identity, op, identity);
        break;
      case Accumulation::reproducible:
        made = new AccumulatorOf<T, Op, ReproducibleStore<T, Op>>(phases, identity, op);
        break;
    }
    made->ordered = how == Accumulation::reproducible;
    add_accumulator(state_of(phaser), *made);
    return made;
  }

  Phaser phaser_;
  detail::AccumulatorState<T>* state_;  // the phaser's
};

}  // namespace imbrex

#pragma GCC visibility pop
