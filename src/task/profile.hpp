// SPDX-License-Identifier: BSD-3-Clause
// Profiles: what is known of tasks by those of the same kind that ran before (Pereira et al. 2021,
// policy FA). Two tasks are of one kind if they have the same spawn site, body, size of captured
// data, number of accesses and binding, and parents of the same spawn site.
//
// Thread safety: every member, any thread. A profile is made once and stays; its fields are
// estimates, each written by itself, so relaxed: whoever reads an old one orders tasks a little
// worse.
// Bounded: a kind that finds no place near its own is not learned.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "task/descriptor.hpp"

namespace imbrex::task {

struct Profile {
  std::atomic<std::uint64_t> kind{0};         // 0: free
  std::atomic<Profile*> above{nullptr};       // of the parent, if that is a task
  // 1: its tasks send; n + 1: they create tasks of level n; 0: neither has been seen.
  std::atomic<std::uint32_t> level{0};
  // Tasks that have begun, up to `seasoned`: that many have shown what the kind does.
  std::atomic<std::uint32_t> begun{0};
  static constexpr std::uint32_t seasoned = 64;
};

class Profiles {
 public:
  // The profile of `task`, which its parent creates now; its number is kept in the task. Null if
  // there is no place for it.
  [[nodiscard]] Profile* enter(Task& task) noexcept;
  // The same later on.
  [[nodiscard]] Profile* of(const Task& task) const noexcept {
    return task.is_root() || task.profile == 0 ? nullptr : &profiles_[task.profile - 1u];
  }

  // The tasks of `profile` send, and those above create tasks that do. True if that is news.
  [[nodiscard]] static bool sends(Profile& profile) noexcept;

  // How urgent the sends of such a task with the same accesses are: by how much longer the paths
  // are that messages open at the rank that it sent to than elsewhere, 0 if by less than half.
  // This goes by rank, since the path of one message differs from run to run: it is whatever that
  // message was the last to keep waiting.
  [[nodiscard]] int urgency(const Task& task) const noexcept;
  static constexpr int urgency_max = 8;
  // The same of a rank.
  [[nodiscard]] int urgency_at(std::uint32_t rank) const noexcept;
  // `task` is about to send `message`, whose upper half is the rank. How long the paths are there
  // on average, in microseconds; 0: unknown.
  [[nodiscard]] float sends(const Task& task, std::uint64_t message) noexcept;
  // A path has been reported for it. By one thread at a time.
  void learn(std::uint64_t message, float behind_us) noexcept;

 private:
  // The same task in each iteration of a program: its kind and the addresses of its accesses.
  // A table in which a newer entry takes the place of an older one with the same hash. Racing
  // writers may leave one made of two: then one task is taken for another.
  struct Known {
    std::atomic<std::uint64_t> task{0};
    std::atomic<std::uint32_t> peer{0};  // of those that it sends to, the most urgent
  };
  // A rank, in the place of another that has the same.
  struct Peer {
    std::atomic<std::uint32_t> rank{0};
    std::atomic<float> behind_us{0};
    std::atomic<int> urgency{0};
    std::uint32_t reports = 0;  // learn() alone
  };
  static constexpr std::size_t tasks = 16384;
  static constexpr std::size_t peers = 1024;
  static constexpr std::uint32_t reports_min = 16;  // before a rank is compared with others

  // Null if nothing has been learned of it.
  [[nodiscard]] const Peer* peer(std::uint32_t rank) const noexcept;
  void compare_peers() noexcept;
  [[nodiscard]] std::uint64_t identity(const Task& task) const noexcept;

  static constexpr std::size_t places = 4096;
  std::unique_ptr<Profile[]> profiles_{new Profile[places]};
  std::unique_ptr<Known[]> known_{new Known[tasks]};
  std::unique_ptr<Peer[]> peers_{new Peer[peers]};
  std::uint32_t reports_ = 0;  // learn() alone
};

}  // namespace imbrex::task
