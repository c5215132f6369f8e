// SPDX-License-Identifier: BSD-3-Clause
// Tasks that may block: a wait in a task suspends the task, and its worker runs another one
// meanwhile.
#pragma once

#include "imbrex/detail/language.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <new>
#include <source_location>
#include <span>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <vector>

#include "imbrex/detail/access.hpp"
#include "imbrex/detail/loops.hpp"
#include "imbrex/detail/stop.hpp"
#include "imbrex/name.hpp"
#include "imbrex/detail/phasers.hpp"
#include "imbrex/values/place.hpp"
#include "imbrex/detail/waist.hpp"
#include "imbrex/future.hpp"
#include "imbrex/phaser.hpp"

namespace imbrex {

namespace detail {

// What `function` has captured, if that can be compared byte by byte.
template <class F>
[[nodiscard]] std::span<const std::byte> captured_by(F& function) noexcept {
  if constexpr (std::is_empty_v<F> || !std::is_trivially_copyable_v<F>) {
    return {};
  } else {
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&function);
#else
    if constexpr (!std::has_unique_object_representations_v<F>) return {};
#endif
    return {reinterpret_cast<const std::byte*>(&function), sizeof(F)};
  }
}

// The closure of a task and, after it has run, its result, in memory from create().
template <class F, class R>
struct Body {
  F function;
  [[no_unique_address]] Slot<R> slot;

  static void run(void* closure) {
    Body& self = *static_cast<Body*>(closure);
    call_once(self.function, [&self] {  // the closure is destroyed before a dependent may run
      if constexpr (std::is_void_v<R>) {
        static_cast<void>(self.function());
      } else {
        ::new (static_cast<void*>(&self.slot.value)) R(self.function());
      }
    }, [closure] { destroy(closure); });
  }
  static void drop(void* closure) noexcept {
    destroy_object(static_cast<Body*>(closure)->function);
  }
  static void destroy(void* closure) noexcept {
    if constexpr (!std::is_void_v<R>) destroy_object(static_cast<Body*>(closure)->slot.value);
  }
  static constexpr bool trivial = std::is_void_v<R> || std::is_trivially_destructible_v<R>;
  static constexpr BodyOps ops{&run, &drop, trivial ? nullptr : &destroy};

  // ---- in the graph of a loop (iterate.hpp) ----
  static void run_again(void* closure) {
    static_cast<void>(static_cast<Body*>(closure)->function());
  }
  static std::span<const std::byte> captured(void* closure) noexcept {
    return captured_by(static_cast<Body*>(closure)->function);
  }
  static constexpr RepeatOps repeat{&run_again, &captured};
  static constexpr BodyOps launched{&run, &drop, nullptr, nullptr, nullptr, &repeat};
};

// A body that takes the number of its iteration.
template <class F>
struct ByIteration {
  F function;
  void operator()() { static_cast<void>(function(iteration())); }
};

// The accesses of one task under construction: a few in place, more of them on the heap. The list
// keeps its futures alive, because the program may drop its own before the task is spawned.
class AccessList {
 public:
  AccessList() = default;
  AccessList(const AccessList& other) {
    for (const AccessSpec& spec : other.span()) {
      spec.kind == AccessKind::after ? add_future(completion_of(spec)) : add(spec);
    }
  }
  AccessList& operator=(AccessList other) noexcept {
    std::swap(count_, other.count_);
    std::swap(few_, other.few_);
    std::swap(many_, other.many_);
    std::swap(owns_, other.owns_);
    return *this;
  }
  // Inlined, it compiles to nothing where the compiler sees a list without futures.
  [[gnu::always_inline]] ~AccessList() {
    if (owns_) [[unlikely]] give_up();
  }

  void add(const AccessSpec& spec) {
    if (count_ < few_.size()) {
      few_[count_++] = spec;
      return;
    }
    add_to_many(spec);
  }
  void add_future(Completion& completion) {
    add({&completion, AccessKind::after});
    retain(completion);
    owns_ = true;
  }
  [[nodiscard]] std::span<const AccessSpec> span() const noexcept {
    if (many_ != nullptr) return *many_;
    if (count_ == 0) return {};  // tells the compiler that no other code knows this list
    return {few_.data(), count_};
  }

