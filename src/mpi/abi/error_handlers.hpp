// SPDX-License-Identifier: BSD-3-Clause
// Error handlers of the program. MPI calls them in the middle of its call, where a worker may run
// no task, hold locks, or make the call for another thread. They are therefore kept, and called
// after MPI has returned by the code whose call has failed: there they may suspend, throw and jump.
//
// A kept handler belongs to one call of MPI. It leaves the thread with the result of that call
// (Outcome), or at the end of the program's call. Otherwise it is dropped when the next call
// begins.
#pragma once

#include <cstdint>
#include <type_traits>

#include "mpi/abi/next.hpp"

namespace imbrex::mpi {

// A call of an error handler of the program that MPI has made. Small, since operations hold one.
struct KeptHandler {
  enum class Kind : std::uint8_t {
    none,   // no handler was kept
    fatal,  // the replacement of MPI_ERRORS_ARE_FATAL
    comm,
    window,
    file,
    session
  };
  std::uintptr_t handle = 0;  // of the object
  int code = MPI_SUCCESS;
  Kind kind = Kind::none;
  std::uint8_t index = 0;  // number among the handlers of this kind

  template <class Handle>
  [[nodiscard]] static std::uintptr_t from(Handle handle) noexcept {
    if constexpr (std::is_pointer_v<Handle>) {
      return reinterpret_cast<std::uintptr_t>(handle);
    } else {
      return static_cast<std::uintptr_t>(handle);
    }
  }
  template <class Handle>
  [[nodiscard]] Handle as() const noexcept {
    if constexpr (std::is_pointer_v<Handle>) {
      return reinterpret_cast<Handle>(handle);
    } else {
      return static_cast<Handle>(handle);
    }
  }
};
// Keeps it for the calling thread; replaces an earlier one.
void keep(const KeptHandler& handler) noexcept;
// Takes the kept handler of the calling thread. Called where MPI has returned an error, before the
// code that called MPI suspends.
[[nodiscard]] KeptHandler take_kept() noexcept;
// Called where a call of MPI begins: drops a handler that an earlier call has left.
inline void forget_kept() noexcept {
  if (kept_count.load(std::memory_order_relaxed) != 0) [[unlikely]] (void)take_kept();
}

// While it lives, this thread is in an error handler of the program, which may call MPI as all code
// of the program, and leave by an exception or a jump. After a jump the thread is in no call of
// MPI, which is correct.
class InErrorHandler {
 public:
  InErrorHandler() noexcept : depth_(depth_in_next()) { depth_in_next() = 0; }
  ~InErrorHandler() { depth_in_next() = depth_; }
  InErrorHandler(const InErrorHandler&) = delete;
  InErrorHandler& operator=(const InErrorHandler&) = delete;

 private:
  const int depth_;
};

// Calls the handler that was kept while a call ended with `code`, if there is one. Returns the code
// for the call to return. The handler may suspend, throw, and jump.
[[nodiscard]] int call_kept(const KeptHandler& kept, int code);

// A call of the program returns `code`. Use it as the last action.
[[nodiscard]] inline int returned(const int code) {
  if (code == MPI_SUCCESS && kept_count.load(std::memory_order_relaxed) == 0) [[likely]] {
    return code;
  }
  return call_kept(take_kept(), code);
}

}  // namespace imbrex::mpi
