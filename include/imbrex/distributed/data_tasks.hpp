// SPDX-License-Identifier: BSD-3-Clause
// The part of data.hpp that does not call MPI: views of data, data, tasks, and the members of a
// space. Included by data.hpp.
#pragma once

#include "imbrex/detail/language.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "imbrex/accumulator.hpp"
#include "imbrex/detail/distributed/data_space.hpp"
#include "imbrex/iterate.hpp"
#include "imbrex/name.hpp"
#include "imbrex/error.hpp"

namespace imbrex {

template <class T>
class Data;
template <class... Parts>
class DataTaskBuilder;
class SpaceBase;
namespace detail {
template <class T>
struct OneView;
template <class T>
struct ListOfViews;
}  // namespace detail

/// The view of a datum that a task gets: a matrix, column by column, or an array of one column.
/// Thread safety: a value; any thread may use it. No member suspends.
template <class T>
class View {
 public:
  /// `columns` columns of `rows` elements; `leading` elements lie between the beginnings of two
  /// columns. The memory must outlive the view. A view of elements converts to a view of const
  /// elements.
  View(T* memory, const std::size_t rows, const std::size_t columns, const std::size_t leading)
      noexcept
      : memory_(memory), rows_(rows), columns_(columns), leading_(leading) {}
  template <class U>
    requires std::same_as<const U, T>
  View(const View<U>& other) noexcept  // NOLINT: converts, as std::span does
      : View(other.data(), other.rows(), other.columns(), other.leading()) {}

  /// The first element; the shape, in elements; the number of elements; and one element. Indices
  /// are not checked. Any thread; never suspend.
  [[nodiscard]] T* data() const noexcept { return memory_; }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
  [[nodiscard]] std::size_t leading() const noexcept { return leading_; }  // column to column
  [[nodiscard]] std::size_t size() const noexcept { return rows_ * columns_; }
  [[nodiscard]] T& operator()(const std::size_t row, const std::size_t column) const noexcept {
    return memory_[column * leading_ + row];
  }
  /// Returns one element. REQUIRES: no gap between columns, as in every array.
  [[nodiscard]] T& operator[](const std::size_t index) const noexcept { return memory_[index]; }
  /// All elements in order. REQUIRES: no gap between columns.
  [[nodiscard]] T* begin() const noexcept { return memory_; }
  [[nodiscard]] T* end() const noexcept { return memory_ + size(); }
  /// Throws Error if there are gaps between columns.
  operator std::span<T>() const {  // NOLINT: converts, as other ranges do
    if (columns_ > 1 && leading_ != rows_) {
      throw Error("imbrex: a datum whose columns have gaps cannot be a std::span: take it as a "
                  "View");
    }
    return {memory_, size()};
  }

 private:
  T* memory_;
  std::size_t rows_, columns_, leading_;
};

/// The data of a list that a task reads or writes, in the order of the list. Thread safety: a
/// value; any thread may use it. No member suspends.
template <class T>
class Views {
 public:
  /// How many data the list has, and a view of one. The index is not checked.
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] View<T> operator[](const std::size_t index) const noexcept {
    const detail::DataMemory& place = places_[index];
    return {static_cast<T*>(place.memory), place.shape.rows, place.shape.columns,
            place.shape.leading};
  }

 private:
  friend class Data<std::remove_const_t<T>>;
  friend struct detail::OneView<T>;
  friend struct detail::ListOfViews<T>;
  Views(const detail::DataMemory* const places, const std::size_t count) noexcept
      : places_(places), count_(count) {}

  const detail::DataMemory* places_;
  std::size_t count_;
};

/// Names one datum, the same on every rank. A handle: copies name the same datum, which lives as
/// long as its space. No member suspends.
template <class T>
class Data {
  static_assert(std::is_trivially_copyable_v<T>, "imbrex: data travel between ranks as bytes, so "
                "their elements must be trivially copyable");

 public:
  Data() = default;  // names no datum