 private:
  [[nodiscard]] static Completion& completion_of(const AccessSpec& spec) noexcept {
    return *static_cast<Completion*>(const_cast<void*>(spec.address));
  }
  [[gnu::noinline]] void add_to_many(const AccessSpec& spec) {
    if (many_ == nullptr) {
      many_ = new std::vector<AccessSpec>(few_.begin(), few_.end());
      owns_ = true;
      many_->reserve(4 * few_.size());
    }
    many_->push_back(spec);
  }
  [[gnu::noinline]] void give_up() noexcept {
    for (const AccessSpec& spec : span()) {
      if (spec.kind == AccessKind::after) release(completion_of(spec));
    }
    delete many_;
  }

  std::size_t count_ = 0;
  std::array<AccessSpec, 6> few_;
  std::vector<AccessSpec>* many_ = nullptr;  // owned
  bool owns_ = false;  // the futures, or `many_`
};

}  // namespace detail

/// Describes one task, then spawns it. The children of one task behave as if run in program order;
/// two tasks whose accesses do not conflict may overlap. An address names an object: nothing is
/// read. Each describing member returns the builder: an lvalue of a named builder, an rvalue of a
/// temporary, so that no name outlives it. Thread safety: a builder describes one task and is used
/// by one thread. Only spawn() and launch() may suspend.
class [[nodiscard]] TaskBuilder {
  using Kind = detail::AccessKind;

 public:
  /// For task() below.
  TaskBuilder(Name name, std::source_location where) noexcept
      : name_(name.text()), where_(where) {}

  /// The task reads these objects. A Future among them: the task runs after the future is ready, or
  /// fails as the future has failed; when_all() and when_any() combine several futures, when() of
  /// mpi.hpp makes one of a request. An object is named by itself, by at(pointer), or by range().
  /// Throws Error for an empty future.
  template <class... T>
  [[nodiscard]] TaskBuilder& in(T&&... objects) & {
    (add<T>(objects, Kind::in), ...);
    return *this;
  }
  template <class... T>
  [[nodiscard]] TaskBuilder&& in(T&&... objects) && {
    return std::move(in(std::forward<T>(objects)...));
  }
  /// The task writes these objects, and does not read their values before.
  template <class... T>
    requires(writable<T> && ...)
  [[nodiscard]] TaskBuilder& out(T&&... objects) & {
    (add<T>(objects, Kind::out), ...);
    return *this;
  }
  template <class... T>
    requires(writable<T> && ...)
  [[nodiscard]] TaskBuilder&& out(T&&... objects) && {
    return std::move(out(std::forward<T>(objects)...));
  }
  /// The task reads and writes these objects.
  template <class... T>
    requires(writable<T> && ...)
  [[nodiscard]] TaskBuilder& inout(T&&... objects) & {
    (add<T>(objects, Kind::inout), ...);
    return *this;
  }
  template <class... T>
    requires(writable<T> && ...)
  [[nodiscard]] TaskBuilder&& inout(T&&... objects) && {
    return std::move(inout(std::forward<T>(objects)...));
  }
  /// The task reads and writes these objects, in any order among neighbours of this kind, one at a
  /// time.
  template <class... T>
    requires(writable<T> && ...)
  [[nodiscard]] TaskBuilder& mutexinoutset(T&&... objects) & {
    (add<T>(objects, Kind::mutexinoutset), ...);
    return *this;
  }
  template <class... T>
    requires(writable<T> && ...)
  [[nodiscard]] TaskBuilder&& mutexinoutset(T&&... objects) && {
    return std::move(mutexinoutset(std::forward<T>(objects)...));
  }
  /// The task reads and writes these objects, in any order among neighbours of this kind, also
  /// together.
  template <class... T>
    requires(writable<T> && ...)
  [[nodiscard]] TaskBuilder& inoutset(T&&... objects) & {
    (add<T>(objects, Kind::inoutset), ...);
    return *this;
  }
  template <class... T>
    requires(writable<T> && ...)
  [[nodiscard]] TaskBuilder&& inoutset(T&&... objects) && {
    return std::move(inoutset(std::forward<T>(objects)...));
  }
  /// A larger level runs first, if the policy uses priorities; default 0.
  [[nodiscard]] TaskBuilder& priority(const int level) & noexcept {
    priority_ = level;
    return *this;
  }
  [[nodiscard]] TaskBuilder&& priority(const int level) && noexcept {
    return std::move(priority(level));
  }
  /// The task always resumes on the thread that started it: for bodies that keep errno,
  /// pthread_self() or thread-local variables across a wait.
  [[nodiscard]] TaskBuilder& tied() & noexcept {
    tied_ = true;
    return *this;
  }
  [[nodiscard]] TaskBuilder&& tied() && noexcept {
    return std::move(tied());
  }
  /// The task may resume on any worker: the default.
  [[nodiscard]] TaskBuilder& untied() & noexcept {
    tied_ = false;
    return *this;
  }
  [[nodiscard]] TaskBuilder&& untied() && noexcept {
    return std::move(untied());
  }

