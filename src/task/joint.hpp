// SPDX-License-Identifier: BSD-3-Clause
// Joint: a completion that follows others, all of them or the first. Pure, like the rest of task/.
//
// Thread safety: the parts may complete on any thread, while the joint is made and after.
// Invariants:
//   (1) the joint owns a reference to each completion that it follows, until its own end. Parts own
//       none to the joint: at its end those that still wait are taken back, and for those that are
//       being let go the end waits until they are `done`, a matter of a few instructions.
//   (2) any: whoever sets `decided` first fires. Then the other parts are taken back, once, by the
//       one who sets `cleaned`; not before all parts have been added (`armed`). So a completion
//       that never comes keeps no trace of joints that are decided.
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>

#include "task/descriptor.hpp"
#include "task/failure.hpp"

namespace imbrex::task {

struct Joint : detail::Completion {
  struct Part : Waiter {
    Joint* joint;
    detail::Completion* of;
    std::size_t position;
    std::atomic<bool> done{false};  // let go or taken back; nobody touches it any more
  };
  // Raises what the parts have been raised to; false if they have that priority, or another thread
  // is about to give it to them.
  [[nodiscard]] bool lift(int priority) noexcept;

  bool all;
  std::atomic<int> raised{std::numeric_limits<int>::min()};  // lineage.hpp; any thread
  Joint* next_dead = nullptr;                    // destroy_other()
  std::size_t count;
  std::unique_ptr<Part[]> parts;
  // all: parts, and one for the maker; any: parts that have not failed
  std::atomic<std::size_t> remaining;
  std::atomic<bool> decided{false};              // any: (2)
  std::atomic<bool> armed{false};
  std::atomic<bool> cleaned{false};
  // any: the position of the first with a value, once fired; read as a future's value
  detail::Slot<std::size_t> index;
};

// The caller owns the reference. Throws std::bad_alloc.
[[nodiscard]] Joint& join(std::span<detail::Completion* const> parts, bool all);

// `promise` is referred to no more.
void destroy_promise(detail::PromiseState& promise) noexcept;
// `completion` has failed, and someone is told: of a joint, what all its parts failed with.
void take_all(const detail::Completion& completion) noexcept;
// The last reference to a completion that is no task is gone. Runs the destructors of promised
// values, which may wait if the caller may.
void destroy_other(detail::Completion& completion, Outcome& outcome) noexcept;

}  // namespace imbrex::task
