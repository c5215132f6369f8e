// SPDX-License-Identifier: BSD-3-Clause
// The memory behind the descriptor of a simulated task, where a real task has its body.
#pragma once

#include "simulate/engine/program.hpp"
#include "task/descriptor.hpp"

namespace imbrex::simulate {

struct Closure {
  TaskPlan plan;
};
static_assert(sizeof(Closure) <= 64);
inline constexpr std::size_t closure_bytes = 64;

[[nodiscard]] inline const Closure& closure_of(const task::Task& task) noexcept {
  return *static_cast<const Closure*>(const_cast<task::Task&>(task).closure());
}

}  // namespace imbrex::simulate
