// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/engine/runtime_order.hpp"

#include <imbrex/imbrex.hpp>

#include <cstddef>
#include <new>

namespace imbrex::simulate {

using detail::AccessSpec;

std::vector<int> order_of_runtime(const Graph& graph, const std::string& policy, const int window) {
  struct Body {
    std::vector<int>* order;
    int node;
  };
  static const auto run = [](void* const closure) {
    const Body& body = *static_cast<const Body*>(closure);
    body.order->push_back(body.node);
  };
  static const detail::BodyOps ops[kinds] = {{.run = run, .drop = nullptr, .destroy = nullptr},
                                             {.run = run, .drop = nullptr, .destroy = nullptr},
                                             {.run = run, .drop = nullptr, .destroy = nullptr}};
  alignas(64) static std::byte data[data_count * 64];
  constexpr std::size_t bytes = 64;  // as the simulator has it
  std::vector<int> order;
  const Runtime runtime({.workers = 1, .policy = policy, .tasks_ahead = window});
  finish([&] {
    for (std::size_t i = 0; i < graph.size(); ++i) {
      const Node& node = graph[i];
      std::vector<AccessSpec> accesses;
      for (const auto& [datum, kind] : node.accesses) {
        accesses.emplace_back(data + datum * 64, kind);
      }
      const detail::TaskSpec spec{
          .name = "node", .where = {}, .priority = node.priority, .accesses = accesses};
      const detail::BodyOps& body = ops[node.kind];
      if (accesses.empty()) {
        void* const closure = detail::create(spec, body, bytes);
        ::new (closure) Body{&order, static_cast<int>(i)};
        (void)detail::submit(closure, false);
      } else {
        void* const closure = detail::create_with_accesses(spec, body, bytes);
        ::new (closure) Body{&order, static_cast<int>(i)};
        (void)detail::submit_with_accesses(closure, false);
      }
    }
  });
  return order;
}

}  // namespace imbrex::simulate
