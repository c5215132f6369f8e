// SPDX-License-Identifier: BSD-3-Clause
// imbrex.hpp under IMBREX_SERIAL: the C++ interface of detail/serial.h. A task is a plain call at
// the place of its launch, so the events that it names must have fired before: noprogress() does
// that. Only imbrex.hpp includes it, after imbrex.h.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace imbrex {

struct SerialEvent {};
[[nodiscard]] inline SerialEvent named(std::string_view, std::int64_t = 0) { return {}; }
inline void trigger(std::string_view name, std::int64_t number = 0) {
  (void)imbrex_trigger(std::string(name).c_str(), number);
}
template <class F>
void progress(F&&) {}  // no runtime calls it
template <class F>
void noprogress(F&& function) {
  if (imbrex_noprogress() != 0) std::forward<F>(function)();
}

// The only place: all tasks run there.
class Place {};
[[nodiscard]] inline int place_count() { return imbrex_place_count(); }
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
  imbrex_finish_t spawned = nullptr;  // filled by the functions of C
  if (imbrex_finish_end(&spawned) != IMBREX_SUCCESS) throw std::runtime_error(imbrex_message());
}
inline void taskwait() { (void)imbrex_taskwait(); }
inline void yield() { (void)imbrex_yield(); }

}  // namespace imbrex
