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
#include <memory>
#include <span>

#include "task/task.hpp"

namespace imbrex::task {

struct Joint : detail::Completion {
  struct Part : Waiter {
    Joint* joint;
    detail::Completion* of;
    std::size_t position;
    std::atomic<bool> done{false};  // let go or taken back; nobody touches it any more
  };
  bool all;
  std::size_t count;
  std::unique_ptr<Part[]> parts;
  std::atomic<std::size_t> remaining;            // all: parts, and one for the maker
  std::atomic<bool> decided{false};              // any: (2)
  std::atomic<bool> armed{false};
  std::atomic<bool> cleaned{false};
  std::size_t index = 0;                         // any: the first, once fired
};

// The caller owns the reference. Throws std::bad_alloc.
[[nodiscard]] Joint& join(std::span<detail::Completion* const> parts, bool all, Outcome& outcome);

// The last reference to a completion that is no task is gone.
void destroy_other(detail::Completion& completion, Outcome& outcome) noexcept;

}  // namespace imbrex::task