  /// False if the handle names no datum, because it was default-constructed. Any thread.
  [[nodiscard]] bool valid() const noexcept { return datum_ != nullptr; }
  /// The owner after the tasks inserted so far, a rank of the space; -1: no owner yet.
  [[nodiscard]] int owner() const { return detail::owner_of(datum()); }
  /// The value on the owner, after finish(). Throws Error on another rank, and if the last value is
  /// on another rank: flush() brings it.
  [[nodiscard]] View<T> view() const {
    const detail::DataMemory place = detail::memory_of(datum());
    return Views<T>(&place, 1)[0];
  }
 private:
  template <class... Parts>
  friend class DataTaskBuilder;
  friend class SpaceBase;
  explicit Data(detail::Datum& datum) noexcept : datum_(&datum) {}
  [[nodiscard]] detail::Datum& datum() const {
    if (datum_ == nullptr) {
      throw Error("imbrex: use of an empty Data: Space::data() creates a datum");
    }
    return *datum_;
  }

  detail::Datum* datum_ = nullptr;
};

namespace detail {

// The type that each part of a builder's list hands to the body: one view, or the views of a list.
template <class T>
struct OneView {
  std::size_t first;
  [[nodiscard]] View<T> of(const DataMemory* const places) const noexcept {
    return Views<T>(places + first, 1)[0];
  }
};
template <class T>
struct ListOfViews {
  std::size_t first, count;
  [[nodiscard]] Views<T> of(const DataMemory* const places) const noexcept {
    return {places + first, count};
  }
};

template <class F, class Parts>
struct DataBody : DataTask {
  F function;
  Parts parts;

  DataBody(F&& its_function, const Parts& its_parts)
      : function(std::forward<F>(its_function)), parts(its_parts) {}
  DataBody(const F& its_function, const Parts& its_parts)
      : function(its_function), parts(its_parts) {}

  static void run(void* closure) {
    auto& self = *static_cast<DataBody*>(closure);
    call_once(self.function, [&self] {
      std::apply([&self](const auto&... part) { self.function(part.of(self.places)...); },
                 self.parts);
    }, [] {});
  }
  static void drop(void* closure) noexcept {
    destroy_object(static_cast<DataBody*>(closure)->function);
  }
  // ---- in the body of SpaceBase::iterate() ----
  static void run_again(void* closure) {
    auto& self = *static_cast<DataBody*>(closure);
    std::apply([&self](const auto&... part) { self.function(part.of(self.places)...); },
               self.parts);
  }
  static std::span<const std::byte> captured(void* closure) noexcept {
    return captured_by(static_cast<DataBody*>(closure)->function);
  }
  static constexpr RepeatOps repeat{&run_again, &captured};
  static constexpr BodyOps ops{&run, &drop, nullptr, nullptr, nullptr, &repeat};
};

// A function that takes the number of its iteration before the views.
template <class F>
struct DataByIteration {
  F function;
  template <class... Views>
    requires std::invocable<F&, std::int64_t, Views...>
  void operator()(Views&&... views) {
    static_cast<void>(function(iteration(), std::forward<Views>(views)...));
  }
};

template <class T, class Op>
inline constexpr DataReduction reduction_of{
    [](void* const into, const void* const from, const std::size_t count) {
      const auto to = static_cast<T*>(into);
      const auto more = static_cast<const T*>(from);
      for (std::size_t i = 0; i < count; ++i) to[i] = Op()(to[i], more[i]);
    },
    [](void* const memory, const std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) {
        static_cast<T*>(memory)[i] = Op::template identity<T>();
      }
    }};

// The accesses of one insertion: a few in place, more of them on the heap.
class DataAccesses {
 public:
  void add(const DataAccess& access) {
    if (count_ < few_.size()) {
      few_[count_++] = access;
      return;
    }
    if (count_ == few_.size()) many_.assign(few_.begin(), few_.end());
    many_.push_back(access);
    ++count_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::span<const DataAccess> span() const noexcept {
    if (count_ <= few_.size()) return {few_.data(), count_};
    return many_;
  }

 private:
  std::array<DataAccess, 6> few_;
  std::size_t count_ = 0;
  std::vector<DataAccess> many_;
};

}  // namespace detail

