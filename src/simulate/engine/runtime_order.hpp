// SPDX-License-Identifier: BSD-3-Clause
// Graphs of tasks for tests, and the order in which the runtime itself runs one. Apart from what
// includes the simulator: imbrex::task is a function to programs, and a namespace to src/.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "imbrex/detail/waist.hpp"

namespace imbrex::simulate {

constexpr int data_count = 12;
constexpr int kinds = 3;

struct Node {
  int kind;      // below `kinds`
  int priority;
  std::vector<std::pair<int, detail::AccessKind>> accesses;  // to different data, below data_count
};
using Graph = std::vector<Node>;

// The order in which the runtime begins the tasks of `graph` with one worker, by position.
[[nodiscard]] std::vector<int> order_of_runtime(const Graph& graph, const std::string& policy,
                                                int window);

}  // namespace imbrex::simulate
