// SPDX-License-Identifier: BSD-3-Clause
// The scopes of imbrex::ordered() that are open, and which one the calling code stands in. Knows
// no collective.
//
// Thread safety: every function, any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace imbrex::detail {

// One lives from the beginning of a scope to its end, where the task put it.
struct OrderScope {
  // What orders the collectives in it: a key, or if `object` is not null that access.
  std::uint64_t key = 0;
  const void* object = nullptr;
  std::size_t bytes = 0;
  int left = 1;  // with an access: collectives until it is released. The task's only.
  bool is_of_c = false;  // begun and ended by calls
  // The table's.
  std::uint64_t owner = 0;
  OrderScope* outer = nullptr;
};

}  // namespace imbrex::detail

namespace imbrex::mpi::order {

// How many are open in this process. Relaxed: a task sees its own.
extern std::atomic<int> scopes_open;

// A scope of an access. Throws Error.
[[nodiscard]] detail::OrderScope by_access(const void* object, std::size_t bytes, int count,
                                           bool is_of_c);
void open(detail::OrderScope& scope);
// Throws Error if it is not the innermost one of the calling task or thread.
void close(detail::OrderScope& scope);
// The innermost one of the calling task; of a thread that stands in none, its own. Null: none.
[[nodiscard]] detail::OrderScope* innermost();

// The key for a name. Throws Error if another name that was used here has the same.
[[nodiscard]] std::uint64_t key_of(std::string_view name);
// `"name"`, or the number; a name that another rank alone uses has none here.
[[nodiscard]] std::string text_of(std::uint64_t key);

}  // namespace imbrex::mpi::order