/// Describes one task of a space, then inserts it by launch(). The body gets one argument for each
/// named datum or list, in the same order: a View for a datum, Views for a list; with const
/// elements where the task only reads. Thread safety: one thread uses a builder. Only launch()
/// suspends.
template <class... Parts>
class [[nodiscard]] DataTaskBuilder {
 public:
  /// The task reads these data.
  template <class... T>
  [[nodiscard]] auto in(const Data<T>&... data) && {
    return std::move(*this).template add<detail::DataMode::in>(nullptr, data...);
  }
  template <class T>
  [[nodiscard]] auto in(const std::vector<Data<T>>& data) && {
    return std::move(*this).template add_list<detail::DataMode::in>(data);
  }
  /// The task writes all of these data, and does not read their values before.
  template <class... T>
  [[nodiscard]] auto out(const Data<T>&... data) && {
    return std::move(*this).template add<detail::DataMode::out>(nullptr, data...);
  }
  template <class T>
  [[nodiscard]] auto out(const std::vector<Data<T>>& data) && {
    return std::move(*this).template add_list<detail::DataMode::out>(data);
  }
  /// The task reads and writes these data.
  template <class... T>
  [[nodiscard]] auto inout(const Data<T>&... data) && {
    return std::move(*this).template add<detail::DataMode::inout>(nullptr, data...);
  }
  template <class T>
  [[nodiscard]] auto inout(const std::vector<Data<T>>& data) && {
    return std::move(*this).template add_list<detail::DataMode::inout>(data);
  }
  /// The task adds to this datum by `op` (imbrex::op::sum and others of accumulator.hpp, or an
  /// operation of the program). Consecutive tasks that add with one `op` run in any order and on
  /// any ranks. Each rank adds to elements of its own, which begin as the identity. A tree combines
  /// them before the next access of another kind.
  template <class T, class Op>
  [[nodiscard]] auto reduce(const Data<T>& data, const Op&) && {
    return std::move(*this).template add<detail::DataMode::reduce>(&detail::reduction_of<T, Op>,
                                                                   data);
  }

  /// A larger level runs first, and its data travel first; default 0.
  [[nodiscard]] DataTaskBuilder&& priority(const int level) && noexcept {
    spec_.priority = level;
    return std::move(*this);
  }
  /// The task runs on `rank`, a rank of the space. A task that writes no datum needs it.
  [[nodiscard]] DataTaskBuilder&& on(const int rank) && noexcept {
    spec_.on = rank;
    return std::move(*this);
  }
  /// In the body of iterate() only: stop_iterating() in the task ends the loop on all ranks. All
  /// tasks of the next iteration, on every rank, follow this one. If it fails, or does not run
  /// because a task before it has failed, the loop ends, too.
  [[nodiscard]] DataTaskBuilder&& decides() && noexcept {
    spec_.decides = true;
    return std::move(*this);
  }

  /// False: this rank may leave the insertion out. It counts only if every rank asks for each task
  /// of the sequence in turn, and if all tasks that write a datum run on its owner.
  [[nodiscard]] bool concerns() const {
    return detail::concerns(space_, spec_.on, accesses_.span());
  }

  /// Inserts the task: one rank calls `function` with the views, as a task; other ranks do not even
  /// copy it. Suspends if this rank is `tasks_ahead` tasks ahead of those that have run. Throws
  /// Error if the rank is not in the space, if no rank follows from the written data, if one datum
  /// is named twice, and if a datum is read that no task has written. If `function` throws, tasks
  /// that need its results do not run, on any rank, and finish() throws on each rank.
  template <class F>
    requires std::invocable<std::decay_t<F>&, decltype(std::declval<Parts>().of(nullptr))...>
  void launch(F&& function) && {
    using Body = detail::DataBody<std::decay_t<F>, std::tuple<Parts...>>;
    static_assert(alignof(Body) <= 64,
                  "a task's closure, what its lambda captures, may be aligned to 64 bytes at most");
    void* const memory =
        detail::begin_insertion(space_, spec_, accesses_.span(), Body::ops, sizeof(Body));
    if (memory == nullptr) return;
    try {
      ::new (memory) Body(std::forward<F>(function), parts_);
    } catch (...) {
      detail::drop_insertion(space_, memory);
      throw;
    }
    detail::insert_here(space_, memory);
  }
  /// In the body of iterate() only: the function gets the number of its iteration before the views,
  /// as std::int64_t. Throws Error elsewhere.
  template <class F>
    requires(
        !std::invocable<std::decay_t<F>&, decltype(std::declval<Parts>().of(nullptr))...> &&
        std::invocable<std::decay_t<F>&, std::int64_t,
                       decltype(std::declval<Parts>().of(nullptr))...>)
  void launch(F&& function) && {
    detail::check_iterates(space_, "launch() of a function that takes the number of its iteration");
    std::move(*this).launch(detail::DataByIteration<std::decay_t<F>>{std::forward<F>(function)});
  }

