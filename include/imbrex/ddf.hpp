// SPDX-License-Identifier: BSD-3-Clause
// Data-driven futures: a value that is put once, for tasks that start when it is there.
#pragma once

#include "imbrex/detail/language.hpp"

#include <concepts>
#include <cstddef>
#include <exception>
#include <source_location>
#include <type_traits>
#include <utility>

#include "imbrex/detail/name.hpp"
#include "imbrex/detail/waist.hpp"
#include "imbrex/error.hpp"
#include "imbrex/future.hpp"

namespace imbrex {

// Both ends of a future in one: put() sets the value, once, and get() reads what is there and
// never waits. Tasks wait for it before they begin, by .in(ddf), .await_all(ddf) or
// .await_any(ddf); wherever a Future is accepted, a Ddf is. A put after the first, and a get before
// it, throw Error, which names both places. Copies share one value; when the last is gone and
// nothing was put, what waits fails with BrokenPromise.
// (Taşırlar and Sarkar, ICPP 2011; Chatterjee et al., IPDPS 2013.)
// Thread safety: any thread may put and get, also one that imbrex does not know.
template <class T>
class Ddf : public Future<T> {
 public:
  explicit Ddf(Name name = "ddf",
               const std::source_location& where = std::source_location::current())
      : Ddf(Promise<T>(name, where)) {}
  // A text that was handed on, as for Promise.
  template <std::size_t N>
  explicit Ddf(const char (&name)[N],
               const std::source_location& where = std::source_location::current())
      : Ddf(Promise<T>(name, where)) {}

  template <class U = T>
    requires(!std::is_void_v<T> && std::constructible_from<T, U>)
  void put(U&& value, const std::source_location& where = std::source_location::current()) const {
    detail::put_once(state(), where);
    promise_.set(std::forward<U>(value));
  }
  void put(const std::source_location& where = std::source_location::current()) const
    requires std::is_void_v<T>
  {
    detail::put_once(state(), where);
    promise_.set();
  }
  // What waits for the value fails, and get() rethrows `error`.
  void put_exception(std::exception_ptr error,
                     const std::source_location& where = std::source_location::current()) const {
    if (error == nullptr) detail::throw_no_exception(state(), "put_exception");
    detail::put_once(state(), where);
    promise_.set_exception(std::move(error));
  }

  // Never suspends: throws Error if nothing was put before.
  decltype(auto) get(const std::source_location& where = std::source_location::current()) const {
    if (!this->ready()) [[unlikely]] detail::throw_not_put(state(), where);
    return static_cast<const Future<T>&>(*this).get();
  }

 private:
  explicit Ddf(Promise<T> promise) : Future<T>(promise.future()), promise_(std::move(promise)) {}
  [[nodiscard]] detail::PromiseState& state() const {
    if (!this->valid()) throw Error("imbrex: use of a Ddf that was moved from");
    return static_cast<detail::PromiseState&>(*this->completion());
  }

  Promise<T> promise_;
};

}  // namespace imbrex
