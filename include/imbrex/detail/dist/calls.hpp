// SPDX-License-Identifier: BSD-3-Clause
// What remote.hpp sees of src/dist: calls whose arguments and results are bytes. Names no MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <vector>

#pragma GCC visibility push(default)

namespace imbrex::detail {

using AnyFunction = void();

// Two addresses of code, of any modules of the program.
struct Callee {
  void (*run)(AnyFunction* function, std::span<const std::byte> arguments,
              std::vector<std::byte>& result);
  AnyFunction* function;
};
// Called once, by whoever handles messages. Does not throw, nor wait.
using CallEnded = std::function<void(const std::exception_ptr& error,
                                     std::span<const std::byte> result)>;

// Thread safety: any thread; close() once.
class Calls {
 public:
  virtual void call(int rank, const Callee& callee, std::vector<std::byte> arguments,
                    CallEnded ended) = 0;
  virtual void close() = 0;

 protected:
  ~Calls() = default;
};
[[nodiscard]] Calls& open_calls(std::uint64_t id, std::vector<int> members);
void forget_calls(Calls& calls) noexcept;
[[nodiscard]] std::uint64_t draw_calls_id();

}  // namespace imbrex::detail

#pragma GCC visibility pop