 private:
  template <class... Others>
  friend class DataTaskBuilder;
  friend class SpaceBase;

  DataTaskBuilder(detail::DataSpace& space, const detail::DataTaskSpec& spec) noexcept
      : space_(space), spec_(spec) {}
  DataTaskBuilder(detail::DataSpace& space, const detail::DataTaskSpec& spec,
                  detail::DataAccesses&& accesses, const std::tuple<Parts...>& parts)
      : space_(space), spec_(spec), accesses_(std::move(accesses)), parts_(parts) {}

  template <detail::DataMode mode, class T>
  using Element = std::conditional_t<mode == detail::DataMode::in, const T, T>;

  template <detail::DataMode mode, class... T>
  [[nodiscard]] auto add(const detail::DataReduction* const reduction,
                         const Data<T>&... data) && {
    std::size_t next = accesses_.size();
    (accesses_.add({&data.datum(), mode, reduction}), ...);
    // A braced list is evaluated from left to right.
    return std::move(*this).with(std::tuple<detail::OneView<Element<mode, T>>...>{
        detail::OneView<Element<mode, T>>{next++}...});
  }
  template <detail::DataMode mode, class T>
  [[nodiscard]] auto add_list(const std::vector<Data<T>>& data) && {
    const std::size_t first = accesses_.size();
    for (const Data<T>& one : data) accesses_.add({&one.datum(), mode});
    return std::move(*this).with(
        std::tuple(detail::ListOfViews<Element<mode, T>>{first, data.size()}));
  }
  template <class... More>
  [[nodiscard]] auto with(const std::tuple<More...>& more) && {
    return DataTaskBuilder<Parts..., More...>(space_, spec_, std::move(accesses_),
                                              std::tuple_cat(parts_, more));
  }

  detail::DataSpace& space_;
  detail::DataTaskSpec spec_;
  detail::DataAccesses accesses_;
  [[no_unique_address]] std::tuple<Parts...> parts_;
};

/// The part of a Space that does not call MPI; Space of data.hpp derives from it. Thread safety:
/// only the thread or task that made the space uses it.
class SpaceBase {
 public:
  ~SpaceBase() { detail::close_data_space(space_); }
  SpaceBase(const SpaceBase&) = delete;
  SpaceBase& operator=(const SpaceBase&) = delete;

  /// The number of this rank, and of the ranks of the space. Any thread; never suspend.
  [[nodiscard]] int rank() const noexcept { return detail::data_rank(*space_); }
  [[nodiscard]] int size() const noexcept { return detail::data_ranks(*space_); }

  /// Makes a datum of `count` elements; every rank makes the same data in the same order. Only the
  /// owner's `memory` counts: it must stay until the space ends, and its contents are the first
  /// value. Without it the runtime allocates memory at the first use, zero at first. `name` is for
  /// messages; without a name they show a number. Never suspends.
  template <class T>
  [[nodiscard]] Data<T> data(const int owner, const std::size_t count, T* const memory = nullptr,
                             const Name name = "") {
    return make<T>(owner, {count, 1, count, sizeof(T)}, memory, name);
  }
  /// Makes a matrix, stored column by column; in the owner's memory `leading` elements lie between
  /// the beginnings of two columns. Never suspends.
  template <class T>
  [[nodiscard]] Data<T> matrix(const int owner, const std::size_t rows, const std::size_t columns,
                               T* const memory = nullptr, const std::size_t leading = 0,
                               const Name name = "") {
    return make<T>(owner, {rows, columns, leading == 0 ? rows : leading, sizeof(T)}, memory, name);
  }
  /// Makes a datum that has no value and no owner: the rank that writes it first becomes the owner.
  /// The first task that writes it needs on(), or must write another datum before it. Never
  /// suspends.
  template <class T>
  [[nodiscard]] Data<T> temporary(const std::size_t count, const Name name = "") {
    return make<T>(-1, {count, 1, count, sizeof(T)}, nullptr, name);
  }

