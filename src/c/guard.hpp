// SPDX-License-Identifier: BSD-3-Clause
// Shared by the C interfaces of the core and of the MPI library: no exception leaves them; and the
// object behind the handle of a future.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/waist.hpp"
#include "imbrex/error.hpp"
#include "imbrex/future.hpp"
#include "imbrex/imbrex.h"

// Owns one reference; points to the bytes once the future is ready.
struct imbrex_future_s {
  imbrex_future_s(imbrex::detail::Completion* owned, const void* its_bytes, std::size_t count)
      : future(imbrex::detail::future_of(owned)), bytes(its_bytes), size(count) {}
  imbrex::Future<void> future;
  const void* bytes;
  std::size_t size;
  bool first_of = false;  // made by imbrex_when_any()
};

namespace imbrex::c {

// Keeps the text of `error` for imbrex_message(), and returns `code`; returns another code if
// memory is exhausted, unless a task has failed for that reason.
inline int fail(const int code, const std::exception_ptr& error) noexcept {
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    if (code == IMBREX_ERR_TASK) {
      detail::keep_message(detail::thrown_text(error));
      return code;
    }
    detail::keep_message("imbrex: no memory left");
    return IMBREX_ERR_MEMORY;
  } catch (const Cancelled&) {
    detail::keep_message(detail::thrown_text(error));
    return code == IMBREX_ERR_TASK ? IMBREX_ERR_CANCELLED : code;
  } catch (...) {
    detail::keep_message(detail::thrown_text(error));
  }
  return code;
}

// Runs `call`; if it throws, returns `code`, which is read then.
template <class F>
int guard(const int& code, F&& call) noexcept {
  try {
    std::forward<F>(call)();
    return IMBREX_SUCCESS;
  } catch (...) {
    return fail(code, std::current_exception());
  }
}

// More than any machine has, and so small that no sum with it overflows.
inline constexpr std::size_t bytes_max = SIZE_MAX / 8;

// The name of a task, from its spec: copied unless `kept`; null: no name.
inline const char* name_of_task(const char* const name, const bool kept) {
  if (name == nullptr) return "task of C";
  return kept ? name : detail::keep_text(name);
}

// Throws Error for a null handle, or for a null pointer to a result.
inline void require(const void* const pointer, const char* const what) {
  if (pointer == nullptr) throw Error(std::string("imbrex: ") + what + " is a null pointer");
}

}  // namespace imbrex::c
