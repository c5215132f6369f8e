// SPDX-License-Identifier: BSD-3-Clause
// Loops and reductions by tasks: parallel_for, reduce.
//
//   imbrex::parallel_for(values, [](double& value) { value = std::sqrt(value); });
//   imbrex::parallel_for(std::views::iota(0, rows), {.grain = 4}, [&](int row) { relax(row); });
//   const double norm = imbrex::reduce(values, 0.0, std::plus(), [](double v) { return v * v; });
//
// A range is cut into parts of `grain` elements, each of which one task does in order; a half is
// spawned, and so on with the other: who steals takes the largest. Both return when all is done.
// Elements must not wait for each other, since those of one part follow each other.
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
#include <utility>
#include <vector>

#include "imbrex/detail/name.hpp"
#include "imbrex/scope.hpp"
#include "imbrex/task.hpp"

namespace imbrex {

struct Loop {
  std::size_t grain = 0;  // elements of a part; 0: so that there are 8 parts for each worker
  Name name = "loop";     // of the tasks, in reports
};

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

// Of the place of the running task, for its tasks are there, too.
[[nodiscard]] inline std::size_t grain_of(const Loop& loop, const std::size_t count) {
  if (loop.grain != 0) return loop.grain;
  const auto parts = 8 * static_cast<std::size_t>(std::max(1, current_place().worker_count()));
  return (count + parts - 1) / parts;
}

// Calls begin(parts), and then part(i, first, last) for the elements [first, last) of each part i.
// All is in tasks, so that what several parts throw is counted, and a thread of the program's own
// waits only.
template <class Begin, class Part>
void in_parts(const Loop& loop, const std::source_location& where, const std::size_t count,
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
concept cut_range = std::ranges::random_access_range<R> && std::ranges::sized_range<R>;

template <class R>
[[nodiscard]] auto iterator_at(R& range, const std::size_t index) {
  return std::ranges::begin(range) +
         static_cast<std::ranges::range_difference_t<R>>(index);
}

}  // namespace detail

// Calls body(element) for each element, in tasks, and waits for them. If some throw, it rethrows
// the first exception, as finish() does; the rest of such a part is left out, and no other part.
// The body is shared by the tasks, so it must be callable as const. Suspends.
template <detail::cut_range R, class F>
  requires std::invocable<const F&, std::ranges::range_reference_t<R>>
void parallel_for(R&& range, const Loop& loop, const F& body,
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
template <detail::cut_range R, class F>
  requires std::invocable<const F&, std::ranges::range_reference_t<R>>
void parallel_for(R&& range, const F& body,
                  const std::source_location& where = std::source_location::current()) {
  parallel_for(std::forward<R>(range), Loop(), body, where);
}

// map(element) of all elements, put together by `op`, which must be associative: elements keep
// their order, so it need not be commutative. op(identity, x) is x; of an empty range it is
// `identity`. With a `grain` of the program's own the result is the same, to the last bit, whatever
// the number of workers. Exceptions as parallel_for(). Suspends.
template <detail::cut_range R, std::copyable T, class Op, class Map = std::identity>
  requires std::invocable<const Map&, std::ranges::range_reference_t<R>>
[[nodiscard]] T reduce(R&& range, const Loop& loop, const T& identity, const Op& op,
                       const Map& map = {},
                       const std::source_location& where = std::source_location::current()) {
  std::vector<std::optional<T>> values;  // of the parts
  const auto part = [&](const std::size_t i, const std::size_t first, const std::size_t last) {
    T value = identity;
    auto at = detail::iterator_at(range, first);
    for (const auto end = detail::iterator_at(range, last); at != end; ++at) {
      value = op(std::move(value), std::invoke(map, *at));
    }
    values[i].emplace(std::move(value));
  };
  detail::in_parts(loop, where, static_cast<std::size_t>(std::ranges::size(range)),
                   [&values](const std::size_t parts) { values.resize(parts); }, part);
  T result = identity;
  for (std::optional<T>& value : values) result = op(std::move(result), *std::move(value));
  return result;
}
template <detail::cut_range R, std::copyable T, class Op, class Map = std::identity>
  requires(std::invocable<const Map&, std::ranges::range_reference_t<R>> &&
           !std::same_as<T, Loop>)
[[nodiscard]] T reduce(R&& range, const T& identity, const Op& op, const Map& map = {},
                       const std::source_location& where = std::source_location::current()) {
  return reduce(std::forward<R>(range), Loop(), identity, op, map, where);
}

}  // namespace imbrex
