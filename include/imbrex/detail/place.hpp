// SPDX-License-Identifier: BSD-3-Clause Places: parts of the runtime's workers, which
// task(...).at(place) may name. By default there is one for each NUMA node in which it has workers;
// IMBREX_PLACES and RuntimeOptions::places say otherwise. They form a tree, whose root is Place(),
// all workers: of depth 1, or that of the machine, or of a file. Included by task.hpp.
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
// Between create() and submit(): the task belongs to `place`. Throws Error if that is of another
// runtime than the one that runs.
void put_at(void* closure, imbrex::Place place);
}  // namespace detail

/// What a place is a part of. Only in places of the first two do tasks run: the others stand in
/// HClib's files.
enum class PlaceKind : std::uint8_t { memory, cache, nvgpu, amgpu, fpga, pgas };

/// One of the places, or all workers. A small value; of the runtime that it was asked of.
class Place {
 public:
  constexpr Place() noexcept = default;  // all workers

  /// The number that place() was given; -1: all workers.
  [[nodiscard]] constexpr int index() const noexcept { return index_; }
  /// How many workers it has; a name such as "NUMA node 0", "workers 0-3" or "all workers"; and
  /// where it stands in the tree: its level (0: all workers; else one more than its parent's), its
  /// parent (that of all workers is itself) and its children. Never suspend. Throw Error if the
  /// runtime that it was asked of has ended.
  [[nodiscard]] int worker_count() const;
  [[nodiscard]] std::string name() const;
  [[nodiscard]] PlaceKind kind() const;
  [[nodiscard]] int level() const;
  [[nodiscard]] Place parent() const;
  [[nodiscard]] std::vector<Place> children() const;
  friend constexpr bool operator==(const Place&, const Place&) noexcept = default;

 private:
  friend class TaskBuilder;
  // For a task that shall have its parent's.
  [[nodiscard]] static constexpr Place unset() noexcept { return {-2, 0}; }
  [[nodiscard]] constexpr bool is_set() const noexcept { return index_ != -2; }

  friend Place place(int index);
  friend Place current_place() noexcept;
  friend Place local_place() noexcept;
  friend void detail::put_at(void* closure, Place place);
  constexpr Place(const int index, const std::uint32_t runtime) noexcept
      : index_(index), runtime_(runtime) {}

  int index_ = -1;
  std::uint32_t runtime_ = 0;  // its number; 0: any
};

/// How many places there are, and one of them, counted from 0. Both start the runtime, if it does
/// not run, as the first task does, and throw Error as that does; place() also if there is no such
/// place. The places of a tree are counted from the innermost to the outermost, level by level.
[[nodiscard]] int place_count();
[[nodiscard]] Place place(int index);

/// The place of the running task: the one that it, or an ancestor, was given. All workers, if none.
[[nodiscard]] Place current_place() noexcept;
/// The parent of current_place(); of all workers: all workers.
[[nodiscard]] Place parent_place();
/// The first place, in a tree the innermost, that has the worker which runs the caller. A task
/// without a place, or whose place overlaps with others, may go on in another one after a wait. All
/// workers, if no place has it, and in threads that are no workers.
[[nodiscard]] Place local_place() noexcept;
/// The number of the worker that runs the caller, below worker_count(); -1 in threads that are no
/// workers. It may be another one after a wait.
[[nodiscard]] int current_worker() noexcept;

}  // namespace imbrex

#pragma GCC visibility pop
