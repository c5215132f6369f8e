// SPDX-License-Identifier: BSD-3-Clause
// Profiles: knowledge about tasks from earlier tasks of the same kind (Pereira et al. 2021, policy
// FA). Two tasks are of one kind if they have the same spawn site, body, size of captured data,
// number of accesses and binding, and parents of the same spawn site.
//
// Thread safety: any thread uses every member. A profile is made once and stays; its fields are
// estimates, each written on its own, so relaxed: a thread that reads an old value orders tasks a
// little worse. Bounded: a kind that finds no place near its own is not learned.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "task/descriptor.hpp"

namespace imbrex::task {

struct Profile {
  std::atomic<std::uint64_t> kind{0};         // 0: free
  std::atomic<Profile*> above{nullptr};       // profile of the parent, if that is a task
  // 1: its tasks send; n + 1: they create tasks of level n; 0: neither is known.
  std::atomic<std::uint32_t> level{0};
  // Number of tasks that have begun, up to `seasoned`: that many tasks have shown the kind's
  // behaviour.
  std::atomic<std::uint32_t> begun{0};
  static constexpr std::uint32_t seasoned = 64;
};

class Profiles {
 public:
  // The profile of `task`, which its parent creates now; its number is kept in the task. Null if
  // the table has no place for it.
  [[nodiscard]] Profile* enter(Task& task) noexcept;
  // The profile of a task later on.
  [[nodiscard]] Profile* of(const Task& task) const noexcept {
    return task.is_root() || task.profile == 0 ? nullptr : &profiles_[task.profile - 1u];
  }

  // The tasks of `profile` send, and the profiles above create tasks that do. True if that is new.
  [[nodiscard]] static bool sends(Profile& profile) noexcept;

  // The urgency of the sends of such a task with the same accesses: how much longer the paths are
  // that messages open at its receiving rank than at other ranks; 0 if by less than half. The value
  // goes by rank, since the path of one message differs from run to run: it depends on the message
  // that arrived last.
  [[nodiscard]] int urgency(const Task& task) const noexcept;
  static constexpr int urgency_max = 8;
  // The urgency of messages to a rank.
  [[nodiscard]] int urgency_at(std::uint32_t rank) const noexcept;
  // `task` is about to send `message`, whose upper half is the rank. Returns the average length of
  // the paths there, in microseconds; 0: unknown.
  [[nodiscard]] float sends(const Task& task, std::uint64_t message) noexcept;
  // A path has been reported for `message`. One thread at a time calls it.
  void learn(std::uint64_t message, float behind_us) noexcept;

 private:
  // A task that recurs in each iteration of a program: its kind and the addresses of its accesses.
  // In the table a newer entry replaces an older one with the same hash. Racing writers may mix two
  // entries: one task is then taken for another.
  struct Known {
    std::atomic<std::uint64_t> task{0};
    std::atomic<std::uint32_t> peer{0};  // of the ranks that it sends to, the most urgent one
  };
  // A rank; it replaces another rank with the same place.
  struct Peer {
    std::atomic<std::uint32_t> rank{0};
    std::atomic<float> behind_us{0};
    std::atomic<int> urgency{0};
    std::uint32_t reports = 0;  // only learn() uses it
  };
  static constexpr std::size_t tasks = 16384;
  static constexpr std::size_t peers = 1024;
  static constexpr std::uint32_t reports_min = 16;  // reports of a rank before it is compared with
                                                    // others

  // Null if the rank is unknown.
  [[nodiscard]] const Peer* peer(std::uint32_t rank) const noexcept;
  void compare_peers() noexcept;
  [[nodiscard]] std::uint64_t identity(const Task& task) const noexcept;

  static constexpr std::size_t places = 4096;
  std::unique_ptr<Profile[]> profiles_{new Profile[places]};
  std::unique_ptr<Known[]> known_{new Known[tasks]};
  std::unique_ptr<Peer[]> peers_{new Peer[peers]};
  std::uint32_t reports_ = 0;  // only learn() uses it
};

}  // namespace imbrex::task