  /// The task begins, and resumes, on workers of that place only; its children, too, unless they
  /// name another place. Default: the place of the running task. Place() means all workers.
  [[nodiscard]] TaskBuilder& at(const Place place) & noexcept {
    place_ = place;
    return *this;
  }
  [[nodiscard]] TaskBuilder&& at(const Place place) && noexcept {
    return std::move(at(place));
  }

  /// Registers the task on a phaser (phaser.hpp) of the running task, with the same mode or with
  /// `mode`; without arguments, on all its phasers. The spawn throws Error if the running task is
  /// not registered there, if its mode does not allow `mode`, and for a phaser of an outer
  /// finish().
  [[nodiscard]] TaskBuilder& phased(const Phaser& phaser) & {
    phased_.add({&detail::state_of(phaser), signal_wait, true});
    return *this;
  }
  [[nodiscard]] TaskBuilder&& phased(const Phaser& phaser) && {
    return std::move(phased(phaser));
  }
  [[nodiscard]] TaskBuilder& phased(const Phaser& phaser, const PhaserMode mode) & {
    phased_.add({&detail::state_of(phaser), mode, false});
    return *this;
  }
  [[nodiscard]] TaskBuilder&& phased(const Phaser& phaser, const PhaserMode mode) && {
    return std::move(phased(phaser, mode));
  }
  [[nodiscard]] TaskBuilder& phased() & {
    phased_.add({nullptr, signal_wait, true});
    return *this;
  }
  [[nodiscard]] TaskBuilder&& phased() && {
    return std::move(phased());
  }

  /// The task runs although a task that it depends on has failed, where another task would fail
  /// with DependencyFailed, or its finish() was told to stop: for clean-up. Its outputs then count
  /// as written.
  [[nodiscard]] TaskBuilder& run_after_failure() & noexcept {
    after_failure_ = true;
    return *this;
  }
  [[nodiscard]] TaskBuilder&& run_after_failure() && noexcept {
    return std::move(run_after_failure());
  }

  /// In iterate(): all tasks of the next iteration follow this one, and stop_iterating() in it ends
  /// the loop: for a test of convergence. launch() throws Error outside of the body of iterate().
  [[nodiscard]] TaskBuilder& decides() & noexcept {
    decides_ = true;
    return *this;
  }
  [[nodiscard]] TaskBuilder&& decides() && noexcept {
    return std::move(decides());
  }

