// SPDX-License-Identifier: BSD-3-Clause
// Failures along accesses: a task whose access follows one of a failed task through data has
// inherited that failure; docs/design/errors.md.
#pragma once

#include "task/access_block.hpp"
#include "task/failure.hpp"

namespace imbrex::task {

// `task` fails, before its event fires. Takes over the reference of `failure`.
void fail_task(Task& task, Failure& failure) noexcept;
// The failure that a task inherits if its access follows `access` through data; null: none.
// REQUIRES: the task of `access` has fired, or `access` has ended before.
[[nodiscard]] Failure* carried(const Access& access) noexcept;
[[nodiscard]] constexpr bool inherits(const AccessKind kind) noexcept {
  return kind <= AccessKind::inoutset && kind != AccessKind::out;
}
// The first cause of the inherited failures of `task`, by order of creation; null: none.
[[nodiscard]] Failure* inherited_by(Task& task) noexcept;
// `access` follows `earlier`, as for carried().
[[gnu::noinline]] void inherit(Access& access, const Access& earlier) noexcept;
// inherit() for all accesses of `next` that follow an access of `task`, both linked. If `task` has
// not `fired`, only for the accesses that it has released.
[[gnu::noinline]] void pass_on(Task& task, Task& next, bool fired) noexcept;
void forget_inherited(AccessBlock& block) noexcept;

}  // namespace imbrex::task
