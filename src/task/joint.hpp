// SPDX-License-Identifier: BSD-3-Clause
// Joint: a completion that follows others, all of them or the first. Pure, like the rest of task/.
//
// Thread safety: the parts may complete on any thread, while the joint is made and after.
// Invariants:
//   (1) the joint owns a reference to each completion that it follows, until its own end. Parts own
//       no reference to the joint: at its end the parts that still wait are taken back, and the end
//       waits until the parts that are being released are `done`, a matter of a few instructions.
//   (2) any: the thread that sets `decided` first fires. The thread that sets `cleaned` then takes
//       the other parts back, once; not before all parts have been added (`armed`). A completion
//       that never comes therefore keeps no trace of decided joints.
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
    std::atomic<bool> done{false};  // released or taken back; no thread uses it any more
  };
  // Raises the parts to `priority`; false if they have it already, or another thread is about to
  // give it to them.
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
  // any: the position of the first part with a value, once fired; read as a future's value
  detail::Slot<std::size_t> index;
};

// Makes a joint; the caller owns the reference. Throws std::bad_alloc.
[[nodiscard]] Joint& join(std::span<detail::Completion* const> parts, bool all);

// The last reference to `promise` is gone.
void destroy_promise(detail::PromiseState& promise) noexcept;
// `completion` has failed, and the program is told; for a joint, of the failures of all its parts.
void take_all(const detail::Completion& completion) noexcept;
// The last reference to a completion that is no task is gone. Runs the destructors of promised
// values, which may wait if the caller may.
void destroy_other(detail::Completion& completion, Outcome& outcome) noexcept;

}  // namespace imbrex::task