  /// Creates the task and returns at once. The future gets its result or its exception. The future
  /// may be dropped: the enclosing finish() waits, and rethrows, all the same. The first task of a
  /// program starts the runtime. Suspends if the caller is IMBREX_TASKS_AHEAD tasks ahead of the
  /// tasks that have run. Throws Error if one address was given twice with different kinds, after
  /// shutdown, and for a place of a runtime that has ended.
  template <class F>
    requires std::invocable<std::decay_t<F>&>
  Future<std::remove_cv_t<std::invoke_result_t<std::decay_t<F>&>>> spawn(F&& function) {
    using R = std::remove_cv_t<std::invoke_result_t<std::decay_t<F>&>>;
    auto [completion, slot] = submit<R, true>(std::forward<F>(function));
    return Future<R>(completion, slot);
  }
  /// spawn() of a function that takes the std::stop_token of the finish() around the task
  /// (scope.hpp).
  template <class F>
    requires(!std::invocable<std::decay_t<F>&> &&
             !std::invocable<std::decay_t<F>&, std::int64_t> &&
             std::invocable<std::decay_t<F>&, std::stop_token>)
  auto spawn(F&& function) {
    return spawn(detail::WithStopToken<std::decay_t<F>>{std::forward<F>(function)});
  }
  /// spawn() without a future, a little cheaper. The result of the function is destroyed at once.
  /// Suspends, and throws, as spawn().
  template <class F>
    requires std::invocable<std::decay_t<F>&>
  void launch(F&& function) {
    submit<void, false>(std::forward<F>(function));
  }
  template <class F>
    requires(!std::invocable<std::decay_t<F>&> &&
             !std::invocable<std::decay_t<F>&, std::int64_t> &&
             std::invocable<std::decay_t<F>&, std::stop_token>)
  void launch(F&& function) {
    launch(detail::WithStopToken<std::decay_t<F>>{std::forward<F>(function)});
  }
  /// In the body of iterate() only: the function gets the number of its iteration, as
  /// std::int64_t. Throws Error elsewhere.
  template <class F>
    requires(!std::invocable<std::decay_t<F>&> &&
             std::invocable<std::decay_t<F>&, std::int64_t>)
  void launch(F&& function) {
    detail::check_iterates("launch() of a function that takes the number of its iteration");
    submit<void, false>(detail::ByIteration<std::decay_t<F>>{std::forward<F>(function)});
  }

 private:
  template <class T>  // as deduced from T&&
  void add(const std::remove_reference_t<T>& object, Kind kind) {
    detail::check_named<T>();
    if constexpr (detail::is_future<std::remove_cvref_t<T>>) {
      if (!object.valid()) throw Error("imbrex: an empty future given as a dependency of a task");
      accesses_.add_future(*detail::completion_of(object));
    } else {
      detail::each_spec(detail::named_by(object), kind,
                        [this](const detail::AccessSpec& spec) { accesses_.add(spec); });
    }
  }
  template <class R, bool keep, class F>
  auto submit(F&& function) {
    using Body = detail::Body<std::decay_t<F>, R>;
    constexpr const detail::BodyOps& ops = keep ? Body::ops : Body::launched;
    static_assert(alignof(std::decay_t<F>) <= 64,
                  "a task's closure, what its lambda captures, may be aligned to 64 bytes at most");
    static_assert(alignof(detail::Slot<R>) <= 64,
                  "a task's result may be aligned to 64 bytes at most: return a std::unique_ptr to "
                  "it, or set a Promise");
    const detail::TaskSpec spec{name_,  where_, priority_, tied_, accesses_.span(),
                                false, after_failure_, decides_};
    if (decides_) detail::check_iterates("decides()");
    const bool plain = spec.accesses.empty() && !after_failure_;
    void* const memory = plain ? detail::create(spec, ops, sizeof(Body))
                               : detail::create_with_accesses(spec, ops, sizeof(Body));
    Body* body;
    try {
      if (place_.is_set()) detail::put_at(memory, place_);
      if (!phased_.empty()) detail::put_phased(memory, phased_.span());
      body = ::new (memory) Body{std::forward<F>(function), {}};
    } catch (...) {
      detail::discard(memory);
      throw;
    }
    struct Handle {
      detail::Completion* completion;
      detail::Slot<R>* slot;
    };
    return Handle{plain ? detail::submit(memory, keep)
                        : detail::submit_with_accesses(memory, keep),
                  &body->slot};
  }

  const char* name_;
  std::source_location where_;
  int priority_ = 0;
  bool tied_ = false;
  bool after_failure_ = false;
  bool decides_ = false;
  Place place_ = Place::unset();
  detail::PhasedList phased_;
  detail::AccessList accesses_;
};

/// Begins the description of a task. Reports and traces show `name`: a literal costs nothing, a
/// name that is made at run time is copied (name.hpp). Any thread; never suspends.
[[nodiscard]] inline TaskBuilder task(
    Name name, std::source_location where = std::source_location::current()) noexcept {
  return TaskBuilder(name, where);
}

}  // namespace imbrex
