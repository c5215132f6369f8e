// SPDX-License-Identifier: BSD-3-Clause
// What the workers of all ranks did during a run.
#pragma once

#include <imbrex/detail/observation.hpp>

#include "team.hpp"

namespace tiled {

// Seconds and counts.
struct Activity {
  double in_task_s, idle_s, overhead_s;
  double tasks, suspensions, steals;
};

// Collective. `start` is what imbrex::detail::totals() said on this rank before.
[[nodiscard]] Activity activity_since(const Team& team, const imbrex::detail::Totals& start);

}  // namespace tiled
