// SPDX-License-Identifier: BSD-3-Clause
// Loops and reductions by tasks: parallel_for, reduce.
//
//   imbrex::parallel_for(values, [](double& value) { value = std::sqrt(value); });
//   imbrex::parallel_for(std::views::iota(0, rows), {.grain = 4}, [&](int row) { relax(row); });
//   const double norm = imbrex::reduce(values, 0.0, std::plus(), [](double v) { return v * v; });
//
// A range is cut into parts of `grain` elements; one task handles a part in order. A task spawns
// one half of its range and goes on with the other half, so a thief steals the largest half. Both
// functions return when all parts are done. Elements must not wait for each other, since one task
// handles the elements of a part one after the other.
#pragma once

#include "imbrex/detail/language.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <ranges>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include "imbrex/name.hpp"
#include "imbrex/scope.hpp"
#include "imbrex/task.hpp"

namespace imbrex {

struct LoopOptions {
  std::size_t grain = 0;  // elements of a part; 0: the size that gives 8 parts for each worker
  Name name = "loop";     // name of the tasks in reports
};

/// What can be cut into parts: a vector, an array, a span, views::iota(first, last).
template <class R>
concept loop_range = std::ranges::random_access_range<R> && std::ranges::sized_range<R>;

namespace detail {

// Calls part(i) once for each i of [first, last), in tasks. `part` outlives them.
template <class Part>
void in_tasks(const Name name, const std::source_location& where, const std::size_t first,
              std::size_t last, const Part& part) {
  while (last - first > 1) {
    const std::size_t middle = first + (last - first) / 2;
    task(name, where).launch([=, &part] { in_tasks(name, where, middle, last, part); });
    last = middle;
  }
  part(first);
}

// Uses the workers of the running task's place, where its tasks run, too.
[[nodiscard]] inline std::size_t grain_of(const LoopOptions& loop, const std::size_t count) {
  if (loop.grain != 0) return loop.grain;
  const auto parts = 8 * static_cast<std::size_t>(std::max(1, current_place().worker_count()));
  return (count + parts - 1) / parts;
}

// Calls begin(parts), and then part(i, first, last) for the elements [first, last) of each part i.
// All calls are in tasks, so that exceptions of several parts are counted, and a thread of the
// program's own only waits.
template <class Begin, class Part>
void in_parts(const LoopOptions& loop, const std::source_location& where, const std::size_t count,
              const Begin& begin, const Part& part) {
  if (count == 0) return;
  std::size_t grain = 0;
  const auto one = [&](const std::size_t i) {
    part(i, i * grain, i * grain + std::min(grain, count - i * grain));
  };
  finish(
      [&] {
        grain = grain_of(loop, count);  // the runtime runs by now
        const std::size_t parts = (count - 1) / grain + 1;
        begin(parts);
        task(loop.name, where).launch([&, parts, name = loop.name] {
          in_tasks(name, where, 0, parts, one);
        });
      },
      where);
}

template <class R>
[[nodiscard]] auto iterator_at(R& range, const std::size_t index) {
  return std::ranges::begin(range) +
         static_cast<std::ranges::range_difference_t<R>>(index);
}

// The type that reduce() returns: the wider one of two numbers, else the type of the identity.
template <class T, class Element>
struct Reduced {
  using type = T;
};
template <class T, class Element>
  requires(std::is_arithmetic_v<T> && std::is_arithmetic_v<Element>)
struct Reduced<T, Element> {
  using type = std::common_type_t<T, Element>;
};
template <class R, class Map>
using mapped_t =
    std::remove_cvref_t<std::invoke_result_t<const Map&, std::ranges::range_reference_t<R>>>;

}  // namespace detail

/// Calls body(element) for each element, in tasks, and waits for them. If calls throw, it rethrows
/// the first exception, as finish() does; the rest of such a part is left out, and no other part.
/// The tasks share the body, so it must be callable as const, by several threads at once. Any task
/// or thread. Suspends. Throws Error as spawn() does.
template <loop_range R, class F>
  requires std::invocable<const F&, std::ranges::range_reference_t<R>>
void parallel_for(R&& range, const LoopOptions& loop, const F& body,
                  const std::source_location& where = std::source_location::current()) {
  const auto part = [&](std::size_t, const std::size_t first, const std::size_t last) {
    auto at = detail::iterator_at(range, first);
    for (const auto end = detail::iterator_at(range, last); at != end; ++at) {
      static_cast<void>(std::invoke(body, *at));
    }
  };
  detail::in_parts(loop, where, static_cast<std::size_t>(std::ranges::size(range)),
                   [](std::size_t) {}, part);
}
template <loop_range R, class F>
  requires std::invocable<const F&, std::ranges::range_reference_t<R>>
void parallel_for(R&& range, const F& body,
                  const std::source_location& where = std::source_location::current()) {
  parallel_for(std::forward<R>(range), LoopOptions(), body, where);
}

/// Combines map(element) of all elements by `op`, which must be associative. Elements keep their
/// order, so `op` need not be commutative.
///
/// `identity` is the value that changes nothing: op(identity, x) is x, as 0 is for a sum, 1 for a
/// product, and the lowest number for a maximum. It is NOT an initial value: every part begins with
/// it, so another value would be counted once for each part, and once more. The result for an empty
/// range is `identity`.
///
/// The result of two numbers has the wider type, that of the mapped elements or of `identity`
/// (reduce(doubles, 0, std::plus()) is a double); other results have the type of `identity`.
///
/// With a `grain` of the program's own the result is identical, to the last bit, whatever the
/// number of workers. `op` and `map` are called by several threads at once. Exceptions as
/// parallel_for(). Suspends.
template <loop_range R, std::copyable T, class Op, class Map = std::identity>
  requires std::invocable<const Map&, std::ranges::range_reference_t<R>>
[[nodiscard]] auto reduce(R&& range, const LoopOptions& loop, const T& identity, const Op& op,
                          const Map& map = {},
                          const std::source_location& where = std::source_location::current()) {
  using Result = typename detail::Reduced<T, detail::mapped_t<R, Map>>::type;
  const auto each = [&map](auto&& element) -> decltype(auto) {
    if constexpr (std::is_arithmetic_v<Result>) {
      return static_cast<Result>(std::invoke(map, std::forward<decltype(element)>(element)));
    } else {
      return std::invoke(map, std::forward<decltype(element)>(element));
    }
  };
  const auto none = static_cast<Result>(identity);
  std::vector<std::optional<Result>> values;  // one for each part
  const auto part = [&](const std::size_t i, const std::size_t first, const std::size_t last) {
    Result value = none;
    auto at = detail::iterator_at(range, first);
    for (const auto end = detail::iterator_at(range, last); at != end; ++at) {
      value = static_cast<Result>(op(std::move(value), each(*at)));
    }
    values[i].emplace(std::move(value));
  };
  detail::in_parts(loop, where, static_cast<std::size_t>(std::ranges::size(range)),
                   [&values](const std::size_t parts) { values.resize(parts); }, part);
  Result result = none;
  for (std::optional<Result>& value : values) {
    result = static_cast<Result>(op(std::move(result), *std::move(value)));
  }
  return result;
}
template <loop_range R, std::copyable T, class Op, class Map = std::identity>
  requires(std::invocable<const Map&, std::ranges::range_reference_t<R>> &&
           !std::same_as<T, LoopOptions>)
[[nodiscard]] auto reduce(R&& range, const T& identity, const Op& op, const Map& map = {},
                          const std::source_location& where = std::source_location::current()) {
  return reduce(std::forward<R>(range), LoopOptions(), identity, op, map, where);
}

}  // namespace imbrex
