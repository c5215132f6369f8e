// SPDX-License-Identifier: BSD-3-Clause
// Places: parts of the runtime's workers, which task(...).at(place) may name. By default each NUMA
// node with workers is one; IMBREX_PLACES and RuntimeOptions::places say otherwise. Places form a
// tree, whose root is Place(), all workers: of depth 1, or that of the machine, or of a file.
// Included by task.hpp.
//
// Thread safety: any thread may call any of these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace imbrex {

class Place;
class TaskBuilder;

namespace detail {
// Call between create() and submit(): the task belongs to `place`. Throws Error if `place` belongs
// to another runtime than the running one.
void put_at(void* closure, imbrex::Place place);
}  // namespace detail

/// The kind of hardware that a place is a part of. Tasks run only in places of the first two kinds;
/// the other kinds occur in HClib's files.
enum class PlaceKind : std::uint8_t { memory, cache, nvgpu, amgpu, fpga, pgas };

/// One of the places, or all workers. A small value, valid for the runtime that returned it. Thread
/// safety: a value.
class Place {
 public:
  constexpr Place() noexcept = default;  // all workers

  /// The number that place() was given; -1: all workers. Never suspends.
  [[nodiscard]] constexpr int index() const noexcept { return index_; }
  /// The number of workers of the place; a name such as "NUMA node 0", "workers 0-3" or "all
  /// workers"; its level in the tree (0: all workers; else one more than its parent's); its parent
  /// (all workers: itself) and its children. Never suspend. Throw Error if the runtime of the place
  /// has ended.
  [[nodiscard]] int worker_count() const;
  [[nodiscard]] std::string name() const;
  [[nodiscard]] PlaceKind kind() const;
  [[nodiscard]] int level() const;
  [[nodiscard]] Place parent() const;
  [[nodiscard]] std::vector<Place> children() const;
  friend constexpr bool operator==(const Place&, const Place&) noexcept = default;

 private:
  friend class TaskBuilder;
  // For a task that shall have the place of its parent.
  [[nodiscard]] static constexpr Place unset() noexcept { return {-2, 0}; }
  [[nodiscard]] constexpr bool is_set() const noexcept { return index_ != -2; }

  friend Place place(int index);
  friend Place current_place() noexcept;
  friend Place local_place() noexcept;
  friend void detail::put_at(void* closure, Place place);
  constexpr Place(const int index, const std::uint32_t runtime) noexcept
      : index_(index), runtime_(runtime) {}

  int index_ = -1;
  std::uint32_t runtime_ = 0;  // the number of the runtime; 0: any
};

/// The number of places, and one of them, counted from 0. Both start the runtime, if it does not
/// run, and throw Error as the first task does. place() also throws if there is no such place. The
/// places of a tree are counted from the innermost to the outermost, level by level. Never suspend.
[[nodiscard]] int place_count();
[[nodiscard]] Place place(int index);

/// The place of the running task: the place that the task, or its nearest ancestor with a place,
/// was given. All workers, if there is none. Never suspends.
[[nodiscard]] Place current_place() noexcept;
/// The parent of current_place(); all workers for all workers. Never suspends.
[[nodiscard]] Place parent_place();
/// The first place, in a tree the innermost, that has the caller's worker. A task without a place,
/// or whose place overlaps with others, may resume in another place after a wait. All workers, if
/// no place has the worker, and in threads that are no workers. Never suspends.
[[nodiscard]] Place local_place() noexcept;
/// The number of the caller's worker, below worker_count(); -1 in threads that are no workers. A
/// task may resume on another worker after a wait. Never suspends.
[[nodiscard]] int current_worker() noexcept;

}  // namespace imbrex

#pragma GCC visibility pop
