// SPDX-License-Identifier: BSD-3-Clause
// The open scopes of imbrex::order_collectives(), and the scope of the calling code. Knows no
// collective.
//
// Thread safety: any thread calls every function.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace imbrex::detail {

// Lives from the beginning of a scope to its end, in memory of the task.
struct OrderScope {
  // The order of its collectives: by a key, or by the access if `object` is not null.
  std::uint64_t key = 0;
  const void* object = nullptr;
  std::size_t bytes = 0;
  int left = 1;  // with an access: collectives until it is released; only the task uses it
  bool is_of_c = false;  // begun and ended by functions of C
  // For the table.
  std::uint64_t owner = 0;
  OrderScope* outer = nullptr;
};

}  // namespace imbrex::detail

namespace imbrex::mpi::order {

// The number of open scopes in this process. Relaxed: a task sees its own.
extern std::atomic<int> scopes_open;

// Makes a scope ordered by an access. Throws Error.
[[nodiscard]] detail::OrderScope by_access(const void* object, std::size_t bytes, int count,
                                           bool is_of_c);
void open(detail::OrderScope& scope);
// Throws Error if it is not the innermost scope of the calling task or thread.
void close(detail::OrderScope& scope);
// The innermost scope of the calling task; for code outside of tasks, of the thread. Null: none.
[[nodiscard]] detail::OrderScope* innermost();

// The key for a name. Throws Error if another name with this key was used here.
[[nodiscard]] std::uint64_t key_of(std::string_view name);
// `"name"`, or the number; a name that only another rank uses is unknown here.
[[nodiscard]] std::string text_of(std::uint64_t key);

}  // namespace imbrex::mpi::order
