// SPDX-License-Identifier: BSD-3-Clause
// Profiles: what is known of tasks by those of the same kind that ran before (Pereira et al. 2021,
// policy FA). Two tasks are of one kind if they have the same spawn site, body, size of captured
// data, number of accesses and binding, and parents of the same spawn site.
//
// Thread safety: every member, any thread. A profile is made once and stays; its fields are
// estimates, each written by itself, so relaxed: who reads an old one orders tasks a little worse.
// Bounded: a kind that finds no place near its own is not learned.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "task/task.hpp"

namespace imbrex::task {

struct Profile {
  std::atomic<std::uint64_t> kind{0};         // 0: free
  std::atomic<Profile*> above{nullptr};       // of the parent, if that is a task
  // 1: its tasks send; n + 1: they create tasks of level n; 0: neither has been seen.
  std::atomic<std::uint32_t> level{0};
  std::atomic<std::uint32_t> duration_ns{0};  // of bodies that did not suspend, of late; 0: unknown

  // A new figure counts for an eighth; it is not 0.
  static void learn(std::atomic<std::uint32_t>& field, std::uint64_t figure) noexcept;
};

class Profiles {
 public:
  // The profile of `task`, which its parent creates now; its number is kept in the task. Null if
  // there is no place for it.
  [[nodiscard]] Profile* enter(Task& task) noexcept;
  // The same later on.
  [[nodiscard]] Profile* of(const Task& task) const noexcept {
    return task.root || task.profile == 0 ? nullptr : &profiles_[task.profile - 1u];
  }

  // Its tasks send, and those above create tasks that do. True if that is news.
  [[nodiscard]] static bool sends(Profile& profile) noexcept;

  // How long the path is that a message of such a task with the same accesses opened elsewhere, in
  // microseconds; 0: unknown. Not of its kind: the average of other tasks changes as it is learned,
  // and would order tasks of one graph by when they were made.
  [[nodiscard]] std::uint32_t behind(const Task& task) const noexcept;
  // `task` is about to send `message`; a path has been reported for it.
  void sends(const Task& task, std::uint64_t message) noexcept;
  void learn(std::uint64_t message, float behind_us) noexcept;

 private:
  // The same task in each iteration of a program: its kind and the addresses of its accesses.
  // Tables in which a newer entry takes the place of an older one with the same hash. Racing
  // writers may leave one made of two: then one figure is learned for another task.
  struct Known {
    std::atomic<std::uint64_t> task{0};
    std::atomic<std::uint32_t> behind_us{0};
  };
  struct Sent {
    std::atomic<std::uint64_t> message{0};
    std::atomic<std::uint64_t> task{0};
  };
  static constexpr std::size_t tasks = 16384;
  static constexpr std::size_t messages = 4096;

  [[nodiscard]] std::uint64_t identity(const Task& task) const noexcept;

  static constexpr std::size_t places = 4096;
  std::unique_ptr<Profile[]> profiles_{new Profile[places]};
  std::unique_ptr<Known[]> known_{new Known[tasks]};
  std::unique_ptr<Sent[]> sent_{new Sent[messages]};
};

}  // namespace imbrex::task