  /// Begins the description of a task, which launch() ends. Never suspends.
  [[nodiscard]] DataTaskBuilder<> task(
      const Name name,
      const std::source_location where = std::source_location::current()) noexcept {
    return {*space_, {name.text(), where}};
  }

  /// Inserts a step that is a part of the sequence, as a task is. After flush() the owner has the
  /// value. After discard() no rank has it, and its memory is freed. After move() `owner` has it,
  /// and tasks that write it run there. All ranks that insert the whole loop must insert it. May
  /// suspend, as launch().
  template <class T>
  void flush(const Data<T>& data,
             const std::source_location where = std::source_location::current()) {
    detail::flush_datum(data.datum(), where);
  }
  void flush(const std::source_location where = std::source_location::current()) {  // all data
    detail::flush_data(*space_, where);
  }
  template <class T>
  void discard(const Data<T>& data,
               const std::source_location where = std::source_location::current()) {
    detail::discard_datum(data.datum(), where);
  }
  template <class T>
  void move(const Data<T>& data, const int owner,
            const std::source_location where = std::source_location::current()) {
    detail::move_datum(data.datum(), owner, where);
  }

  /// Does what `for (i = 0; i < count; ++i) body(i)` does, for a body that only inserts into this
  /// space, and inserts the same sequence in iteration i as in i - period. All ranks call it at the
  /// same place of the sequence. The body is called for one period. Each rank plans its tasks and
  /// transfers once, and then runs them in each iteration without insertion. There is no barrier
  /// between iterations. `tasks_ahead` does not count: a rank keeps one period of its tasks.
  ///
  /// A task learns its iteration by a parameter before the views, launch([](std::int64_t i, ...)),
  /// or by iteration(). If a task throws, the loop goes on, as a loop of insertions would: tasks
  /// that need its results do not run until the data are written anew, and finish() throws. Child
  /// tasks end with the body that has spawned them. A task that decides() may call
  /// stop_iterating(): its iteration is then the last one on all ranks. In any other task
  /// stop_iterating() throws Error.
  ///
  /// Suspends until the tasks of this rank have run, also those before the loop. A count of 0 or
  /// below: nothing runs, and the body is not called. A body that inserts nothing is called, and
  /// nothing runs. Throws Error for a period below 1; for a body that calls finish(), data(),
  /// view() or iterate() of the space; for a move() that leaves a datum with another owner than it
  /// had; and if a discard() takes a value or owner that a task of the next period needs. Then
  /// nothing has run. IMBREX_CHECK=1 calls the body for a second period and compares.
  template <class F>
    requires std::invocable<F&, std::int64_t>
  void iterate(const std::int64_t count, const IterateOptions& options, F&& body,
               const std::source_location& where = std::source_location::current()) {
    using Function = std::remove_reference_t<F>;
    detail::iterate_data(*space_, {count, options.period, where, "iterate()"},
                         [](void* const argument, const std::int64_t i) {
                           (*static_cast<Function*>(argument))(i);
                         },
                         const_cast<void*>(static_cast<const void*>(std::addressof(body))));
  }
  /// With the period 1.
  template <class F>
    requires std::invocable<F&, std::int64_t>
  void iterate(const std::int64_t count, F&& body,
               const std::source_location& where = std::source_location::current()) {
    iterate(count, IterateOptions{}, std::forward<F>(body), where);
  }

  /// Collective: all ranks call it at the same place of the sequence. Suspends until all tasks that
  /// this rank inserted have run, all its messages are sent, and all other ranks have called it. On
  /// the rank of the first task that failed it throws the exception of that task; on other ranks it
  /// throws Error, which names the rank and the task. More tasks may be inserted afterwards.
  void finish() { detail::finish_data(*space_); }

  /// Counters of this rank since the space was made. Exact after finish(). Never suspends.
  [[nodiscard]] SpaceCounters counters() const noexcept { return detail::data_counters(*space_); }

 protected:
  explicit SpaceBase(detail::DataSpace* const space) noexcept : space_(space) {}

 private:
  template <class T>
  [[nodiscard]] Data<T> make(const int owner, const detail::DataShape& shape, void* const memory,
                             const Name name) {
    return Data<T>(*detail::make_datum(*space_, {owner, shape, memory, name.text()}));
  }
  detail::DataSpace* space_;
};

}  // namespace imbrex
