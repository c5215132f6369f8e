// SPDX-License-Identifier: BSD-3-Clause
// imbrex.hpp under IMBREX_SERIAL: a program that was written for tasks, named events and progress
// functions, without the runtime; nothing is linked. A task is a plain call at the place where it
// is launched; so what it names must have happened before: that is what noprogress() is for.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace imbrex {

struct SerialEvent {};
[[nodiscard]] inline SerialEvent named(std::string_view, std::int64_t = 0) { return {}; }
inline void trigger(std::string_view, std::int64_t = 0) {}
template <class F>
void progress(F&&) {}
template <class F>
void noprogress(F&& function) {
  std::forward<F>(function)();
}

// All that runs does so at the one place.
class Place {};
[[nodiscard]] inline int place_count() { return 1; }
[[nodiscard]] inline Place place(int) { return {}; }

// Program order satisfies every access.
class [[nodiscard]] SerialBuilder {
 public:
  template <class... T>
  SerialBuilder& in(const T&...) { return *this; }
  template <class... T>
  SerialBuilder& out(T&...) { return *this; }
  template <class... T>
  SerialBuilder& inout(T&...) { return *this; }
  template <class... T>
  SerialBuilder& mutexinoutset(T&...) { return *this; }
  template <class... T>
  SerialBuilder& inoutset(T&...) { return *this; }
  SerialBuilder& priority(int) { return *this; }
  SerialBuilder& at(Place) { return *this; }
  SerialBuilder& tied() { return *this; }
  SerialBuilder& untied() { return *this; }
  template <class F>
  void launch(F&& function) {
    static_cast<void>(std::forward<F>(function)());
  }
};
[[nodiscard]] inline SerialBuilder task(const char*) { return {}; }

template <class F>
void finish(F&& body) {
  std::forward<F>(body)();
}
inline void taskwait() {}
inline void yield() {}

}  // namespace imbrex
